package scenario

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

type quantityType = resource.Quantity

func (m maker) addClasses() {
	ours := fmt.Sprintf("device.driver == %q", m.driver())
	class := func(name, expression string) *resourceapi.DeviceClass {
		return &resourceapi.DeviceClass{
			TypeMeta: typeMeta("DeviceClass"), ObjectMeta: metav1.ObjectMeta{Name: m.Name + "-" + name},
			Spec: resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}}},
		}
	}
	ofKind := func(kind string) string {
		return fmt.Sprintf("%s && device.attributes[%q].kind == %q", ours, m.driver(), kind)
	}
	gpu := class("gpu", ofKind("gpu"))
	gpu.Spec.ExtendedResourceName = ptr.To(m.Name + ".test/gpu")
	m.Classes = append(m.Classes,
		class("zone", ofKind("zone")), gpu, class("nic", ofKind("nic")), class("part", ofKind("part")),
		class("any", ours), class("net", fmt.Sprintf("device.driver == %q", m.networkDriver())),
		class("unguarded", ours+fmt.Sprintf(" && device.attributes[%q].model == \"a\"", m.driver())),
	)
}

func (m maker) addPod(name string) {
	pod := &corev1.Pod{
		TypeMeta:   typeMeta("Pod"),
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: m.Namespace},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{Label: m.Name},
			Containers:   []corev1.Container{{Name: "main", Image: "none"}},
			// Nobody keeps the nodes ready.
			Tolerations: []corev1.Toleration{
				{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists},
				{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists},
			},
		},
	}
	if m.chance(2) {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: nodeTaint, Operator: corev1.TolerationOpExists})
	}
	if m.chance(5) {
		pod.Spec.NodeSelector["scenario.test/node"] = m.Nodes[m.IntN(len(m.Nodes))].Name
	}
	m.addRequests(pod)
	for i := range m.IntN(3) {
		entry := corev1.PodResourceClaim{Name: fmt.Sprintf("c%d", i)}
		if m.chance(4) {
			entry.ResourceClaimName = ptr.To(m.claim())
			if used := pod.Spec.ResourceClaims; len(used) > 0 && used[0].ResourceClaimName != nil && *used[0].ResourceClaimName == *entry.ResourceClaimName {
				continue
			}
		} else {
			entry.ResourceClaimTemplateName = ptr.To(m.template(pod.Name + "-" + entry.Name))
		}
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, entry)
		pod.Spec.Containers[0].Resources.Claims = append(pod.Spec.Containers[0].Resources.Claims, corev1.ResourceClaim{Name: entry.Name})
	}
	m.Pods = append(m.Pods, pod)
}

// addRequests asks for cpu of the node and, sometimes, for devices by an extended
// resource, in main, init and sidecar containers.
func (m maker) addRequests(pod *corev1.Pod) {
	ask := func(container *corev1.Container) {
		list := corev1.ResourceList{corev1.ResourceCPU: quantity(pick(m, "100m", "1", "1500m", "3"))}
		if m.chance(6) {
			list[corev1.ResourceName(m.Name+".test/gpu")] = count(1 + m.IntN(2))
			container.Resources.Limits = corev1.ResourceList{corev1.ResourceName(m.Name + ".test/gpu"): list[corev1.ResourceName(m.Name+".test/gpu")]}
		}
		container.Resources.Requests = list
	}
	ask(&pod.Spec.Containers[0])
	if m.chance(5) {
		init := corev1.Container{Name: "init", Image: "none"}
		ask(&init)
		if m.chance(2) {
			init.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, init)
	}
}

// claim is one of up to two that the pods of the scenario share.
func (m maker) claim() string {
	name := fmt.Sprintf("%s-shared-%d", m.Name, m.IntN(2))
	for _, claim := range m.Claims {
		if claim.Name == name {
			return name
		}
	}
	m.Claims = append(m.Claims, &resourceapi.ResourceClaim{
		TypeMeta: typeMeta("ResourceClaim"), ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: m.Namespace},
		Spec: m.claimSpec(),
	})
	return name
}

