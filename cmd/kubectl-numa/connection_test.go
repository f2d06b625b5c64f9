package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// seen keeps the headers of the last request for the list of nodes, and answers after a
// pause.
type seen struct {
	mu      sync.Mutex
	headers http.Header
	pause   time.Duration
}

func (s *seen) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.headers = r.Header
	s.mu.Unlock()
	select {
	case <-r.Context().Done():
	case <-time.After(s.pause):
	}
	http.Error(w, "no", http.StatusTeapot)
}

// The flags of kubectl reach the API server.
func TestConnectionFlags(t *testing.T) {
	server := &seen{}
	kubeconfig := answers{"/api/v1/nodes": server}.serve(t)
	// client-go sends tokens only with TLS.
	encrypted := httptest.NewTLSServer(server)
	t.Cleanup(encrypted.Close)
	tls := " --insecure-skip-tls-verify -s " + encrypted.URL
	for args, want := range map[string]map[string]string{
		"--as ann":                           {"Impersonate-User": "ann"},
		"--as ann --as-group a --as-group b": {"Impersonate-User": "ann", "Impersonate-Group": "a,b"},
		"--as ann --as-uid 7":                {"Impersonate-Uid": "7"},
		"--context other --cluster c":        {},
		"--token secret" + tls:               {"Authorization": "Bearer secret"},
		"--user with-token" + tls:            {"Authorization": "Bearer of-the-user"},
		"--user with-program" + tls:          {"Authorization": "Bearer of-the-program"},
	} {
		testfiles.Write(t, kubeconfig, strings.Replace(testfiles.Read(t, kubeconfig), "users: [{name: u,",
			"users: [{name: with-token, user: {token: of-the-user}}, {name: with-program, user: {exec: {apiVersion: client.authentication.k8s.io/v1, "+
				"interactiveMode: Never, command: echo, args: ['{\"apiVersion\": \"client.authentication.k8s.io/v1\", \"kind\": \"ExecCredential\", "+
				"\"status\": {\"token\": \"of-the-program\"}}']}}}, {name: u,", 1))
		server.headers = nil
		_, _, stderr := call(strings.Fields("status --kubeconfig " + kubeconfig + " " + args)...)
		if server.headers == nil {
			t.Errorf("%s: the server was not asked: %s", args, stderr)
		}
		for header, want := range want {
			if got := strings.Join(server.headers.Values(header), ","); got != want {
				t.Errorf("%s: header %s is %q, want %q", args, header, got, want)
			}
		}
	}
}

func TestRequestTimeout(t *testing.T) {
	kubeconfig := answers{"/api/v1/nodes": &seen{pause: time.Minute}}.serve(t)
	begin := time.Now()
	exitCode, _, stderr := call("status", "--kubeconfig", kubeconfig, "--request-timeout", "200ms")
	if exitCode != exitUsage || !strings.HasPrefix(stderr, "kubectl-numa: error: read the cluster: list Nodes: ") || time.Since(begin) > 30*time.Second {
		t.Errorf("after %s: exit code %d, stderr %s", time.Since(begin), exitCode, stderr)
	}
	for args, want := range map[string]string{
		"status --request-timeout soon":       `--request-timeout "soon": want a time of 0 or more, such as 30s or 2m`,
		"gather --request-timeout -1s":        `--request-timeout "-1s": want a time of 0 or more`,
		"lint -f /no/such --as ann":           "--as is for a cluster, but no cluster is read: ",
		"validate --from b --as-group x":      "--as-group is for a cluster, but no cluster is read: ",
		"drift --from b --driver-namespace n": "--driver-namespace is for a cluster, but no cluster is read: ",
	} {
		exitCode, _, stderr := call(strings.Fields(args)...)
		if exitCode != exitUsage || !strings.HasPrefix(stderr, "kubectl-numa: error: "+want) {
			t.Errorf("%s: exit code %d, stderr %s", args, exitCode, stderr)
		}
	}
}

// Shells complete the names of a kubeconfig.
func TestNamesOfTheKubeconfigAreCompleted(t *testing.T) {
	kubeconfig := answers{}.serve(t)
	for flag, want := range map[string]string{"--context": "cluster\nother\n:4\n", "--cluster": "c\ngone\n:4\n", "--user": "u\n:4\n"} {
		if _, got, _ := call("__complete", "status", "--kubeconfig", kubeconfig, flag, ""); got != want {
			t.Errorf("%s completes to %q, want %q", flag, got, want)
		}
	}
	if _, got, _ := call("__complete", "status", "--kubeconfig", filepath.Join(t.TempDir(), "none"), "--context", ""); got != ":4\n" {
		t.Errorf("without a kubeconfig, --context completes to %q", got)
	}
}

// Help has the flags of a connection after the command's own flags.
func TestHelpHasConnectionFlagsInASectionOfTheirOwn(t *testing.T) {
	help := mustCall(t, "status", "--help")
	own, rest, found := strings.Cut(help, "\n\nFlags for the cluster, as in kubectl:\n")
	if !found || strings.Contains(own, "--as-group") || !strings.Contains(own, "\n  -w, --watch") || !strings.Contains(rest, "      --as-group group") || strings.Contains(rest, "--watch") {
		t.Errorf("help is\n%s", help)
	}
	if help := mustCall(t, "topology", "--help"); strings.Contains(help, "as in kubectl") {
		t.Errorf("help of a command without a cluster is\n%s", help)
	}
}
