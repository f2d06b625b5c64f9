package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	testfiles "github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// A file of a URL is read as a file of a folder is.
func TestFilenameIsAURL(t *testing.T) {
	dir := machineFiles(t, "rig", "numa", 1)
	testfiles.Write(t, filepath.Join(dir, "deep", "pod.yaml"), mustCall(t, strings.Fields("generate pod p --image example.com/app:1 --cpus 2 --memory 64Mi")...))
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer server.Close()
	want := mustCall(t, "simulate", "-f", dir)
	if got := mustCall(t, "simulate", "-R", "-f", dir); got != want {
		t.Errorf("with -R, simulate says\n%swant\n%s", got, want)
	}
	got := mustCall(t, "simulate", "-f", server.URL+"/classes.yaml", "-f", server.URL+"/worker-1.yaml", "-f", filepath.Join(dir, "deep"))
	if got != want || !strings.Contains(got, "default/p") {
		t.Errorf("of URLs, simulate says\n%swant\n%s", got, want)
	}
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	for name, want := range map[string]string{
		server.URL + "/missing.yaml": "kubectl-numa: error: --filename: get " + server.URL + "/missing.yaml: the server answers 404 Not Found\n",
		closed.URL + "/pod.yaml":     "kubectl-numa: error: --filename: Get \"" + closed.URL + "/pod.yaml\": dial tcp ",
		server.URL + "/":             "kubectl-numa: error: read " + server.URL + "/, document 1: ",
		"ftp://example.com/pod.yaml": "kubectl-numa: error: --filename: stat ftp://example.com/pod.yaml: no such file or directory\n",
	} {
		exitCode, stdout, stderr := call("lint", "-f", name)
		if exitCode != exitUsage || stdout != "" || !strings.HasPrefix(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, stdout %q, stderr\n%swant\n%s", name, exitCode, stdout, stderr, want)
		}
	}
}

// Neither a large file nor a slow server can stop the command, and no password is shown.
func TestFetchIsBounded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("12345678"))
	}))
	defer server.Close()
	address, err := url.Parse(strings.Replace(server.URL, "http://", "http://ann:secret@", 1) + "/pod.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if text, err := fetch(t.Context(), address, 8); err != nil || string(text) != "12345678" {
		t.Errorf("a file of 8 bytes is %q, %v", text, err)
	}
	if _, err := fetch(t.Context(), address, 7); err == nil || !strings.HasSuffix(err.Error(), "/pod.yaml: the file has more than 7 bytes") || strings.Contains(err.Error(), "secret") {
		t.Errorf("a file with a byte too many: error is %v", err)
	}
	late, cancel := context.WithTimeout(t.Context(), -1)
	defer cancel()
	if _, err := fetch(late, address, 8); err == nil || !strings.Contains(err.Error(), "context deadline exceeded") || strings.Contains(err.Error(), "secret") {
		t.Errorf("after the time is up: error is %v", err)
	}
}
