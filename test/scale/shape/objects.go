package shape

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// Slices returns what the node publishes.
func (s Shape) Slices(node string) (list []*resourceapi.ResourceSlice) {
	for _, d := range s.Drivers {
		parts := driver.Resources(node, d.Devices).Pools[node].Slices
		for i, part := range parts {
			list = append(list, &resourceapi.ResourceSlice{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%s-%d", node, d.Name, i)},
				Spec: resourceapi.ResourceSliceSpec{
					Driver: d.Name, NodeName: &node, Devices: part.Devices, SharedCounters: part.SharedCounters,
					Pool: resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: int64(len(parts))},
				},
			})
		}
	}
	return list
}

// SliceBytes is how much of etcd a node's slices take: protobuf, as the API server stores
// them.
func (s Shape) SliceBytes() (bytes int) {
	for _, slice := range s.Slices("node-0") {
		bytes += slice.Size()
	}
	return bytes
}

// The templates of claims.
const (
	Template        = "scale"
	TemplateTooMuch = "scale-too-much"
)

// Templates are of the claims that the shape has.
func (s Shape) Templates() (list []*resourceapi.ResourceClaimTemplate) {
	for name, devices := range map[string]*resourceapi.DeviceClaim{Template: s.Claim, TemplateTooMuch: s.TooMuch} {
		if devices != nil {
			list = append(list, &resourceapi.ResourceClaimTemplate{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec:       resourceapi.ResourceClaimTemplateSpec{Spec: resourceapi.ResourceClaimSpec{Devices: *devices}},
			})
		}
	}
	return list
}

// Pod returns a pod of the shape, with a claim of the template if the shape has claims.
func (s Shape) Pod(name string, labels map[string]string, template string) *corev1.Pod {
	requests := corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(int64(cmp.Or(s.CPUs, PodCPUs)), resource.DecimalSI), corev1.ResourceMemory: resource.MustParse(PodMemory)}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: corev1.PodSpec{
			// Without the node-lifecycle controller, new nodes keep the taint of admission.
			Tolerations:                  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			AutomountServiceAccountToken: ptr.To(false),
			Containers:                   []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Requests: requests}}},
		},
	}
	if s.Claim != nil {
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "cpus", ResourceClaimTemplateName: &template}}
		pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "cpus"}}
	}
	return pod
}

// Node returns a node with the machine.
func Node(name string, m numa.Machine) *corev1.Node {
	memory := uint64(0)
	for _, zone := range m.Zones {
		memory += *zone.MemoryBytes
	}
	resources := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(m.Online.Size()), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(memory), resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(int64(2*m.Online.Size()/PodCPUs), resource.DecimalSI),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{
			Capacity: resources, Allocatable: resources,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}
