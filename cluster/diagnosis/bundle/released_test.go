package bundle

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An archive of 2026-11-21, from before a share was one of several kinds, opens: its
// claims hold what they held, and its pods get the devices that they got.
func TestOldBundlesOpen(t *testing.T) {
	file, err := os.Open("testdata/2026-11-21.tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	b, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	state := b.Facts.States["n1.example.com"]
	if state == nil || len(state.Checkpoint.Grants) != 2 || len(state.Pins) != 1 {
		t.Fatalf("the state of the node is %+v", state)
	}
	shares := map[string]string{}
	for _, grant := range state.Checkpoint.Grants {
		for _, share := range grant.Shares {
			switch zone, function := share.Zone(), share.Function(); {
			case zone != nil && function == nil:
				shares[grant.Name+"/"+share.Request] = share.Device + " " + zone.CPUs.String()
			case function != nil && zone == nil:
				shares[grant.Name+"/"+share.Request] = share.Device + " " + function.Address
			}
		}
	}
	want := map[string]string{"c/r": "numa-0 4-5", "c/card": "nic-0000-3b-00-0 0000:3b:00.0", "only-a-card/card": "nvme-0000-5e-00-0 0000:5e:00.0"}
	if diff := cmp.Diff(want, shares); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
	// The archive has no PodDisruptionBudgets, which is said.
	if len(b.Facts.Unread) != 1 || len(b.Facts.Missing) != 2 || b.Facts.Missing[1].Setting != BudgetsSetting || len(b.Logs) != 2 {
		t.Errorf("unread is %v, missing %v, logs %d", b.Facts.Unread, b.Facts.Missing, len(b.Logs))
	}
	placed := map[string]string{}
	for _, pod := range simulated(t, b.Facts.Objects).Pods {
		placed[pod.Pod] = pod.Node
		for _, claim := range pod.Claims {
			for _, allocation := range claim.Allocations {
				placed[pod.Pod] += " " + allocation.Request + "=" + allocation.Device
			}
		}
	}
	then := map[string]string{"default/s7-p0": "s7-n0 r0/s0=zone-0 r1=zone-0", "default/s7-p1": "s7-n0"}
	if diff := cmp.Diff(then, placed); diff != "" {
		t.Errorf("placements (-then +now):\n%s", diff)
	}
}
