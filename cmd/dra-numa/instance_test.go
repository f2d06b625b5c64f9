package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// freeAddress is one that nobody listens on for the moment. Connections and tests beside this
// one have ports of 127.0.0.1.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// ask returns status and body, or the error.
func ask(t *testing.T, address, path string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return fmt.Sprintf("%d %s %v", answer.StatusCode, strings.TrimSpace(string(text)), err)
}

// A second daemon of the node is ready, so that an update goes on, and touches
// nothing until the first has ended.
func TestSecondDaemonStandsBy(t *testing.T) {
	flags, pluginDir := fakeMachine(t)
	unlock, err := lockInstance(t.Context(), pluginDir, func() { t.Error("waits without another daemon") })
	if err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	flags = append(flags, "--listen="+address)
	ended := make(chan error, 1)
	go func() { ended <- run(t.Context(), flags, noEnv, &bytes.Buffer{}) }()
	want := "200 standby: another dra-numa is running on this node <nil>"
	var got string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline) && got != want; time.Sleep(10 * time.Millisecond) {
		got = ask(t, address, "/readyz")
	}
	if got != want {
		t.Fatalf("/readyz answers %q, want %q", got, want)
	}
	if got := ask(t, address, "/healthz"); got != "200 ok <nil>" {
		t.Errorf("/healthz answers %q", got)
	}
	unlock()
	select {
	case err := <-ended: // it has the node, and no cluster
		if err == nil || !strings.Contains(err.Error(), "/none") {
			t.Errorf("error %v, want one about the kubeconfig", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("after a minute it still waits")
	}
}

func TestStandbyEndsWhenToldTo(t *testing.T) {
	flags, pluginDir := fakeMachine(t)
	if _, err := lockInstance(t.Context(), pluginDir, func() {}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := run(ctx, flags, noEnv, &bytes.Buffer{}); err != nil {
		t.Errorf("error %v", err)
	}
}

// The probe runs in an init container of the daemon that stands by, beside the
// one that has the node.
func TestProbeBesideADaemonWritesOnlyItsAnswer(t *testing.T) {
	flags, pluginDir := fakeMachine(t)
	if _, err := lockInstance(t.Context(), pluginDir, func() {}); err != nil {
		t.Fatal(err)
	}
	cdiDir := filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(pluginDir))), "cdi")
	left := map[string]string{
		// A grant that is not on record yet, as between two steps of Prepare.
		filepath.Join(cdiDir, "dra.numa-claim_uid-1.json"): "{}",
		filepath.Join(pluginDir, "checkpoint.json.new"):    "half",
	}
	for path, text := range left {
		files.Write(t, path, text)
	}
	err := run(t.Context(), append([]string{"probe"}, flags...), noEnv, &bytes.Buffer{})
	if err != nil && !errors.Is(err, ledger.ErrDamaged) { // a spec without a checkpoint
		t.Fatal(err)
	}
	for path, text := range left {
		if now, err := os.ReadFile(path); err != nil || string(now) != text {
			t.Errorf("%s: %q, %v", path, now, err)
		}
	}
	if _, err := os.Stat(filepath.Join(pluginDir, ledger.CheckpointName)); !os.IsNotExist(err) {
		t.Errorf("a checkpoint is written: %v", err)
	}
}

// A probe that cannot tell, as on a node without an idle CPU, leaves the answer
// of this boot.
func TestProbeKeepsTheAnswerOfThisBoot(t *testing.T) {
	for before, want := range map[string]string{
		"":                     "none",
		testBoot + " kernel\n": "kernel",
		testBoot + " none\n":   "none",
		testBoot + " newer\n":  "none", // of a build that knows another mode
		"older kernel\n":       "none",
	} {
		flags, pluginDir := fakeMachine(t)
		if before != "" {
			files.Write(t, filepath.Join(pluginDir, probeFile), before)
		}
		if err := run(t.Context(), append([]string{"probe"}, flags...), noEnv, &bytes.Buffer{}); err != nil {
			t.Fatal(err)
		}
		answer, err := os.ReadFile(filepath.Join(pluginDir, probeFile))
		if string(answer) != testBoot+" "+want+"\n" || err != nil {
			t.Errorf("after %q: %q, %v, want %s", before, answer, err, want)
		}
	}
}
