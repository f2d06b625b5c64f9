package simulate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/funnel"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// manyNodes have four zones of 16 CPUs each.
func manyNodes(b testing.TB, count int) *snapshot.Snapshot {
	manifests := []string{zoneClass}
	zones := []zone{{16, 2, "64Gi"}, {16, 2, "64Gi"}, {16, 2, "64Gi"}, {16, 2, "64Gi"}}
	for i := range count {
		manifests = append(manifests, zonedNode(fmt.Sprintf("node-%04d", i), zones))
	}
	return read(b, manifests...)
}

func addPods(b testing.TB, s *snapshot.Snapshot, count int, cpus func(i int) int) {
	var text strings.Builder
	for i := range count {
		text.WriteString(claimingPod(fmt.Sprintf("pod-%04d", i), "requests: ["+zoneRequest("zone", fmt.Sprintf("cpu: %d, memory: 1Gi", cpus(i)))+"]"))
	}
	if err := s.Read("pods", strings.NewReader(text.String())); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkRun(b *testing.B) {
	for _, bc := range []struct {
		name string
		cpus func(i int) int
		all  bool
	}{
		{"equal pods", func(int) int { return 8 }, false},
		{"a whole zone each", func(int) int { return 16 }, false},
		{"different pods", func(i int) int { return 1 + i%16 }, false},
		{"a claim of each size", func(i int) int { return 1 + i%64 }, false},
		{"equal pods, all nodes", func(int) int { return 8 }, true},
		{"different pods, all nodes", func(i int) int { return 1 + i%16 }, true},
		{"none fits", func(int) int { return 18 }, false},
	} {
		b.Run(bc.name, func(b *testing.B) {
			s := manyNodes(b, 1000)
			addPods(b, s, 1000, bc.cpus)
			for b.Loop() {
				if _, err := cluster(b, s, "").Run(b.Context(), s.Waiting(), Options{AllNodes: bc.all}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkExplain explains a pod that is too large for every node.
func BenchmarkExplain(b *testing.B) {
	s := manyNodes(b, 1000)
	addPods(b, s, 1, func(int) int { return 18 })
	for b.Loop() {
		e, err := cluster(b, s, "").ExplainPod(b.Context(), s.Waiting()[0])
		if err != nil || len(e.Nodes) != 1000 || e.Nodes[0].Blocks != funnel.StageCapacity {
			b.Fatal(e.Sentence, err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	var text strings.Builder
	for i := range 1000 {
		text.WriteString(zonedNode(fmt.Sprintf("node-%04d", i), []zone{{16, 2, "64Gi"}, {16, 2, "64Gi"}, {16, 2, "64Gi"}, {16, 2, "64Gi"}}))
	}
	for b.Loop() {
		s := &snapshot.Snapshot{}
		if err := s.Read("nodes", strings.NewReader(text.String())); err != nil {
			b.Fatal(err)
		}
	}
}
