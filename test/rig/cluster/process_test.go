package cluster

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

func TestStopEndsWhatWasStarted(t *testing.T) {
	r := &Cluster{Dir: t.TempDir(), Log: io.Discard}
	if err := r.start(7, "sleeper", "/bin/sleep", "300"); err != nil {
		t.Fatal(err)
	}
	file := pidFile(7, "sleeper")
	pid, alive := r.alive(file)
	if !alive {
		t.Fatal("not alive after start")
	}
	if err := r.stop(file); err != nil {
		t.Fatal(err)
	}
	if started := startTime(pid); started != "" {
		t.Errorf("process %d still runs, started at %s", pid, started)
	}
	if _, err := os.Stat(r.Path("pids", file)); !os.IsNotExist(err) {
		t.Errorf("its record is still there: %v", err)
	}
}

func TestRestartKeepsTheArguments(t *testing.T) {
	r := &Cluster{Dir: t.TempDir(), Log: io.Discard}
	if err := r.start(7, "sleeper", "/bin/sleep", "300", "1"); err != nil {
		t.Fatal(err)
	}
	file := pidFile(7, "sleeper")
	before, _ := r.alive(file)
	if err := r.Restart("sleeper"); err != nil {
		t.Fatal(err)
	}
	after, alive := r.alive(file)
	command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", after))
	if !alive || before == after || startTime(before) != "" || string(command) != "/bin/sleep\x00300\x001\x00" {
		t.Errorf("process %d is now %d, which runs %q (%v), and is alive: %t", before, after, command, err, alive)
	}
	if pid, err := r.Process("sleeper"); pid != after || err != nil {
		t.Errorf("Process(sleeper) = %d, %v; want %d", pid, err, after)
	}
	if err := r.stop(file); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sleeper", "other"} {
		if err := r.Restart(name); err == nil {
			t.Errorf("%s was restarted", name)
		}
		if pid, err := r.Process(name); err == nil {
			t.Errorf("%s is process %d, and it does not run", name, pid)
		}
	}
}

// The kernel gives ids of ended processes to new ones: a record of an earlier owner must
// not stop the new one.
func TestStopSparesStrangerWithRecordedID(t *testing.T) {
	r := &Cluster{Dir: t.TempDir(), Log: io.Discard}
	if err := r.start(7, "stranger", "/bin/sleep", "300"); err != nil {
		t.Fatal(err)
	}
	file := pidFile(7, "stranger")
	record, err := os.ReadFile(r.Path("pids", file))
	if err != nil {
		t.Fatal(err)
	}
	pid, _, _ := strings.Cut(string(record), " ")
	if err := os.WriteFile(r.Path("pids", "08-earlier"), []byte(pid+" 12345\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.stop("08-earlier"); err != nil {
		t.Fatal(err)
	}
	if _, alive := r.alive(file); !alive {
		t.Error("the stranger was stopped")
	}
	if err := r.stop(file); err != nil {
		t.Fatal(err)
	}
}

func TestDownOfNothingIsDone(t *testing.T) {
	if err := Down(t.TempDir()+"/none", io.Discard); err != nil {
		t.Error(err)
	}
}

func TestNewRefusesFolderOfARig(t *testing.T) {
	dir := t.TempDir() + "/rig"
	if _, err := New(dir, 2, 100, io.Discard); err != nil {
		t.Fatal(err)
	}
	if _, err := New(dir, 2, 100, io.Discard); err == nil || !strings.Contains(err.Error(), "take it down first") {
		t.Errorf("second New: %v", err)
	}
	r, err := Load(dir, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Node("numa-node-2"); err == nil || !strings.Contains(err.Error(), "numa-node-0, numa-node-1") {
		t.Errorf("Node(numa-node-2): %v, want the names that there are", err)
	}
}

func TestCheckName(t *testing.T) {
	for name, good := range map[string]bool{
		"default": true, "a": true, "gates-off": true,
		"": false, "../x": false, "A": false, "-a": false, "a-": false, "a/b": false, strings.Repeat("a", 33): false,
	} {
		if err := CheckName(name); (err == nil) != good {
			t.Errorf("CheckName(%q) = %v", name, err)
		}
	}
}
