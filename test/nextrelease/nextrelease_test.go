package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

const root = "../.."

// program builds dra-numa of the next release.
func program(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := write(root, dir); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", dir+"/overlay.json", "-o", dir+"/dra-numa", "./cmd/dra-numa")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	return dir + "/dra-numa"
}

// node is a machine without a kubelet and an API server. It returns the flags of a daemon
// there, and where that writes its checkpoint.
func node(t *testing.T) (flags []string, checkpoint string) {
	t.Helper()
	dir := t.TempDir()
	machine := fake.Machine{Sockets: 1, CoresPerSocket: 2, Threads: 2, Numbering: fake.Adjacent, MemoryBytes: 1 << 30}
	if err := machine.Write(dir); err != nil {
		t.Fatal(err)
	}
	files.Write(t, dir+"/proc/sys/kernel/random/boot_id", "boot-1\n")
	files.Write(t, dir+"/cdi/other.json", "{}")
	hook := dir + "/kubelet/plugins/dra.numa-hook/numa-pin"
	files.Write(t, hook, "#!/bin/sh\n")
	if err := os.Chmod(hook, 0o755); err != nil {
		t.Fatal(err)
	}
	files.Write(t, dir+"/kubeconfig", "{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a}}], clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]}")
	return []string{
		"--node-name=node-1", "--machine-root=" + dir, "--kubelet-root=" + dir + "/kubelet", "--cdi-dir=" + dir + "/cdi",
		"--cgroup-root=" + dir + "/none", "--kubeconfig=" + dir + "/kubeconfig", "--listen=127.0.0.1:0", "--exclusivity=none", "--nri-socket=",
	}, filepath.Join(dir, "kubelet/plugins/dra.numa", driver.CheckpointName)
}

// The daemon of the next release writes a checkpoint that it reads, and that this tree
// refuses: what the end-to-end suite needs to roll back from it.
func TestNextReleaseWritesANewerCheckpoint(t *testing.T) {
	dranuma := program(t)
	flags, checkpoint := node(t)
	daemon := exec.CommandContext(t.Context(), dranuma, flags...)
	var log strings.Builder
	daemon.Stdout, daemon.Stderr = &log, &log
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(checkpoint); err == nil {
			break
		}
	}
	_ = daemon.Process.Signal(syscall.SIGKILL) // with an error if it has ended
	_ = daemon.Wait()                          // it was killed
	text, err := os.ReadFile(checkpoint)
	if err != nil {
		t.Fatalf("%v; the daemon says:\n%s", err, &log)
	}
	if !strings.HasSuffix(string(text), `,"release":"next"}}`+"\n") {
		t.Errorf("checkpoint %s, want one with the field release", text)
	}
	if out, err := exec.CommandContext(t.Context(), dranuma, "checkpoint", "verify", checkpoint).CombinedOutput(); err != nil {
		t.Errorf("the next release does not read it: %v\n%s", err, out)
	}
	var version int
	if _, err := fmt.Sscanf(string(text), `{"version":%d,`, &version); err != nil {
		t.Fatal(err)
	}
	_, err = driver.DecodeCheckpoint(text)
	if want := fmt.Sprintf("version %d, newest known is %d; ", version, version-1); !errors.Is(err, driver.ErrDamaged) || !strings.Contains(err.Error(), want) {
		t.Errorf("this tree says %v, want an error with %q", err, want)
	}
}

// An edit that does not suit the source any more is an error, and not the same release
// under another name.
func TestEditsSuitTheSource(t *testing.T) {
	read := func(file string) (string, error) { return files.Read(t, root+"/"+file), nil }
	if changed, err := apply(read); err != nil || len(changed) != 4 {
		t.Errorf("%d changed files, %v, want 4", len(changed), err)
	}
	for name, change := range map[string]func(string) string{
		"no version": func(text string) string { return strings.ReplaceAll(text, "checkpointVersion ", "latest ") },
		"no such line": func(text string) string {
			return strings.ReplaceAll(text, "type Checkpoint struct", "type State struct")
		},
		"twice": func(text string) string { return text + text },
	} {
		if changed, err := apply(func(file string) (string, error) {
			text, err := read(file)
			return change(text), err
		}); err == nil || changed != nil {
			t.Errorf("%s: %d changed files, %v, want an error", name, len(changed), err)
		}
	}
}
