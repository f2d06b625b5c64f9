package simulate

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// What follows mirrors extendeddynamicresources.go of the scheduler's plugin.

// asksExtended says whether devices stand behind an extended resource of the pod.
func (c *Cluster) asksExtended(requests amounts) bool {
	if !c.gates[gateExtendedResource] {
		return false
	}
	for name, amount := range requests {
		if amount != 0 && c.extended[name] != nil {
			return true
		}
	}
	return false
}

// extendedClaim is the special claim for the pod's extended resources that the
// node does not have itself; nil if there are none.
func (c *Cluster) extendedClaim(d *demand, n *node) *resourceapi.ResourceClaim {
	if !d.extended {
		return nil
	}
	var requests []resourceapi.DeviceRequest
	for _, name := range sortedNames(d.requests) {
		if class := c.extended[name]; class != nil && d.requests[name] != 0 && n.allocatable[name] == 0 {
			requests = append(requests, extendedRequests(d.pod, name, class.Name)...)
		}
	}
	if len(requests) == 0 {
		return nil
	}
	slices.SortFunc(requests, func(a, b resourceapi.DeviceRequest) int { return cmp.Compare(a.Name, b.Name) })
	claim := generatedClaim(d.pod, "extended-resources")
	claim.Annotations = map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"}
	claim.Spec.Devices.Requests = requests
	return claim
}

// extendedRequests asks for the devices of one resource: for each container that
// runs on its own, and for the greediest init container what those after it do
// not have.
func extendedRequests(pod *corev1.Pod, name corev1.ResourceName, class string) (requests []resourceapi.DeviceRequest) {
	containers := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	initOnly := func(i int) bool {
		return i < len(pod.Spec.InitContainers) && ptr.Deref(containers[i].RestartPolicy, "") != corev1.ContainerRestartPolicyAlways
	}
	own := make([]*resourceapi.DeviceRequest, len(containers))
	for i := range containers {
		if !initOnly(i) {
			own[i] = extendedRequest(i, &containers[i], name, class, nil)
		}
	}
	var greediest *resourceapi.DeviceRequest
	for i := range containers {
		if !initOnly(i) {
			continue
		}
		request := extendedRequest(i, &containers[i], name, class, own[i:])
		if request != nil && (greediest == nil || greediest.Exactly.Count < request.Exactly.Count) {
			greediest = request
		}
	}
	for _, request := range append([]*resourceapi.DeviceRequest{greediest}, own...) {
		if request != nil {
			requests = append(requests, *request)
		}
	}
	return requests
}

// extendedRequest is what the container asks beyond what it can use of others;
// nil if that is enough.
func extendedRequest(index int, container *corev1.Container, name corev1.ResourceName, class string, others []*resourceapi.DeviceRequest) *resourceapi.DeviceRequest {
	quantity := container.Resources.Requests[name]
	count, exact := quantity.AsInt64()
	if !exact || count == 0 {
		return nil
	}
	for _, other := range others {
		if other != nil {
			count -= other.Exactly.Count
		}
	}
	if count <= 0 {
		return nil
	}
	return &resourceapi.DeviceRequest{
		Name: fmt.Sprintf("container-%d-request-%d", index, slices.Index(sortedNames(container.Resources.Requests), name)),
		Exactly: &resourceapi.ExactDeviceRequest{
			DeviceClassName: class,
			AllocationMode:  resourceapi.DeviceAllocationModeExactCount,
			Count:           count,
		},
	}
}

// generatedClaim is a claim made for the pod: by the controller for a template,
// by the scheduler for extended resources. The letters that an API server draws
// for its name follow from the pod's here.
func generatedClaim(pod *corev1.Pod, suffix string) *resourceapi.ResourceClaim {
	name := fmt.Sprintf("%s-%s-%s", pod.Name, suffix, letters(pod.Namespace+"/"+pod.Name+"/"+suffix))
	return &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace:       pod.Namespace,
		Name:            name,
		UID:             uid("ResourceClaim " + pod.Namespace + "/" + name),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: ptr.To(true)}},
	}}
}
