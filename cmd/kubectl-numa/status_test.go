package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/occupied"
)

// lists are the lists of a cluster's objects, by path.
func lists(s *snapshot.Snapshot) map[string]any {
	return map[string]any{
		"/api/v1/nodes":                                   listOf("NodeList", "v1", s.Nodes),
		"/api/v1/pods":                                    listOf("PodList", "v1", s.Pods),
		"/apis/resource.k8s.io/v1/deviceclasses":          listOf("DeviceClassList", resources, s.Classes),
		"/apis/resource.k8s.io/v1/resourceslices":         listOf("ResourceSliceList", resources, s.Slices),
		"/apis/resource.k8s.io/v1/resourceclaims":         listOf("ResourceClaimList", resources, s.Claims),
		"/apis/resource.k8s.io/v1/resourceclaimtemplates": listOf("ResourceClaimTemplateList", resources, s.Templates),
		"/apis/resource.k8s.io/v1/devicetaintrules":       listOf("DeviceTaintRuleList", resources, s.TaintRules),
	}
}

// showcase is a folder with the objects of a cluster in which claims hold devices.
func showcase(t *testing.T) (dir string) {
	t.Helper()
	return folderOf(t, occupied.Showcase(t))
}

// folderOf is a folder with the objects of a cluster.
func folderOf(t *testing.T, c *occupied.Cluster) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for path, list := range lists(&c.Snapshot) {
		text, err := json.Marshal(list)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(path)+".json"), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestStatusInEveryForm(t *testing.T) {
	dir := showcase(t)
	all := mustCall(t, "status", "-f", dir)
	one := mustCall(t, "status", "worker-1", "-f", dir)
	if !strings.Contains(all, one) || !strings.Contains(all, "\nworker-5\n") || !strings.HasPrefix(one, "worker-1\ncpu 6 of 14 free") {
		t.Errorf("all nodes:\n%s\none:\n%s", all, one)
	}
	for line := range strings.Lines(mustCall(t, "status", "-f", dir, "--width", "60")) {
		if len(line) > 61 {
			t.Errorf("--width 60: line %q", line)
		}
	}
	if picture := mustCall(t, "status", "worker-1", "-f", dir, "-o", "svg"); !strings.HasPrefix(picture, "<svg ") || !strings.Contains(picture, "NUMA node 3") {
		t.Errorf("svg is\n%s", picture)
	}
	var fromJSON, fromYAML holdings.Cluster
	if err := json.Unmarshal([]byte(mustCall(t, "status", "worker-3", "-f", dir, "-o", "json")), &fromJSON); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(mustCall(t, "status", "worker-3", "-f", dir, "-o", "yaml")), &fromYAML); err != nil {
		t.Fatal(err)
	}
	if len(fromJSON.Nodes) != 1 || len(fromJSON.Claims) != 1 || fromJSON.Nodes[0].NUMANodes[0].Devices[0].Resources[0].Total != nil {
		t.Errorf("json is %+v", fromJSON)
	}
	if diff := cmp.Diff(asJSON(t, fromJSON), asJSON(t, fromYAML)); diff != "" {
		t.Errorf("(-json +yaml):\n%s", diff)
	}
}

// The lines of the examples in the documentation are lines of the output.
func TestStatusIsAsTheDocumentationShowsIt(t *testing.T) {
	text := testfiles.Read(t, "../../docs/kubectl-numa.md")
	for flag, dir := range map[string]string{"": showcase(t), "--cache ": folderOf(t, occupied.Divided(t))} {
		_, example, found := strings.Cut(text, "$ kubectl numa status worker-1 "+flag+"-f cluster/\n")
		example, _, ended := strings.Cut(example, "```")
		if !found || !ended {
			t.Fatalf("docs/kubectl-numa.md has no example of status %s", flag)
		}
		shown := mustCall(t, append([]string{"status", "worker-1", "-f", dir}, strings.Fields(flag)...)...)
		for line := range strings.Lines(example) {
			if line != "…\n" && !strings.Contains(shown, line) {
				t.Errorf("the documentation has a line %q, and status %s shows\n%s", line, flag, shown)
			}
		}
	}
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestStatusAndUIRefuseNonsense(t *testing.T) {
	dir := showcase(t)
	for args, want := range map[string]string{
		"status a b":                     `unexpected argument "b", want one node or none`,
		"status nobody -f " + dir:        `there is no Node "nobody" in the files`,
		"status --width 39 -f " + dir:    "--width 39: want 40 or more",
		"status -w -f " + dir:            "--watch: files do not change, want a cluster without --filename",
		"status -w -o svg":               "--watch and --output svg: a file holds only one picture, set another format",
		"status -o png":                  "allowed are table, wide, name, json, yaml, jsonpath=TEMPLATE, svg",
		"ui now":                         `unexpected argument "now", kubectl numa ui takes only flags`,
		"ui --listen 0.0.0.0:80":         `--listen "0.0.0.0:80": want a loopback address, which other machines cannot reach, such as 127.0.0.1:8480`,
		"ui --listen :80":                `--listen ":80": want a loopback address, which other machines cannot reach`,
		"ui --listen numa.example:80":    `--listen "numa.example:80": want a loopback address, which other machines cannot reach`,
		"ui --listen 80":                 `--listen "80": want an address and a port such as 127.0.0.1:8480`,
		"ui --feature-gates x -f " + dir: "--feature-gates: ",
		"ui --layout -f " + dir:          "--layout asks the nodes of a cluster, but no cluster is read; a bundle of gather has their answers",
	} {
		exitCode, stdout, stderr := call(strings.Fields(args)...)
		if exitCode != exitUsage || stdout != "" || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, stdout %q, stderr\n%swant\n%s", args, exitCode, stdout, stderr, want)
		}
	}
}

