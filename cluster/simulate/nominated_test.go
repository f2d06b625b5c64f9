package simulate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/funnel"
)

// prioritized is a pod that requests CPUs.
func prioritized(name string, priority, cpus int, spec, status string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec: {priority: %d, containers: [%s]%s}
status: {%s}
---`, name, priority, container("main", fmt.Sprintf("cpu: %d", cpus)), spec, status)
}

// The scheduler keeps room for pods that it has nominated for a node, except from pods of
// higher priority.
func TestRoomIsKeptForNominatedPods(t *testing.T) {
	const nominated = "nominatedNodeName: n1"
	for name, tc := range map[string]struct{ other, want string }{
		"higher priority": {prioritized("other", 6, 3, "", nominated), "the pod requests cpu 2, but only 1 of 4 are free"},
		"same priority":   {prioritized("other", 5, 3, "", nominated), "the pod requests cpu 2, but only 1 of 4 are free"},
		"lower priority":  {prioritized("other", 4, 3, "", nominated), ""},
		"other node":      {prioritized("other", 6, 3, "", "nominatedNodeName: n2"), ""},
		"ended":           {prioritized("other", 6, 3, "", nominated+", phase: Failed"), ""},
		"no more pods":    {prioritized("other", 6, 0, "", nominated) + prioritized("runs", 0, 0, ", nodeName: n1", ""), "the node already runs its maximum of 2 pods"},
	} {
		e := explain(t, nodeWith("n1", "", "cpu: 4, pods: 2"), tc.other, prioritized("p", 5, 2, "", ""))
		if len(e.Nodes) != 1 || e.Nodes[0].Sentence != tc.want {
			t.Errorf("%s: %+v, want %q", name, e.Nodes, tc.want)
		}
		if name == "higher priority" && !slices.ContainsFunc(e.Nodes[0].Obstacles[0].HeldBy, func(h funnel.Holder) bool { return h.Assumed && h.Pods[0] == "default/other" }) {
			t.Errorf("held by %+v", e.Nodes[0].Obstacles[0].HeldBy)
		}
	}
	// A pod takes its own room, and then only once.
	got := run(t, nodeWith("n1", "", "cpu: 4, pods: 9"), prioritized("first", 6, 3, "", nominated), prioritized("second", 5, 1, "", ""))
	if len(got.Pods) != 2 {
		t.Errorf("placed\n%s", where(got))
	}
}

// Preemption is not simulated. It can help only where nothing else is missing.
func TestPreemptionIsNamedWhereItHelps(t *testing.T) {
	low := prioritized("low", 1, 3, ", nodeName: n1", "")
	zones := zonedNode("n1", []zone{{4, 1, "8Gi"}})
	big := strings.Replace(claimingPod("p", "requests: ["+zoneRequest("zone", "cpu: 9")+"]"), "containers: [{name: main, resources: {", "priority: 5\n  containers: [{name: main, resources: {requests: {cpu: 2}, ", 1)
	for name, tc := range map[string]struct {
		manifests []string
		want      bool
	}{
		"it helps":        {[]string{zones, low, prioritized("p", 5, 2, "", "")}, true},
		"the pod fits":    {[]string{zones, low, prioritized("p", 5, 1, "", "")}, false},
		"too large":       {[]string{zones, low, prioritized("p", 5, 5, "", "")}, false},
		"same priority":   {[]string{zones, low, prioritized("p", 1, 2, "", "")}, false},
		"never":           {[]string{zones, low, prioritized("p", 5, 2, ", preemptionPolicy: Never", "")}, false},
		"other node":      {[]string{zones, low, prioritized("p", 5, 2, ", nodeSelector: {a: b}", "")}, false},
		"devices as well": {[]string{zones, zoneClass, low, big}, false},
		"devices fit":     {[]string{zones, zoneClass, low, strings.Replace(big, "cpu: 9", "cpu: 1", 1)}, true},
	} {
		e := explain(t, tc.manifests...)
		if got := slices.Contains(e.Notes, "the scheduler may preempt pods of lower priority on n1, which is not simulated"); got != tc.want {
			t.Errorf("%s: notes %q, answer %q, nodes %+v", name, e.Notes, e.Sentence, e.Nodes)
		}
	}
}
