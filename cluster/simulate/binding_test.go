package simulate

import (
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/funnel"
)

// The scheduler binds a pod when the binding conditions of its devices are True, and refuses a
// claim of which a failure condition is True.
func TestBindingConditionsOfAllocatedClaims(t *testing.T) {
	node := strings.ReplaceAll(gpuNode("n1", 2), "n1-slice", "s")
	status := func(conditions string, users ...string) string {
		conditions = "\n  devices: [{driver: dra.numa, pool: n1, device: gpu-0, conditions: [" + conditions + "]}]\n"
		binding := "bindingConditions: [Attached, Tested], bindingFailureConditions: [Broken]"
		return reserved(claim("c", gpuRequest, allocated("gpu", "dra.numa", "gpu-0", binding)+strings.TrimPrefix(conditions, "\n")), users...)
	}
	const (
		attached = "{type: Attached, status: 'True'}, "
		tested   = "{type: Tested, status: 'True'}"
		broken   = "{type: Broken, status: 'True', reason: NoPower, message: no power}"
		refused  = "ResourceClaim c cannot be used: device gpu-0 of driver dra.numa has the binding failure condition Broken: NoPower: no power"
	)
	explained := func(gates, conditions string, users ...string) Explanation {
		s := read(t, gpuClass, node, status(conditions, users...), using("p", "c"))
		e, err := cluster(t, s, gates).ExplainPod(t.Context(), s.Pod("default", "p"))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	for conditions, unmet := range map[string][]string{
		attached + tested:                   nil,
		attached:                            {"Tested"},
		"{type: Attached, status: 'False'}": {"Attached", "Tested"},
		"":                                  {"Attached", "Tested"},
	} {
		e := explained("", conditions, "p")
		if e.Node != "n1" || len(e.Notes) != len(unmet) {
			t.Errorf("%s: %s, %q", conditions, e.Sentence, e.Notes)
			continue
		}
		for i, name := range unmet {
			want := "the scheduler waits for the binding condition " + name + " of device gpu-0 of driver dra.numa, which ResourceClaim c holds"
			if !strings.HasPrefix(e.Notes[i], want) {
				t.Errorf("%s: note %q, want %q", conditions, e.Notes[i], want)
			}
		}
	}
	expectBlocked(t, explained("", attached+tested+", "+broken, "p"), funnel.StageNode, refused, "the scheduler frees the claim's devices, and then allocates again")
	expectBlocked(t, explained("", broken, "p", "other"), funnel.StageNode, refused, "delete the other pods for which the claim is reserved")
	if e := explained("DRADeviceBindingConditions=false", broken, "p"); e.Node != "n1" || len(e.Notes) > 0 {
		t.Errorf("without the gate: %s, %q", e.Sentence, e.Notes)
	}
	wantReason(t, run(t, gpuClass, node, status(broken), using("p", "c")), "p", refused)
}
