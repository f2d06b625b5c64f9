package requests

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

// ExtendedResources returns the classes by the resource name with which a container
// requests their devices. If two classes have the same resource name, the newer class
// wins. If they are equally old, the class whose name sorts first wins
// (deviceclass/extendedresourcecache).
func ExtendedResources(list []*resourceapi.DeviceClass) map[corev1.ResourceName]*resourceapi.DeviceClass {
	list = slices.SortedFunc(slices.Values(list), func(a, b *resourceapi.DeviceClass) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(b.Name, a.Name))
	})
	byName := make(map[corev1.ResourceName]*resourceapi.DeviceClass)
	for _, class := range list {
		byName[corev1.ResourceName(resourceapi.ResourceDeviceClassPrefix+class.Name)] = class
		if class.Spec.ExtendedResourceName != nil {
			byName[corev1.ResourceName(*class.Spec.ExtendedResourceName)] = class
		}
	}
	return byName
}

// ExtendedClaim returns the special claim for the pod's extended resources. The claim
// is only for resources that devices provide and that the node itself does not have. If
// there are none, it returns nil. This file mirrors extendeddynamicresources.go of the
// scheduler's plugin.
func ExtendedClaim(pod *corev1.Pod, asked Amounts, classes map[corev1.ResourceName]*resourceapi.DeviceClass, allocatable Amounts) *resourceapi.ResourceClaim {
	var list []resourceapi.DeviceRequest
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		if class := classes[name]; class != nil && asked[name] != 0 && allocatable[name] == 0 {
			list = append(list, extendedRequests(pod, name, class.Name)...)
		}
	}
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b resourceapi.DeviceRequest) int { return cmp.Compare(a.Name, b.Name) })
	claim := Claim(pod, "extended-resources")
	claim.Annotations = map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"}
	claim.Spec.Devices.Requests = list
	return claim
}

// extendedRequests returns the requests for the devices of one resource. Each main
// container and sidecar gets a request of its own. The init container that needs the
// most gets a request for what the later containers do not have.
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

// extendedRequest returns a request for what the container needs in addition to the
// devices of the other containers. It returns nil if those are enough.
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
		Name: fmt.Sprintf("container-%d-request-%d", index, slices.Index(slices.Sorted(maps.Keys(container.Resources.Requests)), name)),
		Exactly: &resourceapi.ExactDeviceRequest{
			DeviceClassName: class,
			AllocationMode:  resourceapi.DeviceAllocationModeExactCount,
			Count:           count,
		},
	}
}
