package pin

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

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
		mustPin(m, dir, ScopeContainer, claimed(fmt.Sprint(i), "2", "1", PartitionNone))
	}
	k := keeper(m.host(), nil)
	if healthy := k.pass(b.Context(), &watch{}); !healthy || k.states.Len() != 50 {
		b.Fatalf("follows %d files, healthy %v", k.states.Len(), healthy)
	}
	b.Run("poll", func(b *testing.B) {
		for b.Loop() {
			if k.states.Changed(k.Host.Cgroups.FS()) {
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

// BenchmarkLookoutOn250Pods is what the daemon does each second on a machine with 512
// CPUs: tick while nothing changes, look when something has. Every second pod has a
// partition of two CPUs. The baseline reads one file.
func BenchmarkLookoutOn250Pods(b *testing.B) {
	dir, records := b.TempDir(), b.TempDir()
	write := func(group, exclusive, partition string) {
		for name, text := range map[string]string{
			"cgroup.controllers": "cpuset", "cgroup.events": "populated 1", exclusiveFile: exclusive, exclusiveFile + ".effective": exclusive,
			partitionFile: partition, cpusFile: exclusive, cpusFile + ".effective": exclusive, memsFile: "", memsFile + ".effective": "0-7",
		} {
			files.Write(b, filepath.Join(dir, group, name), text+"\n")
		}
	}
	write(".", "", "")
	write("kubepods", "12-511", member)
	write("kubepods/burstable", "12-511", member)
	for pod := range 250 {
		group := fmt.Sprintf("kubepods/burstable/pod%d", pod)
		if pod%2 == 0 {
			write(group, "", member)
			continue
		}
		cpus := cpuset.New(12+2*pod-2, 12+2*pod-1)
		r := record{"boot", group + "/container", ScopeContainer, []Claim{claimed(fmt.Sprint(pod), cpus.String(), "", PartitionRoot)}}
		r.Cgroup += fmt.Sprint(pod) // records have the names of the cgroups
		write(group, cpus.String(), member)
		write(r.Cgroup, cpus.String(), "root")
		text, err := r.render()
		if err != nil {
			b.Fatal(err)
		}
		files.Write(b, filepath.Join(records, r.file()), string(text))
	}
	l, err := NewLookout(dir, records)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	for range 2 { // the second finds nothing new to follow
		sight, err := l.Look(time.Now())
		if err != nil || sight.Unread != nil || len(sight.Live) != 125 || sight.Live[0].Fault != "" || len(sight.Holdings) != 125 {
			b.Fatalf("%d live, %d partitions, %v, %v", len(sight.Live), len(sight.Holdings), sight.Unread, err)
		}
	}
	b.Run("tick", func(b *testing.B) {
		for b.Loop() {
			if l.Changed() {
				b.Fatal("something has changed")
			}
		}
	})
	b.Run("look", func(b *testing.B) {
		for b.Loop() {
			if _, err := l.Look(time.Now()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("baseline", func(b *testing.B) {
		for b.Loop() {
			if _, err := readSet(os.DirFS(dir), "kubepods/"+exclusiveFile); err != nil {
				b.Fatal(err)
			}
		}
	})
}
