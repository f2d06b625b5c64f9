package simulate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/funnel"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
	"github.com/dra-driver-numa/dra-driver-numa/test/scenario"
)

const scenarios = 300

// eachScenario has lists in every third scenario. The scheduler knows them, or only the API
// server does.
func eachScenario(t *testing.T, test func(t *testing.T, s *snapshot.Snapshot, gates string)) {
	for seed := range uint64(scenarios) {
		name, gates, made := fmt.Sprintf("s%d", seed), "", scenario.New
		if seed%3 == 2 {
			made = scenario.NewLists
			gates = fmt.Sprintf("%s=%t", gateListAttributes, seed%2 > 0)
		}
		s, err := made(name, seed).Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) { test(t, s, gates) })
	}
}

// The oracle asks the allocator about every node, with all slices and all holdings, and
// remembers nothing.
func TestShortCutsChangeNoAnswer(t *testing.T) {
	placed, unplaced, aborted := 0, 0, 0
	eachScenario(t, func(t *testing.T, s *snapshot.Snapshot, gates string) {
		c := cluster(t, s, gates)
		for _, pod := range s.Waiting() {
			want, abort := oracle(t, c, s, pod.Name)
			got, err := c.Place(t.Context(), pod, Options{AllNodes: true})
			if err != nil {
				t.Fatal(err)
			}
			if (got.Aborted != nil) != abort {
				t.Fatalf("pod %s: gave up: %v, the oracle: %t", pod.Name, got.Aborted, abort)
			}
			if !slices.Equal(got.Feasible, want) {
				t.Fatalf("pod %s: feasible are %q, want %q", pod.Name, got.Feasible, want)
			}
			switch {
			case abort:
				aborted++
			case got.Node == "":
				unplaced++
			default:
				placed++
			}
		}
	})
	t.Logf("%d pods placed, %d not, gave up on %d", placed, unplaced, aborted)
	if min(placed, unplaced, aborted) == 0 {
		t.Error("the scenarios are too much alike")
	}
}

// oracle finds the feasible nodes of a pod.
func oracle(t *testing.T, c *Cluster, s *snapshot.Snapshot, name string) (feasible []string, abort bool) {
	t.Helper()
	pod := s.Pod("default", name)
	d, err := c.demandOf(pod)
	var why Reason
	if errors.As(err, &why) {
		return nil, false
	}
	if err != nil {
		t.Fatal(err)
	}
	held := make(inventory.Holdings)
	for _, claim := range c.claims {
		held.Add(claim, true)
	}
	var pools []*inventory.Pool
	for id := range held {
		pools = append(pools, &inventory.Pool{ID: id})
	}
	allocator, err := allocation.NewAllocator(t.Context(), c.features, held.State(pools), c.classes, allocation.NewSlices(inventory.WithTaints(s.Slices, s.TaintRules)), allocation.NewCache(10, c.features))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range c.nodes {
		if len(n.refusals(d, c.extended)) > 0 {
			continue
		}
		claims := d.toAllocate()
		if special := c.extendedClaim(d, n); special != nil {
			claims = append(claims, special)
		}
		allocations, err := allocator.Allocate(t.Context(), n.Node, claims)
		switch {
		case errors.Is(err, allocation.ErrOnNode):
		case err != nil:
			return nil, true
		case len(allocations) == len(claims):
			feasible = append(feasible, n.Name)
		}
	}
	return feasible, false
}

// No request of a feasible pod is blocked. If a pod with one request for one device is
// not feasible, a stage blocks it.
func TestExplanationsAgreeWithTheAllocator(t *testing.T) {
	blocks := make(map[funnel.Stage]int)
	eachScenario(t, func(t *testing.T, s *snapshot.Snapshot, gates string) {
		c := cluster(t, s, gates)
		for _, pod := range s.Waiting() {
			e, err := c.ExplainPod(t.Context(), pod)
			if err != nil {
				t.Fatal(err)
			}
			for _, node := range e.Nodes {
				blocks[node.Blocks]++
				if node.Feasible {
					d, _ := c.demandOf(pod)
					index, _ := c.find(node.Node)
					if blocked, _ := c.devicesOf(d, c.nodes[index]).Judge(); len(blocked) > 0 {
						t.Errorf("pod %s on node %s is feasible, but %+v", pod.Name, node.Node, blocked)
					}
				}
				if !node.Feasible && node.Sentence == "" {
					t.Errorf("pod %s on node %s: no sentence", pod.Name, node.Node)
				}
				if node.Blocks == funnel.StageTogether && len(node.Requests) == 1 && node.Requests[0].Wanted == 1 {
					t.Errorf("pod %s on node %s: %s", pod.Name, node.Node, node.Sentence)
				}
			}
			placement, err := c.Place(t.Context(), pod, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if placement.Node != e.Node {
				t.Errorf("pod %s is placed on %q, explained on %q", pod.Name, placement.Node, e.Node)
			}
			for _, refusal := range placement.Refusals {
				for _, node := range e.Nodes {
					if node.Node == refusal.Node && !strings.HasPrefix(refusal.Reason, node.Sentence) {
						t.Errorf("pod %s is refused by %s: %s\nbut explained: %s", pod.Name, node.Node, refusal.Reason, node.Sentence)
					}
				}
			}
		}
	})
	t.Logf("what blocks: %v", blocks)
	for _, stage := range []funnel.Stage{funnel.StageNode, funnel.StageDriver, funnel.StageClass, funnel.StageSelector, funnel.StageTaint, funnel.StageInUse, funnel.StageCapacity, funnel.StageConstraint, funnel.StageTogether, funnel.StageAbort} {
		if blocks[stage] == 0 {
			t.Errorf("nothing is blocked by %s: the scenarios are too much alike", stage)
		}
	}
}

func TestSameScenarioSameAnswer(t *testing.T) {
	eachScenario(t, func(t *testing.T, s *snapshot.Snapshot, gates string) {
		var texts []string
		for range 2 {
			result, err := cluster(t, s, gates).Run(t.Context(), s.Waiting(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, fmt.Sprintf("%+v", result))
		}
		if strings.Join(texts[:1], "") != texts[1] {
			t.Errorf("one answer is\n%s\nanother\n%s", texts[0], texts[1])
		}
	})
}
