package web

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/funnel"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/occupied"
)

// explained is the answer of Explain in these tests.
func explained(_ context.Context, _ *snapshot.Snapshot, namespace, name string) (simulate.Explanation, error) {
	if name == "broken" {
		return simulate.Explanation{}, errors.New("no <such> key")
	}
	blocked := simulate.NodeExplanation{Obstacles: []funnel.Obstacle{{Sentence: "asks for 64 cpu of one device <b>"}}, Requests: []funnel.Request{{Claim: "large", Request: "zone", Wanted: 1, Blocks: funnel.StageCapacity}}}
	e := simulate.Explanation{Pod: namespace + "/" + name, Sentence: "does not fit on any of the 5 nodes", Hints: []string{"ask for less"}}
	for i := range 12 {
		blocked.Node = fmt.Sprintf("worker-%d", i%5+1)
		e.Nodes = append(e.Nodes, blocked)
	}
	return e, nil
}

// serve serves the pages of a cluster.
func serve(tb testing.TB, c *occupied.Cluster, live bool) (*Board, http.Handler) {
	tb.Helper()
	board := NewBoard()
	board.Show(&c.Snapshot)
	return board, Handler(board, Options{Live: live, From: "the cluster", Explain: explained, Events: eventsOf()})
}

func get(tb testing.TB, handler http.Handler, path string) *httptest.ResponseRecorder {
	tb.Helper()
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.Host = "127.0.0.1:8480"
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	return answer
}

// page is the text of a page, which must exist.
func page(tb testing.TB, handler http.Handler, path string) string {
	tb.Helper()
	answer := get(tb, handler, path)
	if answer.Code != http.StatusOK {
		tb.Fatalf("%s: %d\n%s", path, answer.Code, answer.Body)
	}
	return answer.Body.String()
}

var link = regexp.MustCompile(`href="(/[^"]*|\?[^"]*)"`)

// All links of all pages lead to pages.
func TestEveryLinkLeadsToAPage(t *testing.T) {
	c := occupied.Showcase(t)
	_, handler := drawn(t, c, false, map[string]*nodestate.State{"worker-1": stateOf(t, "rig")})
	seen := map[string]bool{}
	for next := []string{"/"}; len(next) > 0; {
		path := next[0]
		next = next[1:]
		if seen[path] {
			continue
		}
		seen[path] = true
		for _, match := range link.FindAllStringSubmatch(page(t, handler, path), -1) {
			to := strings.ReplaceAll(match[1], "&amp;", "&")
			if strings.HasPrefix(to, "?") {
				to, _, _ = strings.Cut(path, "?")
				to += strings.ReplaceAll(match[1], "&amp;", "&")
			}
			next = append(next, to)
		}
	}
	var want []string
	for _, node := range c.Nodes {
		want = append(want, "/nodes/"+node.Name)
	}
	for _, claim := range c.Claims {
		want = append(want, "/claims/"+claim.Namespace+"/"+claim.Name)
	}
	for _, path := range append(want, "/pods", "/pods/team-a/waits", "/nodes/worker-1/zones/numa-1", "/style.css") {
		if !seen[path] {
			t.Errorf("no link leads to %s", path)
		}
	}
}

func TestPagesSayWhatClaimsHoldOfCaches(t *testing.T) {
	_, handler := serve(t, occupied.Divided(t), false)
	node := page(t, handler, "/nodes/worker-1")
	testfiles.Contains(t, node,
		"ways: 4 of 10 free", "classes: 6 of 8 free", "members: 7 of 10 free", "cache-0-besteffort: 2 to 5 ways, 50% of the bandwidth for each core",
	)
	if strings.Contains(node, "bandwidthPercent: ") {
		t.Errorf("limits are summed in\n%s", node)
	}
	claim := page(t, handler, "/claims/prod/silver")
	testfiles.Contains(t, claim,
		"<dd>pool besteffort of cache 0, for the CPUs of request cpus</dd>", "<dd>2, up to 5 while they are free</dd>", "<dd>50%</dd>", "<dd>dra-numa.4</dd>",
	)
}

