package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestPatienceFollowsTheSpeedOfTheEmulator(t *testing.T) {
	const limit = time.Minute
	if got := (&Cluster{}).patiently(limit); got < limit {
		t.Errorf("patiently(%s) = %s on this host: no limit may be shorter than at pace 1", limit, got)
	}
	if got := (&Cluster{Speed: 10}).patiently(limit); got < 10*limit {
		t.Errorf("patiently(%s) = %s at a tenth of the speed", limit, got)
	}
}

func TestHoldStopsAProcessAndLetsItGo(t *testing.T) {
	sleeper := exec.Command("/bin/sleep", "300")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = sleeper.Process.Kill(), sleeper.Wait() }()
	ctx, cancel := context.WithCancel(t.Context())
	held := make(chan struct{})
	go func() { hold(ctx, sleeper.Process, 10); close(held) }()
	waitState(t, sleeper.Process.Pid, "T") // stopped, see proc_pid_stat(5)
	cancel()
	<-held
	waitState(t, sleeper.Process.Pid, "S")
}

func waitState(t *testing.T, pid int, want string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			t.Fatal(err)
		}
		if _, after, _ := strings.Cut(string(stat), ") "); strings.HasPrefix(after, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("state of process %d is %q, want %s", pid, stat, want)
		}
	}
}
