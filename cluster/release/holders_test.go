package release

import (
	"slices"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestHoldersAreThePodsOfPreparedClaims(t *testing.T) {
	claim := func(name string, users []string, drivers ...string) resourceapi.ResourceClaim {
		c := resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
		for _, user := range users {
			c.Status.ReservedFor = append(c.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: user})
		}
		if len(drivers) > 0 {
			c.Status.Allocation = &resourceapi.AllocationResult{}
			for _, driver := range drivers {
				c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{Driver: driver, Pool: "node-1"})
			}
		}
		return c
	}
	workload := claim("workload", []string{"group"}, "ours")
	workload.Status.ReservedFor[0].Resource = "podgroups"
	got := Holders([]resourceapi.ResourceClaim{
		claim("shared", []string{"b", "a"}, "other", "ours", "ours"),
		claim("unused", nil, "ours"),
		claim("waiting", []string{"c"}),
		claim("foreign", []string{"d"}, "other"),
		workload,
	}, "ours")
	want := []string{
		"podgroups team/group has claim workload on node node-1",
		"team/a has claim shared on node node-1", "team/b has claim shared on node node-1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