func TestPagesSayHowFastTheCPUsAreAndWhatWasAsked(t *testing.T) {
	c := occupied.New(t)
	c.AddMachine("n", "rig", nil)
	c.AddClaim("d/a", occupied.Share{Request: "r", Node: "n", Device: "numa-0", CPUs: ptr.To("2-3"), Performance: &deviceclasses.PerformanceStatus{
		Asked:       deviceclasses.PerformanceSettings{MinFrequency: "max", Governor: "powersave", EnergyPreference: "balance_power"},
		Frequencies: []deviceclasses.FrequencyStatus{{Governor: "powersave", EnergyPreference: "balance_power", MinFrequency: "3GHz", MaxFrequency: "3.6GHz"}},
		Interrupts:  []deviceclasses.StayingInterrupt{{Number: 30, Name: "nvme0q1", Why: "managed by the kernel"}},
	}})
	_, handler := serve(t, c, false)
	testfiles.Contains(t, page(t, handler, "/claims/d/a"),
		"Frequency</dt><dd>governor powersave, energy preference balance_power, from 3GHz (asked max), to 3.6GHz</dd>", "nvme0q1 (managed by the kernel)")
}

func TestPagesSayHowFastTheUncoreIs(t *testing.T) {
	c := occupied.New(t)
	c.AddMachine("n", "rig", nil)
	c.AddClaim("d/a", occupied.Share{Request: "r", Node: "n", Device: "numa-0", CPUs: ptr.To("2-3"), Performance: &deviceclasses.PerformanceStatus{
		Asked: deviceclasses.PerformanceSettings{MinUncoreFrequency: "max"}, Uncore: []deviceclasses.UncoreStatus{{Package: 1, MinFrequency: "1.8GHz"}},
	}})
	_, handler := serve(t, c, false)
	testfiles.Contains(t, page(t, handler, "/claims/d/a"), "Lowest uncore frequency of die 0 of package 1</dt><dd>1.8GHz</dd>")
}

func TestPagesSayWhatThereIs(t *testing.T) {
	_, handler := serve(t, occupied.Showcase(t), false)
	for path, wants := range map[string][]string{
		"/": {
			`<th scope="row"><a href="/nodes/worker-1">worker-1</a></th>`, "6 of 14 free", "Nodes: 5. Claims: 26. Pods without a node: 1.",
			"driver dra.numa publishes nothing on this node", `<a href="/pods/team-a/waits">team-a/waits</a> 0/5 nodes are available`,
		},
		"/nodes/worker-1": {
			"NUMA node 1, socket 0", "cpu: 2 of 4 free", `<a href="/claims/default/alpha-zone">`, "tainted: dra.numa/fault=partition-invalid:NoSchedule",
			"admin access, which holds nothing", "NUMA node unknown", "eth9 <small>dra.net, free</small>", "numa-1: CPUs 4-5, memory 256 MiB",
		},
		"/nodes/worker-2": {"gpu-0 <small>gpu.example.com, blocked: counter slices of gpu-0 has only 4 left, and the device needs 7</small>"},
		"/nodes/worker-3": {"unpublished", "cpu: 2 held, total not known"},
		"/claims":         {"1 to 25 of 26", `href="?page=2"`},
		"/claims?q=BETA":  {"1 to 1 of 1", "default/beta-zone", `value="BETA"`},
		"/claims/default/beta-zone": {
			"pod beta on <a href=\"/nodes/worker-1\">worker-1</a>, Running",
			"4 CPUs in L3 2, the tightest with room",
			"PartitionInvalid: other tasks",
			"8-11",
			"class zone.dra.numa, 1 device",
		},
		"/claims/team-a/gamma": {"The driver has not reported this share as prepared"},
		"/claims/team-a/large": {
			"Nothing: the claim is not allocated.",
			`<a href="/pods/team-a/waits">waits</a>, which has no node; its page says why`,
		},
		"/claims/ops/monitor": {"Admin access, which holds nothing."},
		"/pods?q=wai":         {"team-a/waits"},
		"/pods/team-a/waits": {
			"does not fit on any of the 5 nodes",
			"Hint: ask for less",
			"and 4 more",
			"capacity",
			"0/5 nodes are available",
			`<a href="/claims/team-a/large">`,
		},
		"/?show=problems&q=worker-4":   {"the Node is cordoned", "is incomplete: 1 of 2"},
		"/?cpus=31&q=":                 {"worker-2", "1 to 1 of 1"},
		"/?cpus=nonsense&page=-3":      {"1 to 5 of 5"},
		"/?q=team-a%2Fgamma-0":         {"1 to 1 of 1", "worker-1"},
		"/?show=held&q=worker-5":       {"None"},
		"/?show=free&q=worker&page=99": {"1 to 2 of 2"},
	} {
		text := page(t, handler, path)
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", path, want, text)
			}
		}
	}
	for _, path := range []string{"/nodes/none", "/claims/default/none", "/pods/default/none", "/nothing", "/nodes/"} {
		if answer := get(t, handler, path); answer.Code != http.StatusNotFound || !strings.Contains(answer.Body.String(), "There is no ") {
			t.Errorf("%s: %d\n%s", path, answer.Code, answer.Body)
		}
	}
}

