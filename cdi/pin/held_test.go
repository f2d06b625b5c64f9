package pin

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

func TestHoldingsAreThePartitions(t *testing.T) {
	files := cgroupFS(t, `
k 4-7
k/be 4-5
k/be/p 4-5
k/be/p/c 4-5 root 4-5
k/bu 6-7
k/bu/q 6-7 root_invalid_(x) 6
k/bu/tenant 0-99 root_invalid_(x) 6
k/idle
sys 9
vm - isolated 8`)
	files["nocpuset/cgroup.procs"] = &fstest.MapFile{}
	list, err := Holdings(files)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, h := range list {
		fmt.Fprintf(&got, "%s %s %s\n", h.Cgroup, h.CPUs, h.State)
	}
	want := "k/be/p/c 4-5 root\nk/bu/q 6-7 root invalid (x)\nk/bu/tenant 6-7 root invalid (x)\nvm 8 isolated\n"
	if got.String() != want {
		t.Errorf("holdings\n%swant\n%s", got.String(), want)
	}
}

func TestHoldingsWithoutPartitionsAndWithDamage(t *testing.T) {
	if list, err := Holdings(fstest.MapFS{"cpuset/cgroup.procs": {}}); err != nil || list != nil {
		t.Errorf("on cgroup v1: %v, %v", list, err)
	}
	files := cgroupFS(t, "k 4-7\nk/c 4-7 root 4-7")
	files["k/c/"+exclusiveFile].Data = []byte("4-x")
	if list, fault, err := ReadHoldings(files); err != nil || len(list) != 1 || list[0] != (Holding{"k/c", parse("4-7"), unread}) || fault == nil {
		t.Errorf("with damage: %v, %v, %v; want all that the cgroup may have, and a fault", list, fault, err)
	}
}

func TestHoldingsOfSomeCPUs(t *testing.T) {
	files := cgroupFS(t, "vm - isolated 8")
	if list, err := HoldingsOf(files, parse("8")); err != nil || list != nil {
		t.Errorf("without the cpuset controller: %v, %v", list, err)
	}
	files[rootCPUsFile] = &fstest.MapFile{Data: []byte("0-7,9\n")}
	for cpus, want := range map[string]int{"": 0, "0-3": 0, "7-8": 1, "8": 1} {
		if list, err := HoldingsOf(files, parse(cpus)); err != nil || len(list) != want {
			t.Errorf("of cpus %s: %v, %v, want %d", cpus, list, err, want)
		}
	}
	files[rootCPUsFile].Data = []byte("0-x")
	if list, err := HoldingsOf(files, parse("8")); err == nil {
		t.Errorf("with damage: %v, want an error", list)
	}
}

func TestKernelHoldings(t *testing.T) {
	k := needKernel(t)
	container := k.create("pintest-pods/burstable/pod/holdings")
	want := exclusive("4-5", "")
	k.pin(container, want)
	list, err := Holdings(k.root.FS())
	if err != nil || len(list) != 1 || list[0] != (Holding{container, want.CPUs, "root"}) {
		t.Errorf("holdings %v, %v; want cpus 4-5 of %s", list, err, container)
	}
	k.remove("pintest-pods")
	if list, err := Holdings(k.root.FS()); err != nil || len(list) != 0 {
		t.Errorf("holdings %v, %v after the container is gone", list, err)
	}
}