func (m maker) template(name string) string {
	m.Templates = append(m.Templates, &resourceapi.ResourceClaimTemplate{
		TypeMeta: typeMeta("ResourceClaimTemplate"), ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: m.Namespace},
		Spec: resourceapi.ResourceClaimTemplateSpec{Spec: m.claimSpec()},
	})
	return name
}

func (m maker) claimSpec() (spec resourceapi.ResourceClaimSpec) {
	var names []string
	for i := range 1 + m.IntN(3) {
		name := fmt.Sprintf("r%d", i)
		request := resourceapi.DeviceRequest{Name: name}
		if m.chance(5) {
			for j := range 2 + m.IntN(2) {
				exact := m.request()
				request.FirstAvailable = append(request.FirstAvailable, resourceapi.DeviceSubRequest{
					Name: fmt.Sprintf("s%d", j), DeviceClassName: exact.DeviceClassName, Selectors: exact.Selectors,
					AllocationMode: exact.AllocationMode, Count: exact.Count, Tolerations: exact.Tolerations, Capacity: exact.Capacity,
				})
			}
		} else {
			request.Exactly = m.request()
		}
		spec.Devices.Requests = append(spec.Devices.Requests, request)
		names = append(names, name)
	}
	if m.chance(3) {
		constraint := resourceapi.DeviceConstraint{Requests: names[m.IntN(len(names)):]}
		attribute := resourceapi.FullyQualifiedName(pick(m, numaNode, numaNode, pcieRoot, m.driver()+"/socket"))
		if m.chance(5) {
			constraint.DistinctAttribute = &attribute
		} else {
			constraint.MatchAttribute = &attribute
		}
		spec.Devices.Constraints = append(spec.Devices.Constraints, constraint)
	}
	return spec
}

func (m maker) request() *resourceapi.ExactDeviceRequest {
	kind := pick(m, "zone", "zone", "zone", "zone", "zone", "gpu", "gpu", "gpu", "nic", "part", "part", "net", "any")
	if m.chance(40) {
		kind = "unguarded"
	}
	request := &resourceapi.ExactDeviceRequest{
		DeviceClassName: m.Name + "-" + kind, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1,
	}
	if m.chance(6) {
		request.Count = 2
	}
	if kind != "zone" && m.chance(15) {
		request.AllocationMode, request.Count = resourceapi.DeviceAllocationModeAll, 0
	}
	if kind == "zone" {
		request.Capacity = m.capacity()
	}
	if m.chance(5) {
		expression := pick(m,
			fmt.Sprintf(`device.attributes["resource.kubernetes.io"].?numaNode.orValue(-1) == %d`, m.IntN(2)),
			fmt.Sprintf(`device.attributes[%q].?model.orValue("a") == "a"`, m.driver()))
		request.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}}
	}
	if m.chance(3) {
		request.Tolerations = []resourceapi.DeviceToleration{{Key: deviceTaint, Operator: resourceapi.DeviceTolerationOpExists}}
	}
	return request
}

func (m maker) capacity() *resourceapi.CapacityRequirements {
	qualified := resourceapi.QualifiedName(m.driver() + "/cpu")
	requests := map[resourceapi.QualifiedName]resource.Quantity{
		"cpu": quantity(pick(m, "1", "2", "3", "3", "4", "2500m", "6", "8", "12", "17")),
	}
	if m.chance(2) {
		requests["memory"] = quantity(pick(m, "1Gi", "3Gi", "8Gi", "1000000"))
	}
	if m.chance(6) {
		requests["hugepages1Gi"] = quantity(pick(m, "1Gi", "2Gi", "1"))
	}
	if m.chance(20) {
		requests[qualified] = quantity("1")
	}
	if m.chance(20) {
		requests["rate"] = quantity(pick(m, "3", "7", "30"))
	}
	if one, both := requests[qualified]; both {
		// In Kubernetes 1.38, both spellings are an error. If a device lacks another capacity,
		// chance decides which of the two is found first.
		requests = map[resourceapi.QualifiedName]resource.Quantity{"cpu": requests["cpu"], qualified: one}
	}
	return &resourceapi.CapacityRequirements{Requests: requests}
}