func TestNothingIsTakenForMarkup(t *testing.T) {
	const evil = `"><script>alert(1)</script>` + "\u202e\x1b\u200b"
	c := occupied.Showcase(t)
	c.Claim("default", "beta-zone").Status.Devices[0].Conditions[1].Message = evil
	c.Pods = append(c.Pods, c.AddPod("default/broken", ""))
	broken := c.Pods[len(c.Pods)-1]
	broken.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: evil, ResourceClaimName: ptr.To(evil)}}
	broken.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: evil}}
	c.Nodes[0].Name = evil
	c.Slices[0].Spec.Devices[0].Name = evil
	c.Claim("team-a", "gamma").Name = evil
	layout := stateOf(t, "rig")
	layout.Partitions = []nodestate.Partition{{Cgroup: evil, CPUs: cpuset.New(6)}}
	layout.Checkpoint.Grants = []ledger.Grant{{Namespace: evil, Name: evil, Shares: []ledger.Share{{Kind: &ledger.ZoneShare{NUMANodes: []int{0}, CPUs: cpuset.New(7)}}}}}
	layout.Layout.Reserved, layout.Layout.Why = nil, evil
	layout.Resctrl = &nodestate.Resctrl{Claims: []nodestate.ClaimUse{{Claim: nodestate.Claim{Name: "default/beta-zone"}, Why: evil}}}
	told := event("Node/worker-1", "", evil, 1)
	told.Reason, told.Type, told.ReportingController = evil, evil, evil
	other := event("Node/worker-1", "", evil, 2)
	other.InvolvedObject = corev1.ObjectReference{Kind: "ResourceClaim", Namespace: "team-a", Name: evil}
	board := NewBoard()
	board.Show(&c.Snapshot)
	handler := Handler(board, Options{
		Live: true, Explain: explained,
		State:  func(context.Context, *snapshot.Snapshot, string) (*nodestate.State, error) { return layout, nil },
		Events: eventsOf(told, other),
	})
	if text := page(t, handler, "/nodes/worker-1/zones/numa-3"); strings.Count(text, "&lt;script&gt;") < 7 {
		t.Errorf("the history lacks the hostile texts:\n%s", text)
	}
	for _, path := range []string{"/nodes/worker-1/zones/numa-3", "/nodes/worker-1/zones/" + url.PathEscape(evil), "/", "/?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E", "/?show=%22%3E%3Cscript%3E&cpus=%22%3E%3Cscript%3Ealert(1)", "/nodes/worker-1", "/claims/default/beta-zone", "/pods/default/broken", "/pods/team-a/waits"} {
		text := page(t, handler, path)
		if strings.Contains(text, "<script>") || strings.Contains(text, "<such>") || strings.Contains(text, "asked <b>") {
			t.Errorf("%s has markup of its data in\n%s", path, text)
		}
		if i := strings.IndexFunc(text, func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf) && r != '\n' && r != '\t' }); i >= 0 {
			t.Errorf("%s has an invisible character in\n%q", path, text[max(i-40, 0):])
		}
		if strings.Contains(text, "style=") || strings.Contains(text, "<style") || strings.Contains(text, "onclick") {
			t.Errorf("%s has styles or scripts that its policy forbids", path)
		}
	}
}

