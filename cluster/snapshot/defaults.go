package snapshot

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	amounts "k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
)

// This file sets the defaults of an API server of Kubernetes 1.37, as far as they
// change placements: pkg/apis/core/v1/defaults.go, pkg/apis/resource/v1/defaults.go,
// pkg/api/pod/util.go.

func defaultNode(node *corev1.Node) {
	if node.Status.Allocatable == nil {
		node.Status.Allocatable = node.Status.Capacity.DeepCopy()
	}
	limit(node.Status.Allocatable)
}

func defaultPod(pod *corev1.Pod) {
	if pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = corev1.DefaultSchedulerName
	}
	limitPod(&pod.Spec)
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			defaultRequests(&containers[i].Resources, containers[i].Resources.Limits, func(corev1.ResourceName) bool { return true })
		}
	}
	defaultPodLevel(pod)
}

// defaultPodLevel sets the requests of a pod that has resources of its own
// (DefaultPodLevelResources of pkg/api/pod).
func defaultPodLevel(pod *corev1.Pod) {
	own := pod.Spec.Resources
	if own == nil || len(own.Requests)+len(own.Limits) == 0 {
		return
	}
	isHuge := func(name corev1.ResourceName) bool {
		return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
	}
	all := resourcehelper.PodResourcesOptions{}
	defaultRequests(own, resourcehelper.AggregateContainerRequests(pod, all), func(name corev1.ResourceName) bool {
		return resourcehelper.IsSupportedPodLevelResource(name) && !isHuge(name)
	})
	defaultRequests(own, own.Limits, resourcehelper.IsSupportedPodLevelResource)
	defaultRequests(own, resourcehelper.AggregateContainerLimits(pod, all), isHuge)
}

// defaultRequests sets missing requests to these amounts, if they are kept.
func defaultRequests(resources *corev1.ResourceRequirements, list corev1.ResourceList, kept func(corev1.ResourceName) bool) {
	for name, amount := range list {
		if _, asked := resources.Requests[name]; asked || !kept(name) {
			continue
		}
		if resources.Requests == nil {
			resources.Requests = make(corev1.ResourceList)
		}
		resources.Requests[name] = amount.DeepCopy()
	}
}

func defaultClaim(spec *resourceapi.ResourceClaimSpec) {
	for i := range spec.Devices.Requests {
		request := &spec.Devices.Requests[i]
		if request.Exactly != nil {
			defaultCount(&request.Exactly.AllocationMode, &request.Exactly.Count)
			limitCapacity(request.Exactly.Capacity)
		}
		for j := range request.FirstAvailable {
			defaultCount(&request.FirstAvailable[j].AllocationMode, &request.FirstAvailable[j].Count)
			limitCapacity(request.FirstAvailable[j].Capacity)
		}
	}
}

func defaultCount(mode *resourceapi.DeviceAllocationMode, count *int64) {
	if *mode == "" {
		*mode = resourceapi.DeviceAllocationModeExactCount
	}
	if *mode == resourceapi.DeviceAllocationModeExactCount && *count == 0 {
		*count = 1
	}
}

// limitPod limits the amounts of a pod. An API server stores no others, but a file may
// have some.
func limitPod(spec *corev1.PodSpec) {
	limit(spec.Overhead)
	if spec.Resources != nil {
		limit(spec.Resources.Requests)
		limit(spec.Resources.Limits)
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			limit(containers[i].Resources.Requests)
			limit(containers[i].Resources.Limits)
		}
	}
}

// limitAllocation limits the amounts that a claim holds.
func limitAllocation(allocation *resourceapi.AllocationResult) {
	if allocation == nil {
		return
	}
	for i := range allocation.Devices.Results {
		limit(allocation.Devices.Results[i].ConsumedCapacity)
	}
}

// checkSlice returns an error for a range with which the allocator cannot compute. An API
// server refuses such slices.
func checkSlice(spec *resourceapi.ResourceSliceSpec) error {
	for i := range spec.Devices {
		capacities := spec.Devices[i].Capacity
		for _, name := range slices.Sorted(maps.Keys(capacities)) {
			of := capacities[name]
			if of.RequestPolicy == nil || of.RequestPolicy.ValidRange == nil || of.RequestPolicy.ValidRange.Step == nil {
				continue
			}
			where := fmt.Sprintf("device %s: capacity %s: requestPolicy.validRange", spec.Devices[i].Name, name)
			switch r := of.RequestPolicy.ValidRange; {
			case r.Min == nil:
				return fmt.Errorf("%s has a step without min", where)
			case r.Step.Value() <= 0: // also if it is too large for a whole number of 64 bits
				return fmt.Errorf("%s.step is %s, want more than 0 and at most %d", where, r.Step, math.MaxInt64)
			}
		}
	}
	return nil
}

// limitSlice limits the amounts of devices. Each driver writes its own slices.
func limitSlice(spec *resourceapi.ResourceSliceSpec) {
	for i := range spec.Devices {
		d := &spec.Devices[i]
		for name, of := range d.Capacity {
			if limitAmount(&of.Value) {
				d.Capacity[name] = of
			}
			if policy := of.RequestPolicy; policy != nil {
				limitAmount(policy.Default)
				for j := range policy.ValidValues {
					limitAmount(&policy.ValidValues[j])
				}
				if r := policy.ValidRange; r != nil {
					limitAmount(r.Min)
					limitAmount(r.Max)
					limitAmount(r.Step)
				}
			}
		}
		for _, consumed := range d.ConsumesCounters {
			limitCounters(consumed.Counters)
		}
	}
	for _, set := range spec.SharedCounters {
		limitCounters(set.Counters)
	}
}

func limitCounters(counters map[string]resourceapi.Counter) {
	for name, counter := range counters {
		if limitAmount(&counter.Value) {
			counters[name] = counter
		}
	}
}

func limitCapacity(asked *resourceapi.CapacityRequirements) {
	if asked != nil {
		limit(asked.Requests)
	}
}

// limit limits the amounts of a list. It writes only what changes, because others may read the
// objects of a copy of a cluster at the same time.
func limit[N ~string](list map[N]amounts.Quantity) {
	for name, amount := range list {
		if limitAmount(&amount) {
			list[name] = amount
		}
	}
}

// limitAmount replaces an amount that is too large to compute with by the largest that is
// not. No device and no node has as much as that. nil stays nil.
func limitAmount(amount *amounts.Quantity) (changed bool) {
	if amount == nil || spelling.Countable(*amount) {
		return false
	}
	*amount = *amounts.NewQuantity(math.MaxInt64*int64(amount.Sign()), amounts.DecimalSI)
	return true
}
