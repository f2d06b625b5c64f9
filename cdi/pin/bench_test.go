package pin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/measure"
)

// BenchmarkHook is what the hook does by itself before it writes: read the cgroups of a
// node with as many pods from real files, and plan. The baseline reads the one file
// without which there is no plan.
func BenchmarkHook(b *testing.B) {
	for _, pods := range measure.Counts() {
		b.Run(fmt.Sprintf("claims=%d", pods), func(b *testing.B) { benchmarkHook(b, pods) })
	}
}

func benchmarkHook(b *testing.B, pods int) {
	b.Helper()
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
	for pod := range pods {
		write(fmt.Sprintf("kubepods/burstable/pod%d", pod))
		write(fmt.Sprintf("kubepods/burstable/pod%d/container", pod))
	}
	cgroups := os.DirFS(dir)
	const container = "kubepods/burstable/pod0/container"
	want := Pinning{CPUs: cpuset.New(4, 5, 6, 7), Mems: cpuset.New(1), Partition: PartitionRoot}
	b.Run("plan", func(b *testing.B) {
		measure.Loop(b, func() error {
			tree, err := readTree(cgroups, container)
			if err != nil {
				return err
			}
			_, err = planPin(tree, container, want)
			return err
		})
	})
	b.Run("baseline", func(b *testing.B) { readOne(b, dir, container+"/"+exclusiveFile) })
}

// readOne is the baseline of what reads many files.
func readOne(b *testing.B, dir, name string) {
	b.Helper()
	root := os.DirFS(dir)
	measure.Loop(b, func() error {
		_, err := readSet(root, name)
		return err
	})
}

// BenchmarkKeeper is what a keeper does for the containers of as many claims: poll is
// every half second, look after each event. The baseline reads one file.
func BenchmarkKeeper(b *testing.B) {
	for _, claims := range measure.Counts() {
		b.Run(fmt.Sprintf("claims=%d", claims), func(b *testing.B) {
			m := newFake(b, false)
			for i := range claims {
				dir := fmt.Sprintf("kubepods/burstable/pod%d/c%d", i, i)
				running(m, dir)
				mustPin(m, dir, ScopeContainer, claimed(fmt.Sprint(i), "2", "1", PartitionNone))
			}
			k := keeper(m.host(), nil)
			healthy := k.pass(b.Context(), &watch{})
			last := fmt.Sprintf("kubepods/burstable/pod%d/c%d/%s", claims-1, claims-1, cpusFile)
			m.write(last, "3")
			if !healthy || !k.states.Changed(k.Host.Cgroups.FS()) {
				b.Fatalf("healthy %v, follows %s: false", healthy, last)
			}
			m.write(last, "2")
			k.states.Changed(k.Host.Cgroups.FS())
			b.Run("poll", func(b *testing.B) {
				measure.Loop(b, func() error {
					if k.states.Changed(k.Host.Cgroups.FS()) {
						return errors.New("the states differ")
					}
					return nil
				})
			})
			b.Run("look", func(b *testing.B) {
				measure.Loop(b, func() error {
					v, err := k.look(&watch{})
					if err == nil && len(v.wrong) > 0 {
						err = fmt.Errorf("%v", v.causes)
					}
					return err
				})
			})
			b.Run("baseline", func(b *testing.B) { readOne(b, m.dir, "kubepods/burstable/pod0/c0/"+memsFile) })
		})
	}
}

// BenchmarkLookout is what the daemon does each second on a machine with 1024 CPUs: tick
// while nothing changes, look when something has. Each claim has a partition of two CPUs
// in one pod, and there are as many other pods. The baseline reads one file.
func BenchmarkLookout(b *testing.B) {
	for _, claims := range measure.Counts() {
		b.Run(fmt.Sprintf("claims=%d", claims), func(b *testing.B) { benchmarkLookout(b, claims) })
	}
}

func benchmarkLookout(b *testing.B, claims int) {
	b.Helper()
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
	write("kubepods", "12-1023", member)
	write("kubepods/burstable", "12-1023", member)
	for pod := range claims {
		write(fmt.Sprintf("kubepods/burstable/other%d", pod), "", member)
		group := fmt.Sprintf("kubepods/burstable/pod%d", pod)
		cpus := cpuset.New(12+2*pod, 13+2*pod)
		r := record{Boot: "boot", Cgroup: group + "/container", Scope: ScopeContainer, Claims: []Claim{claimed(fmt.Sprint(pod), cpus.String(), "", PartitionRoot)}}
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
		if err != nil || sight.Unread != nil || len(sight.Live) != claims || sight.Live[0].Fault != "" || len(sight.Holdings) != claims {
			b.Fatalf("%d live, %d partitions, %v, %v", len(sight.Live), len(sight.Holdings), sight.Unread, err)
		}
	}
	b.Run("tick", func(b *testing.B) {
		measure.Loop(b, func() error {
			if l.Changed() {
				return errors.New("something has changed")
			}
			return nil
		})
	})
	b.Run("look", func(b *testing.B) {
		measure.Loop(b, func() error {
			_, err := l.Look(time.Now())
			return err
		})
	})
	b.Run("baseline", func(b *testing.B) { readOne(b, dir, "kubepods/"+exclusiveFile) })
}
