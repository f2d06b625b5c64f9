package simulate

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
)

// This file mirrors nodeallocatabledynamicresources.go of the scheduler's plugin
// dynamicresources. With the feature gate DRANodeAllocatableResources, a device can say
// which of its capacities are CPUs, memory or hugepages of the node. The scheduler then
// counts them like requests of the pod that holds the device. The fields are alpha.

// withResources adds to the offer what the pod takes of the node's resources, including
// its claims. The error is a Reason if the node does not have enough.
func (c *Cluster) withResources(d *demand, o offer) (offer, error) {
	o.pod, o.takes = d.pod, d.requests
	if !c.gates[gateNodeAllocatable] {
		return o, nil
	}
	pod, err := c.withClaims(d, o)
	if err != nil || len(pod.Status.NodeAllocatableResourceClaimStatuses) == 0 {
		return o, err
	}
	if text := requests.PodLevelShortage(pod); text != "" {
		return offer{}, Reason(text)
	}
	o.pod, o.takes = pod, requests.WithClaims(pod)
	if lacking := o.shortages(d, o.takes, c.deviceResources()); len(lacking) > 0 {
		return offer{}, &shortageError{lacking}
	}
	list := pod.Status.NodeAllocatableResourceClaimStatuses
	if last := &list[len(list)-1]; last.ResourceClaimName == "" {
		if c.minor < 38 {
			return offer{}, &AbortError{keyOf(d.pod).String(), o.Name, errExtendedCounts}
		}
		last.ResourceClaimName = o.claims[len(o.claims)-1].Name
	}
	return o, nil
}

// errExtendedCounts is the error if a device of an extended resource counts as the
// node's own resources. Before Kubernetes 1.38, the scheduler cannot write this to the
// pod's status, which has no name for the claim then.
var errExtendedCounts = errors.New("a device of an extended resource counts as the node's own resources, which the API server refuses")

// withClaims returns the pod with a status that says what its claims take of the node's
// own resources. The entry for its extended resources is last and has no name.
func (c *Cluster) withClaims(d *demand, o offer) (*corev1.Pod, error) {
	pod := *d.pod
	pod.Status.NodeAllocatableResourceClaimStatuses = nil
	add := func(entry, name string, allocation *resourceapi.AllocationResult) error {
		status, err := o.allocatableOf(allocation)
		if err != nil {
			return &AbortError{keyOf(d.pod).String(), o.Name, err}
		}
		if len(status.Mapping)+len(status.Overhead) > 0 {
			status.ResourceClaimName, status.Containers = name, usersOf(d.pod, entry)
			pod.Status.NodeAllocatableResourceClaimStatuses = append(pod.Status.NodeAllocatableResourceClaimStatuses, status)
		}
		return nil
	}
	next := 0 // index of the next new allocation
	for _, used := range d.claims {
		allocation := used.claim.Status.Allocation
		if allocation == nil {
			allocation = &o.allocations[next]
			next++
		} else if o.mapsResources(allocation) && len(used.claim.Status.ReservedFor) > 0 && !resourceclaim.IsReservedForPod(d.pod, used.claim, false) {
			return nil, reason("ResourceClaim %s has a device that counts as the node's own resources, so pods cannot share the claim", used.claim.Name)
		}
		if err := add(used.entry, used.claim.Name, allocation); err != nil {
			return nil, err
		}
	}
	if next < len(o.allocations) {
		return &pod, add("", "", &o.allocations[next])
	}
	return &pod, nil
}

// usersOf returns the names of the containers that use an entry of the pod's claims.
func usersOf(pod *corev1.Pod, entry string) (names []string) {
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if slices.ContainsFunc(container.Resources.Claims, func(c corev1.ResourceClaim) bool { return c.Name == entry }) {
			names = append(names, container.Name)
		}
	}
	return names
}

// device returns the device of an allocation result, or nil if the node does not have it.
func (n *node) device(result *resourceapi.DeviceRequestAllocationResult) *resourceapi.Device {
	for i := range n.Devices {
		if d := &n.Devices[i]; d.Slice.Spec.Driver == result.Driver && d.Slice.Spec.Pool.Name == result.Pool && d.Name == result.Device {
			return d.Device
		}
	}
	return nil
}

// mapsResources reports whether a device of the allocation counts as the node's own
// resources. Overhead alone does not.
func (n *node) mapsResources(allocation *resourceapi.AllocationResult) bool {
	for i := range allocation.Devices.Results {
		if d := n.device(&allocation.Devices.Results[i]); d != nil {
			for _, counts := range d.NodeAllocatableResources {
				if counts.Mapping != nil {
					return true
				}
			}
		}
	}
	return false
}

// allocatableOf returns what the allocated devices take of the node's own resources.
func (n *node) allocatableOf(allocation *resourceapi.AllocationResult) (status corev1.NodeAllocatableResourceClaimStatus, err error) {
	for i := range allocation.Devices.Results {
		result := &allocation.Devices.Results[i]
		d := n.device(result)
		if d == nil {
			continue
		}
		for name, counts := range d.NodeAllocatableResources {
			if counts.Mapping != nil {
				quantity, err := mappedQuantity(counts.Mapping, result)
				if err != nil {
					return status, fmt.Errorf("%s of device %s: %w", name, result.Device, err)
				}
				status.Mapping = append(status.Mapping, corev1.NodeAllocatableMappedResources{Name: name, Quantity: &quantity})
			}
			if over := counts.Overhead; over != nil {
				status.Overhead = append(status.Overhead, corev1.NodeAllocatableOverheadResources{
					Name: name, PerPod: over.PerPod, PerContainer: over.PerContainer,
				})
			}
		}
	}
	return status, nil
}

// mappedQuantity returns what one device takes of a resource.
func mappedQuantity(mapping *resourceapi.NodeAllocatableMapping, result *resourceapi.DeviceRequestAllocationResult) (resource.Quantity, error) {
	if mapping.CapacityKey == nil || *mapping.CapacityKey == "" {
		if mapping.DeviceMultiplier == nil {
			return resource.Quantity{}, nil
		}
		return mapping.DeviceMultiplier.DeepCopy(), nil
	}
	if result.ConsumedCapacity == nil {
		return resource.Quantity{}, errors.New("it counts by a capacity, but the claim consumes no capacity")
	}
	consumed := spelling.Amounts(result.Driver, result.ConsumedCapacity)[*mapping.CapacityKey].DeepCopy()
	if multiplier := mapping.CapacityMultiplier; multiplier != nil && multiplier.Cmp(resource.MustParse("1")) != 0 {
		product, factor := consumed.AsDec(), multiplier.DeepCopy()
		product.Mul(product, factor.AsDec())
		consumed = *resource.NewDecimalQuantity(*product, consumed.Format)
	}
	return consumed, nil
}
