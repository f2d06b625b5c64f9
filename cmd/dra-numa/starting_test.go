package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
)

func TestAStartThatHangsIsDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s starting
		dead := func(want string) {
			t.Helper()
			if err := s.alive(t.Context()); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("not alive because of %v, want %q", err, want)
			}
		}
		dead("")
		s.begin("reading the node", nil)
		time.Sleep(startStuckAfter)
		dead("")
		time.Sleep(time.Second)
		dead("reading the node has gone on for 2m1s")
		s.rest()
		time.Sleep(time.Hour)
		dead("")
		written := uint64(0)
		s.begin("recovering", func() uint64 { return written })
		for range 20 { // a slow disk
			time.Sleep(startStuckAfter)
			written++
			dead("")
		}
		time.Sleep(startStuckAfter + time.Second)
		dead("recovering has gone on for 2m1s")
	})
}

// A disk that hangs keeps the daemon from reading its checkpoint.
func TestHealthzOfAStartThatHangs(t *testing.T) {
	flags, pluginDir := fakeMachine(t)
	o, err := parseFlags(cli.Call{Args: append(flags, "--exclusivity=none")}, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	checkpoint := filepath.Join(pluginDir, "checkpoint.json")
	if err := syscall.Mkfifo(checkpoint, 0o600); err != nil {
		t.Fatal(err)
	}
	shown, ended := o.show(), make(chan error)
	go func() {
		_, err := serveNode(t.Context(), o, shown, func(error) {})
		ended <- err
	}()
	writer, err := os.OpenFile(checkpoint, os.O_WRONLY, 0) // waits until the daemon reads
	if err != nil {
		t.Fatal(err)
	}
	healthz := func() (int, string) {
		answer := httptest.NewRecorder()
		shown.readiness.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/healthz", nil))
		return answer.Code, answer.Body.String()
	}
	if code, text := healthz(); code != http.StatusOK {
		t.Errorf("at the beginning: %d %s", code, text)
	}
	shown.starting.mu.Lock()
	shown.starting.since = time.Now().Add(-startStuckAfter - time.Minute)
	shown.starting.mu.Unlock()
	if code, text := healthz(); code != http.StatusServiceUnavailable || !strings.Contains(text, "the start hangs: reading the node") {
		t.Errorf("later: %d %s", code, text)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("the daemon starts with an empty checkpoint")
	}
}