// A name is one segment of a path, whatever it is made of. Names that Kubernetes refuses
// come from bundles.
func TestHostileNamesLeadToTheirPages(t *testing.T) {
	for _, name := range []string{"plain-1.example", "a/b", "/../claims", `"'<b>`, "javascript:alert(1)", "100%", "%2e%41", "what?q=1&show=held", "a#b", "a+b c", "\u00e9"} {
		c := occupied.New(t)
		c.AddMachine(name, "rig", nil)
		c.AddClaim("default/"+name, occupied.Share{Request: "zone", Node: name, Device: "numa-0", Amounts: "cpu=2"})
		pod := c.AddPod("default/"+name, "")
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "zone", ResourceClaimName: &name}}
		c.Pods = []*corev1.Pod{pod}
		told := event("Node/x", "", "told", 1)
		told.InvolvedObject.Name = name
		board := NewBoard()
		board.Show(&c.Snapshot)
		handler := Handler(board, Options{Explain: explained, Events: eventsOf(told)})
		seen := map[string]int{}
		for _, from := range []string{"/", "/claims", "/pods", nodePath(name), claimPath("default", name), historyPath(name, "numa-0")} {
			for _, match := range link.FindAllStringSubmatch(page(t, handler, from), -1) {
				path := html.UnescapeString(match[1])
				text := page(t, handler, path)
				if title := html.EscapeString(name) + "</h1>"; strings.Count(path, "/") > 1 && !strings.Contains(text, title) {
					t.Errorf("%q: the link %s of %s leads to\n%s", name, path, from, text)
				}
				seen[path]++
			}
		}
		for _, path := range []string{nodePath(name), claimPath("default", name), podPath(holdings.Pending{Namespace: "default", Name: name}), historyPath(name, "numa-0")} {
			if seen[path] == 0 {
				t.Errorf("%q: no link leads to %s, but to %v", name, path, seen)
			}
		}
	}
}

func TestForeignHostsGetNoAnswer(t *testing.T) {
	_, handler := serve(t, occupied.Showcase(t), true)
	for host, want := range map[string]int{
		"127.0.0.1:8480": 200, "localhost:8480": 200, "LOCALHOST": 200, "[::1]:8480": 200, "127.9.9.9": 200,
		"evil.example:8480": 421, "127.0.0.1.evil.example": 421, "localhost.evil.example": 421, "10.0.0.1:8480": 421, "": 421, "0.0.0.0:8480": 421,
	} {
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		request.Host = host
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		if answer.Code != want || want != 200 && strings.Contains(answer.Body.String(), "worker") {
			t.Errorf("host %q: %d, want %d\n%s", host, answer.Code, want, answer.Body)
		}
		header := answer.Header()
		if policy := header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none';") || strings.Contains(policy, "unsafe") ||
			header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("host %q: headers %v", host, header)
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
		request := httptest.NewRequest(method, "/", nil)
		request.Host = "localhost"
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		if answer.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, answer.Code)
		}
	}
}

