package simulate

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/funnel"
)

// bindingOf says why the scheduler refuses an allocated claim on every node, or what it waits
// for before it binds the pod. It mirrors isClaimReadyForBinding of the scheduler's plugin,
// which looks for failures only up to the first device that is not ready.
func (c *Cluster) bindingOf(pod *corev1.Pod, claim *resourceapi.ResourceClaim) (refused funnel.Cause, waits []string) {
	if claim.Status.Allocation == nil || !c.features.DeviceBindingAndStatus {
		return nil, nil
	}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if len(result.BindingConditions) == 0 {
			continue
		}
		conditions := conditionsOf(claim, result)
		for _, name := range result.BindingFailureConditions {
			if found := meta.FindStatusCondition(conditions, name); found != nil && found.Status == metav1.ConditionTrue && len(waits) == 0 {
				others := slices.ContainsFunc(claim.Status.ReservedFor, func(user resourceapi.ResourceClaimConsumerReference) bool { return user.UID != pod.UID })
				return funnel.NotBound{Claim: claim.Name, Device: result.Device, Driver: result.Driver, Failure: *found, Shared: others}, nil
			}
		}
		for _, name := range result.BindingConditions {
			if !meta.IsStatusConditionTrue(conditions, name) {
				waits = append(waits, fmt.Sprintf("the scheduler waits for the binding condition %s of device %s of driver %s, which ResourceClaim %s holds: "+
					"it gives up 10 minutes after the allocation, or after its bindingTimeout", name, result.Device, result.Driver, claim.Name))
			}
		}
	}
	return nil, waits
}

// conditionsOf returns what the driver says of an allocated device.
func conditionsOf(claim *resourceapi.ResourceClaim, result resourceapi.DeviceRequestAllocationResult) []metav1.Condition {
	for _, device := range claim.Status.Devices {
		if device.Driver == result.Driver && device.Pool == result.Pool && device.Device == result.Device {
			return device.Conditions
		}
	}
	return nil
}
