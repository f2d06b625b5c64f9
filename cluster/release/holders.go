package release

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
)

// Holders returns the pods that use claims of a driver, one line for each pod and claim,
// sorted. The kubelet has prepared such a claim, or is about to: without the driver, the pod
// can neither start nor end.
func Holders(claims []resourceapi.ResourceClaim, driver string) (holders []string) {
	for i := range claims {
		claim := &claims[i]
		pools := poolsOf(claim, driver)
		if len(pools) == 0 {
			continue
		}
		for _, user := range claim.Status.ReservedFor {
			kind := ""
			if user.Resource != "pods" {
				kind = user.Resource + " "
			}
			holders = append(holders, fmt.Sprintf("%s%s/%s has claim %s on node %s", kind, claim.Namespace, user.Name, claim.Name, strings.Join(pools, ", ")))
		}
	}
	slices.Sort(holders)
	return holders
}

// poolsOf returns the pools of the driver that a claim has devices of. The driver names each
// pool as its node.
func poolsOf(claim *resourceapi.ResourceClaim, driver string) (pools []string) {
	if claim.Status.Allocation == nil {
		return nil
	}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver == driver && !slices.Contains(pools, result.Pool) {
			pools = append(pools, result.Pool)
		}
	}
	return pools
}