// There is an event for each change, and no other event.
func TestEventsTellOfChanges(t *testing.T) {
	c := occupied.Showcase(t)
	board, handler := serve(t, c, true)
	server := httptest.NewServer(handler)
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+fmt.Sprintf("/events?after=%d", board.state.Load().version), nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewReader(answer.Body)
	expect := func(want string) {
		t.Helper()
		line, err := lines.ReadString('\n')
		if err != nil || line != want+"\n" {
			t.Fatalf("line %q, %v, want %q", line, err, want)
		}
	}
	board.Show(&c.Snapshot) // the same again
	c.Nodes[4].Spec.Unschedulable = true
	board.Show(&c.Snapshot)
	expect("event: change")
	expect("data: 2")
	expect("")
	board.Fail(errors.New("the cluster is gone"))
	expect("event: change")
	expect("data: 3")
	if text := page(t, handler, "/nodes/worker-1"); !strings.Contains(text, "This page is out of date: the cluster is gone") || !strings.Contains(text, `data-version="3"`) {
		t.Errorf("after a failure the page is\n%s", text)
	}
	board.Show(&c.Snapshot)
	if text := page(t, handler, "/"); strings.Contains(text, "out of date") {
		t.Errorf("after it is well again the page is\n%s", text)
	}
}

func TestLivePagesRefreshWithoutScripts(t *testing.T) {
	for live, want := range map[bool]int{true: 1, false: 0} {
		_, handler := serve(t, occupied.Showcase(t), live)
		text := page(t, handler, "/nodes/worker-1")
		if got := strings.Count(text, `<noscript><meta http-equiv="refresh" content="10"></noscript>`); got != want {
			t.Errorf("live %t: %d refreshes", live, got)
		}
		if got := strings.Count(text, `<script src="/live.js" defer></script>`); got != want {
			t.Errorf("live %t: %d scripts", live, got)
		}
	}
}

// mostBytes is the largest allowed page of the overview, with eight zones per node.
const mostBytes = 150_000

func TestLargeOverviewIsSmall(t *testing.T) {
	_, handler := serve(t, occupied.Large(t, 60, 8), true)
	text := page(t, handler, "/?page=2&show=held")
	if len(text) > mostBytes || strings.Count(text, `<tr><th scope="row">`) != perPage || !strings.Contains(text, `href="?page=3&amp;show=held"`) || !strings.Contains(text, `href="?page=1&amp;show=held"`) {
		t.Errorf("%d bytes, %d nodes", len(text), strings.Count(text, `<tr><th scope="row">`))
	}
	t.Logf("25 nodes of 8 zones are %d bytes", len(text))
}

// BenchmarkOverview searches 500 nodes with 8 zones.
func BenchmarkOverview(b *testing.B) {
	_, handler := serve(b, occupied.Large(b, 500, 8), true)
	b.ReportAllocs()
	for b.Loop() {
		if answer := get(b, handler, "/?q=claim-4&page=3"); answer.Code != http.StatusOK {
			b.Fatal(answer.Code)
		}
	}
}

// BenchmarkNode renders the page of one of these nodes.
func BenchmarkNode(b *testing.B) {
	_, handler := serve(b, occupied.Large(b, 500, 8), true)
	for b.Loop() {
		if answer := get(b, handler, "/nodes/node-400"); answer.Code != http.StatusOK {
			b.Fatal(answer.Code)
		}
	}
}

// A second request waits, and ends when its browser goes away.
func TestExplanationsAreComputedOneAtATime(t *testing.T) {
	board := NewBoard()
	board.Show(&occupied.Showcase(t).Snapshot)
	started, release := make(chan struct{}), make(chan struct{})
	handler := Handler(board, Options{Explain: func(context.Context, *snapshot.Snapshot, string, string) (simulate.Explanation, error) {
		started <- struct{}{}
		<-release
		return simulate.Explanation{Sentence: "done"}, nil
	}})
	first := make(chan string, 1)
	go func() { first <- get(t, handler, "/pods/team-a/waits").Body.String() }()
	<-started
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/pods/team-a/waits", nil)
	request.Host = "localhost"
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	if !strings.Contains(answer.Body.String(), "The explanation failed: context canceled") {
		t.Errorf("while one is computed another is answered with\n%s", answer.Body)
	}
	close(release)
	if text := <-first; !strings.Contains(text, "done") {
		t.Errorf("the first is answered with\n%s", text)
	}
}
