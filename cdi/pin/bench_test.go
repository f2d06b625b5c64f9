package pin

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// BenchmarkPlanAmong220Pods is what the hook does by itself before it writes: read the
// cgroups of a full node from real files, and plan. The baseline reads the one file
// without which there is no plan.
func BenchmarkPlanAmong220Pods(b *testing.B) {
	dir := b.TempDir()
	write := func(group string) {
		for name, text := range map[string]string{
			"cgroup.controllers": "cpuset\n", "cgroup.subtree_control": "cpuset\n", "cgroup.procs": "",
			exclusiveFile: "\n", partitionFile: "member\n", cpusFile: "\n", memsFile: "\n",
		} {
			files.Write(b, filepath.Join(dir, group, name), text)
		}
	}
	for _, group := range []string{".", "kubepods", "kubepods/burstable"} {
		write(group)
	}
	for pod := range 220 {
		write(fmt.Sprintf("kubepods/burstable/pod%d", pod))
		write(fmt.Sprintf("kubepods/burstable/pod%d/container", pod))
	}
	cgroups := os.DirFS(dir)
	const container = "kubepods/burstable/pod7/container"
	want := Pinning{CPUs: cpuset.New(4, 5, 6, 7), Mems: cpuset.New(1), Partition: PartitionRoot}
	b.Run("plan", func(b *testing.B) {
		for b.Loop() {
			tree, err := readTree(cgroups, container)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := planPin(tree, container, want); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("baseline", func(b *testing.B) {
		for b.Loop() {
			if _, err := readSet(cgroups, container+"/"+exclusiveFile); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkKeeperOf50 is what a keeper does for 50 containers: poll is every half second,
// look after each event.
func BenchmarkKeeperOf50(b *testing.B) {
	m := newFake(b, false)
	for i := range 50 {
		dir := fmt.Sprintf("kubepods/burstable/pod%d/c%d", i, i)
		running(m, dir)
		mustPin(m, dir, ScopeContainer, claimed(fmt.Sprint(i), "", "1", PartitionNone))
	}
	k := keeper(m.host(), nil)
	cgroups, healthy := k.pass(b.Context(), &watch{})
	if len(cgroups) != 50 || !healthy {
		b.Fatalf("%d cgroups, healthy %v", len(cgroups), healthy)
	}
	b.Run("poll", func(b *testing.B) {
		for b.Loop() {
			if k.states(cgroups) != k.last {
				b.Fatal("the states differ")
			}
		}
	})
	b.Run("look", func(b *testing.B) {
		for b.Loop() {
			if v, err := k.look(&watch{}); err != nil || len(v.wrong) > 0 {
				b.Fatal(v.causes, err)
			}
		}
	})
}
