package simulate

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/test/scenario"
)

// A simulation that goes on from the objects of another one says the same as one simulation of
// all pods.
func TestObjectsGoOnWhereASimulationEnded(t *testing.T) {
	later := 0
	for seed := range uint64(scenarios) {
		name, gates := fmt.Sprintf("s%d", seed), ""
		made := scenario.New(name, seed)
		if seed%2 > 0 {
			made, gates = scenario.NewAllocatable(name, seed), gateNodeAllocatable+"=true"
		}
		snapshotOf := func() *snapshot.Snapshot {
			s, err := made.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		run := func(c *Cluster, pods []*corev1.Pod) Result {
			result, err := c.Run(t.Context(), pods, Options{})
			if err != nil {
				t.Fatal(err)
			}
			return result
		}

		s := snapshotOf()
		pods := s.Waiting()
		whole := run(cluster(t, s, gates), pods)

		firstPods := pods[:len(pods)/2]
		first := cluster(t, snapshotOf(), gates)
		begun := run(first, firstPods)
		again := snapshotOf()
		for _, object := range first.Objects(begun.Pods) {
			text, err := yaml.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			if err := again.Read("placed", bytes.NewReader(text)); err != nil {
				t.Fatal(err)
			}
		}
		rest := slices.DeleteFunc(again.Waiting(), func(pod *corev1.Pod) bool {
			return slices.ContainsFunc(firstPods, func(other *corev1.Pod) bool { return keyOf(other) == keyOf(pod) })
		})
		ended := run(cluster(t, again, gates), rest)
		got := Result{Pods: slices.Concat(begun.Pods, ended.Pods), Unschedulable: slices.Concat(begun.Unschedulable, ended.Unschedulable)}
		if diff := cmp.Diff(where(whole), where(got)); diff != "" {
			t.Errorf("%s, at once (-) and in two runs (+):\n%s", name, diff)
		}
		later += len(ended.Pods)
	}
	if later < scenarios/2 {
		t.Errorf("only %d pods were placed in second runs", later)
	}
}
