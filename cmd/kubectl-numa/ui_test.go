package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// serveUI runs ui for the objects of a folder until the test ends. It returns the address
// that is printed, and what is written to stderr when the server ends.
func serveUI(t *testing.T, p pages) (address string, end func() (stderr string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	var stderr bytes.Buffer
	p.cli = cli{name: program, env: func(string) string { return "" }, stdout: writer, stderr: &stderr}
	p.listen = "127.0.0.1:0"
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx) }()
	address, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	end = sync.OnceValue(func() string {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		return stderr.String()
	})
	t.Cleanup(func() { end() })
	return strings.TrimSuffix(address, "\n"), end
}

// answerOf is the status and the text of a page.
func answerOf(t *testing.T, client *http.Client, address string) (status int, text string) {
	t.Helper()
	answer, err := client.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func TestUIServesUntilItEnds(t *testing.T) {
	address, end := serveUI(t, pages{from: source{files: files{showcase(t)}}})
	root, token, found := strings.Cut(address, "?token=")
	if !found || len(token) < 26 {
		t.Fatalf("the address is %q", address)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	if status, text := answerOf(t, http.DefaultClient, root); status != http.StatusForbidden || strings.Contains(text, "worker") {
		t.Errorf("without the token: %d\n%s", status, text)
	}
	for _, page := range []struct{ address, want string }{
		{address, "Nodes: 5. Claims: 26."},
		{root, "Nodes: 5. Claims: 26."},
		{root + "pods/team-a/waits", "DeviceClass &#34;zone.dra.numa&#34;"},
	} {
		status, text := answerOf(t, browser, page.address)
		if status != http.StatusOK || !strings.Contains(text, page.want) || strings.Contains(text, "<script") || strings.Contains(text, token) {
			t.Errorf("%s: %d, no %q in\n%s", page.address, status, page.want, text)
		}
	}
	if stderr := end(); stderr != "" {
		t.Errorf("stderr is %q", stderr)
	}
}

// Two servers have different tokens, and without one, the user is warned.
func TestTokenIsRandomAndCanBeSwitchedOff(t *testing.T) {
	from := source{files: files{showcase(t)}}
	first, _ := serveUI(t, pages{from: from})
	second, _ := serveUI(t, pages{from: from})
	_, a, _ := strings.Cut(first, "=")
	_, b, _ := strings.Cut(second, "=")
	if a == b {
		t.Errorf("the addresses are %s and %s", first, second)
	}
	address, end := serveUI(t, pages{from: from, anyUser: true})
	if status, text := answerOf(t, http.DefaultClient, address); strings.Contains(address, "?") || status != http.StatusOK || !strings.Contains(text, "worker-1") {
		t.Errorf("%s: %d\n%s", address, status, text)
	}
	if stderr := end(); !strings.HasPrefix(stderr, "kubectl-numa: note: --any-user: every user of this machine can read the pages") {
		t.Errorf("stderr is %q", stderr)
	}
}

// withLayout is a state of worker-1 whose CPUs are those of its zone numa-0.
const withLayout = `{"node": "worker-1", "layout": {"reserved": "0-1", "isolated": "", "caches": [{"numaNode": 0, "l3": 7, "cores": ["0-1", "2-3"]}]}}`

// eventually gets a page until it has a text.
func eventually(t *testing.T, address, want string) (text string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if _, text = answerOf(t, http.DefaultClient, address); strings.Contains(text, want) {
			return text
		}
	}
	t.Fatalf("%s has no %q:\n%s", address, want, text)
	return ""
}

// The CPUs of a node are drawn from a bundle and, only if the user asks for it, from the
// driver's pod.
func TestUIDrawsTheCPUsThatTheNodeHas(t *testing.T) {
	a := installedCluster(t)
	a[pod] = stateOf(withLayout)
	a["/api/v1/namespaces/default/events"] = listOf("EventList", "v1", []*corev1.Event{{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: "default"}, InvolvedObject: corev1.ObjectReference{Kind: "Node", Name: "worker-1"}, Message: "rebooted"}})
	rec := &recorder{answers: a, asked: make(rights)}
	server := httptest.NewServer(rec)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	t.Setenv("KUBECONFIG", kubeconfigOf(t, server.URL))
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	mustCall(t, "gather", "--file", file)
	rec.mu.Lock()
	clear(rec.asked)
	rec.mu.Unlock()
	const isDrawn = `<figcaption>L3 7</figcaption>`
	gathered, _ := serveUI(t, pages{anyUser: true, from: source{bundle: file}})
	if text := eventually(t, gathered+"nodes/worker-1", isDrawn); !strings.Contains(text, "<title>CPU 0: reserved</title>") {
		t.Errorf("the page of a bundle is\n%s", text)
	}
	const notInBundle = "Missing here: events about claims and pods that other programs wrote: a bundle does not have them"
	if text := eventually(t, gathered+"nodes/worker-1/zones/numa-0", notInBundle); !strings.Contains(text, ">ready</td>") {
		t.Errorf("the events of a bundle are\n%s", text)
	}
	plain, end := serveUI(t, pages{anyUser: true})
	if text := eventually(t, plain+"nodes/worker-1", "numa-0"); strings.Contains(text, "<figcaption>") || strings.Contains(text, "not drawn") {
		t.Errorf("without --layout the page is\n%s", text)
	}
	end()
	rec.mu.Lock()
	asked := rec.asked["get /pods/exec in dra-numa"]
	rec.mu.Unlock()
	if asked {
		t.Error("without --layout a program is run in a pod")
	}
	asking, _ := serveUI(t, pages{anyUser: true, layout: true})
	eventually(t, asking+"nodes/worker-1", isDrawn)
	if text := eventually(t, asking+"nodes/worker-1/zones/numa-0", ">rebooted</td>"); strings.Contains(text, "Missing here") {
		t.Errorf("the events of the cluster are\n%s", text)
	}
}

