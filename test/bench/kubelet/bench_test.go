package kubelet

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/pick"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/trace"
	"github.com/dra-driver-numa/dra-driver-numa/test/measure"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// fragmented are CPUs of the machine that are held, in no order: of every ten cores four
// are held, and two have one thread that is.
func fragmented(m numa.Machine) (held cpuset.Set) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, core := range m.Cores {
		switch dice := r.IntN(10); {
		case dice < 4:
			held = held.Union(core.CPUs)
		case dice < 6:
			for cpu := range core.CPUs.All() {
				held.Insert(cpu)
				break
			}
		}
	}
	return held
}

// BenchmarkChoose chooses CPUs of NUMA node 1 for a claim, and gives them back, in memory.
// All choose from the same CPUs, with the NUMA node given: the scheduler gives it to the
// driver, and the Topology Manager to the kubelet. Ours and first fit also take the CPUs
// out of the free ones and put them back, because that is part of what the kubelet's
// Allocate and RemoveContainer do.
func BenchmarkChoose(b *testing.B) {
	for _, cpus := range measure.Sizes() {
		m := sample.Read(b, sample.Sized(cpus))
		held := fragmented(m)
		for _, n := range slices.Compact([]int{measure.Claim, cpus / 8}) {
			b.Run(fmt.Sprintf("cpus=%d/claim=%d", cpus, n), func(b *testing.B) { choose(b, m, held, n) })
		}
	}
}

func choose(b *testing.B, m numa.Machine, held cpuset.Set, cpus int) {
	b.Helper()
	free := m.Online.Difference(held)
	picker, request := pick.New(m), pick.Request{CPUs: cpus, Zones: []int{1}}
	b.Run("ours", func(b *testing.B) {
		measure.Loop(b, func() error {
			choice, err := picker.Pick(free, request)
			if err != nil {
				return err
			}
			free = free.Difference(choice.CPUs)
			free = free.Union(choice.CPUs)
			return nil
		})
	})
	for _, variant := range []struct {
		name    string
		options map[string]string
	}{
		{"kubelet", nil},
		{"kubelet-uncore", map[string]string{"prefer-align-cpus-by-uncorecache": "true"}},
	} {
		b.Run(variant.name, func(b *testing.B) {
			node, err := New(m, Config{Held: map[string]cpuset.Set{"other": held}, Options: variant.options})
			if err != nil {
				b.Fatal(err)
			}
			pair(b, node, 1, cpus)
		})
	}
	b.Run("firstfit", func(b *testing.B) {
		first := trace.NewFirstFit(m, held.Union(m.Zones[0].CPUs))
		measure.Loop(b, func() error {
			picked, err := first.Place(0, cpus)
			if err != nil {
				return err
			}
			return first.Release(0, picked)
		})
	})
}

// pair allocates CPUs of the NUMA node to a pod, and takes them back.
func pair(b *testing.B, node *Node, zone, cpus int) {
	b.Helper()
	if err := node.Hint(zone); err != nil {
		b.Fatal(err)
	}
	pod := Pod("measured", cpus)
	measure.Loop(b, func() error {
		if err := node.Allocate(pod); err != nil {
			return err
		}
		return node.Release("measured")
	})
	if err := node.Allocate(pod); err != nil {
		b.Fatal(err)
	}
	if got, err := node.CPUs("measured"); err != nil || got.Size() != cpus {
		b.Fatalf("the pod has cpus %s, %v", got, err)
	}
}

// BenchmarkPair is the kubelet's side of BenchmarkPrepareUnprepare in package driver: the
// same claims hold CPUs of the same machine, and the checkpoint is in memory. The kubelet
// writes it four times. It syncs each, which takes no time in memory. disk is in TMPDIR.
func BenchmarkPair(b *testing.B) {
	memory := b.TempDir()
	if shared, err := os.MkdirTemp("/dev/shm", "dra-numa"); err == nil {
		b.Cleanup(func() { _ = os.RemoveAll(shared) })
		memory = shared
	}
	for _, load := range measure.Loads() {
		b.Run(load.String(), func(b *testing.B) { loadedPair(b, memory, load) })
	}
	b.Run("disk", func(b *testing.B) { loadedPair(b, b.TempDir(), measure.Load{CPUs: 512, Claims: 32, Each: 8}) })
}

func loadedPair(b *testing.B, dir string, load measure.Load) {
	b.Helper()
	dir, err := os.MkdirTemp(dir, "")
	if err != nil {
		b.Fatal(err)
	}
	m := sample.Read(b, sample.Sized(load.CPUs))
	config := Config{Reserved: cpuset.New(0, 1), StateDir: dir, Held: map[string]cpuset.Set{}}
	picker, free := pick.New(m), m.Online.Difference(config.Reserved)
	for i := range load.Claims {
		choice, err := picker.Pick(free, pick.Request{CPUs: load.Each, Zones: []int{i % 2}})
		if err != nil {
			b.Fatal(err)
		}
		free, config.Held[fmt.Sprintf("other-%d", i)] = free.Difference(choice.CPUs), choice.CPUs
	}
	node, err := New(m, config)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("pair", func(b *testing.B) { pair(b, node, 0, measure.Claim) })
}