// watched is an API server of a cluster that can change.
type watched struct {
	lists  map[string]any
	events chan string // of ResourceClaims
}

func (w *watched) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	list, known := w.lists[r.URL.Path]
	out.Header().Set("Content-Type", "application/json")
	switch {
	case !known:
		http.Error(out, "no such path", http.StatusForbidden)
	case r.FormValue("sendInitialEvents") != "":
		http.Error(out, "not known", http.StatusUnprocessableEntity) // clients then list
	case r.FormValue("watch") == "":
		_ = json.NewEncoder(out).Encode(list)
	default:
		flusher := http.NewResponseController(out)
		_ = flusher.Flush()
		for {
			select {
			case <-r.Context().Done():
				return
			case event := <-w.claims(r.URL.Path):
				_, _ = io.WriteString(out, event)
				_ = flusher.Flush()
			}
		}
	}
}

// claims are the events for a path.
func (w *watched) claims(path string) chan string {
	if strings.HasSuffix(path, "/resourceclaims") {
		return w.events
	}
	return nil
}

// kubeconfigOf is a kubeconfig for a server.
func kubeconfigOf(t *testing.T, url string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := `
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "` + url + `"}}]
users: [{name: u, user: {}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
`
	testfiles.Write(t, path, text)
	return path
}

// The program writes the first state and the state after the change. It writes nothing
// for a change that the status does not show.
func TestWatchShowsWhatChanges(t *testing.T) {
	c := occupied.Showcase(t)
	claim := c.Claim("team-a", "gamma").DeepCopy()
	api := &watched{lists(&c.Snapshot), make(chan string)}
	server := httptest.NewServer(api)
	defer server.Close()
	defer server.CloseClientConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	reader, writer := io.Pipe()
	s := status{
		reading: reading{
			cli:    cli{name: program, env: func(string) string { return "" }, stdout: writer},
			from:   source{connection: connection{kubeconfig: kubeconfigOf(t, server.URL)}},
			output: newPrinter(formatTable),
		},
		node: "worker-1", watch: true,
	}
	ended := make(chan error, 1)
	go func() {
		ended <- s.from.follow(ctx, func(objects *snapshot.Snapshot) error { return s.show(ctx, objects) }, func(err error) { t.Error(err) })
		writer.Close()
	}()
	lines := bufio.NewScanner(reader)
	until := func(want string) (passed []string) {
		t.Helper()
		for lines.Scan() {
			passed = append(passed, lines.Text())
			if strings.HasPrefix(lines.Text(), want) {
				return passed
			}
		}
		t.Fatalf("no line %q; follow: %v", want, <-ended)
		return nil
	}
	until("D team-a/gamma, pod gamma-0: numa-3: 2 CPUs, not reported as prepared yet")
	until("admin access")
	send := func(labels map[string]string) {
		claim.Labels, claim.ResourceVersion = labels, claim.ResourceVersion+"1"
		text, err := json.Marshal(map[string]any{"type": "MODIFIED", "object": claim})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case api.events <- string(text):
		case <-ctx.Done():
			t.Fatal("no client watches claims")
		}
	}
	claim.Kind, claim.APIVersion = "ResourceClaim", resources
	send(map[string]string{"no": "news"})
	time.Sleep(2 * settle)
	claim.Status.Allocation, claim.Status.ReservedFor = nil, nil
	send(nil)
	if passed := until("cpu 8 of 14 free"); len(passed) > 3 { // an empty line and the node's name
		t.Errorf("before the change was shown came\n%s", strings.Join(passed, "\n"))
	}
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("at its end the watch is %v", err)
	}
}