// What the user may not do is on the page, and the rest is there.
func TestUISaysWhatTheUserMayNotDo(t *testing.T) {
	a := installedCluster(t)
	forbidden := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "ann <may> not"}`)
	})
	a[pod], a["/api/v1/namespaces/default/events"] = forbidden, forbidden
	server := httptest.NewServer(&recorder{answers: a, asked: make(rights)})
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	t.Setenv("KUBECONFIG", kubeconfigOf(t, server.URL))
	address, _ := serveUI(t, pages{anyUser: true, layout: true})
	eventually(t, address+"nodes/worker-1", "The CPUs are not drawn: run dra-numa state in pod dra-numa/driver-x, container driver: ann &lt;may&gt; not")
	eventually(t, address+"nodes/worker-1/zones/numa-0", "Missing here: events about Nodes: list Events of namespace default: ann &lt;may&gt; not")
}

// The page of a pod has the notes of explain.
func TestPagesHaveTheNotesOfExplain(t *testing.T) {
	dir := clusterFolder(t, "cpu: 2")
	path := filepath.Join(dir, "pod-a.yaml")
	testfiles.Write(t, path, testfiles.Read(t, path)+"  schedulerName: other\nstatus: {nominatedNodeName: worker-1}\n")
	_, document := explained(t, "pod", "a", "-f", dir)
	objects, err := files{dir}.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := pages{}
	answer, err := p.explainer(simulate.DefaultRules())(t.Context(), objects, "default", "a")
	if err != nil || len(answer.Notes) != 2 || !slices.Equal(answer.Notes, document.Notes) || !strings.HasPrefix(answer.Notes[0], "the pod is nominated for node worker-1: ") {
		t.Errorf("error %v, notes are %q, and those of explain %q", err, answer.Notes, document.Notes)
	}
}

// A node is asked again only after some time, also if it cannot be asked. A browser that
// goes away says nothing about the node.
func TestAnswersCountForSomeTime(t *testing.T) {
	now, asked := time.Now(), 0
	answers := newRecent[int]()
	answers.now = func() time.Time { return now }
	ctx, cancel := context.WithCancel(t.Context())
	expect := func(key string, want int, wantErr error) {
		t.Helper()
		got, err := answers.of(ctx, key, func(context.Context) int {
			asked++
			return asked
		})
		if got != want || !errors.Is(err, wantErr) {
			t.Errorf("%s: %d, %v, want %d, %v", key, got, err, want, wantErr)
		}
	}
	expect("a", 1, nil)
	expect("a", 1, nil)
	expect("b", 2, nil)
	now = now.Add(recentAge)
	expect("a", 3, nil)
	expect("a", 3, nil)
	expect("c", 4, nil)
	if len(answers.answers) != 2 {
		t.Errorf("%d answers are remembered, want those of a and c", len(answers.answers))
	}
	now = now.Add(recentAge)
	cancel()
	expect("a", 0, context.Canceled)
	ctx = t.Context()
	want := asked + 1
	expect("a", want, nil)
}

func TestEventsAreListedOncePerKindAndNamespace(t *testing.T) {
	got := eventLists([]corev1.ObjectReference{
		{Kind: "Node", Name: "n"},
		{Kind: "Pod", Namespace: "a", Name: "x"},
		{Kind: "Pod", Namespace: "b", Name: "x"},
		{Kind: "Pod", Namespace: "a", Name: "y"},
		{Kind: "ResourceClaim", Namespace: "a", Name: "x"},
		{Kind: "Pod", Namespace: "b", Name: "x"},
	})
	if want := []eventList{{"Node", "default", "n"}, {"Pod", "a", ""}, {"Pod", "b", "x"}, {"ResourceClaim", "a", "x"}}; !slices.Equal(got, want) {
		t.Errorf("lists %v, want %v", got, want)
	}
}
