package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// sleeper is a process that may run on two CPUs of this machine, as the fake
// cgroup of a container says, too.
func sleeper(t *testing.T) (host host, pid int, first, second int) {
	t.Helper()
	mine, err := affinity(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if mine.Size() < 2 {
		t.Skipf("this test may run on cpus %s only, want two", mine)
	}
	first, _ = mine.First()
	second, _ = mine.Difference(cpuset.New(first)).First()
	command := exec.Command("sleep", "60")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	both := cpuset.New(first, second)
	if err := setAffinity(command.Process.Pid, both); err != nil {
		t.Fatal(err)
	}
	host = fakeHost(t)
	host.proc = "/proc"
	files.Write(t, host.cgroups+"/k/pod/abc/cpuset.cpus.effective", both.String()+"\n")
	return host, command.Process.Pid, first, second
}

func TestIdleCPUsAreNotRunOn(t *testing.T) {
	host, pid, first, second := sleeper(t)
	if err := keepIdle(host, pid, "k/pod/abc", cpuset.New(second)); err != nil {
		t.Fatal(err)
	}
	if got, err := affinity(pid); err != nil || got != cpuset.New(first) {
		t.Errorf("runs on cpus %s, %v, want %d", got, err, first)
	}
	// What an earlier claim of the container keeps idle stays so: nothing is left.
	err := keepIdle(host, pid, "k/pod/abc", cpuset.New(first))
	if err == nil || !strings.Contains(err.Error(), "sched_setaffinity of thread ") {
		t.Errorf("all CPUs idle: error %v", err)
	}
	if got, err := affinity(pid); err != nil || got != cpuset.New(first) {
		t.Errorf("after an error it runs on cpus %s, %v, want %d", got, err, first)
	}
}

func TestIdleCPUsOfNoProcess(t *testing.T) {
	host := fakeHost(t)
	if err := keepIdle(host, 1<<30, "k/pod/abc", cpuset.New(5)); err == nil || !strings.Contains(err.Error(), "sched_getaffinity") {
		t.Errorf("no process: error %v", err)
	}
	if err := keepIdle(host, os.Getpid(), "k/pod/xyz", cpuset.New(5)); err == nil || !strings.Contains(err.Error(), "k/pod/xyz/cpuset.cpus.effective") {
		t.Errorf("no cgroup: error %v", err)
	}
}
