package simulate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	resourcehelper "k8s.io/component-helpers/resource"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
)

// amounts are what a node has or a pod asks, in thousandths for cpu and in whole
// units for everything else, as the scheduler counts.
type amounts map[corev1.ResourceName]int64

func amountsOf(list corev1.ResourceList) amounts {
	counted := make(amounts, len(list))
	for name, quantity := range list {
		switch {
		case name == corev1.ResourceCPU:
			counted[name] = quantity.MilliValue()
		case name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage, name == corev1.ResourcePods, isScalar(name):
			counted[name] = quantity.Value()
		}
	}
	return counted
}

// requestsOf is what the scheduler wants to find for a pod without a node: the
// main containers and sidecars together, or one init container with the sidecars
// before it if that is more, and the overhead (NodeResourcesFit).
func requestsOf(pod *corev1.Pod) amounts {
	return amountsOf(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}))
}

// runningRequests is what a pod on a node takes of it: also what its status says
// while it is resized.
func runningRequests(pod *corev1.Pod) amounts {
	return amountsOf(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{
		UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true,
	}))
}

// isScalar and isExtended mirror the scheduler's IsScalarResourceName and the
// API's IsExtendedResourceName.
func isScalar(name corev1.ResourceName) bool {
	return isExtended(name) || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) ||
		strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix) ||
		strings.HasPrefix(string(name), corev1.ResourceAttachableVolumesPrefix)
}

func isExtended(name corev1.ResourceName) bool {
	text := string(name)
	if !strings.Contains(text, "/") || strings.Contains(text, corev1.ResourceDefaultNamespacePrefix) ||
		strings.HasPrefix(text, corev1.DefaultResourceRequestsPrefix) {
		return false
	}
	return len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+text)) == 0
}

// refuses says why the node is nothing for the pod, whatever its devices; "" if
// it is. The order is that of the scheduler's plugins.
func (n *node) refuses(d *demand, extended map[corev1.ResourceName]*resourceapi.DeviceClass) (reason string) {
	tolerations := d.pod.Spec.Tolerations
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if n.Spec.Unschedulable && !schedulinghelper.TolerationsTolerateTaint(klog.Logger{}, tolerations, &cordon, false) {
		return "the node is cordoned: spec.unschedulable is true"
	}
	taint, untolerated := schedulinghelper.FindMatchingUntoleratedTaint(klog.Logger{}, n.Spec.Taints, tolerations, preventsScheduling, false)
	if untolerated {
		return fmt.Sprintf("the node's taint %s is not tolerated by the pod", taint.ToString())
	}
	if match, err := d.affinity.Match(n.Node); err != nil {
		return fmt.Sprintf("the pod's node affinity makes no sense: %v", err)
	} else if !match {
		return "the node does not match the pod's node selector or affinity"
	}
	return n.lacks(d.requests, extended)
}

func preventsScheduling(taint *corev1.Taint) bool {
	return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
}

// lacks says which resources the node does not have enough of. A node that says
// nothing of what it has, or not how many pods, is written by hand: it has room.
func (n *node) lacks(asked amounts, extended map[corev1.ResourceName]*resourceapi.DeviceClass) string {
	if len(n.allocatable) == 0 {
		return ""
	}
	var lacking []string
	if limit, ok := n.allocatable[corev1.ResourcePods]; ok && n.pods+1 > limit {
		lacking = append(lacking, fmt.Sprintf("it has its %d pods", limit))
	}
	for name, amount := range asked {
		if amount == 0 || extended[name] != nil && n.allocatable[name] == 0 {
			continue // nothing, or devices (shouldDelegateResourceToDRA)
		}
		if free := n.allocatable[name] - n.taken[name]; amount > free {
			lacking = append(lacking, fmt.Sprintf("the pod requests %s of %s, free are %s of %s", quantity(name, amount), name,
				quantity(name, max(free, 0)), quantity(name, n.allocatable[name])))
		}
	}
	slices.Sort(lacking)
	return strings.Join(lacking, "; ")
}

// quantity is an amount as a manifest has it.
func quantity(name corev1.ResourceName, amount int64) string {
	switch {
	case name == corev1.ResourceCPU:
		return resource.NewMilliQuantity(amount, resource.DecimalSI).String()
	case name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage, strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		return resource.NewQuantity(amount, resource.BinarySI).String()
	}
	return resource.NewQuantity(amount, resource.DecimalSI).String()
}

// extendedResources are the classes by the names under which a container can ask
// for their devices. Of two classes with one name, the newer one has it, then
// the one whose own name sorts first (deviceclass/extendedresourcecache).
func extendedResources(list []*resourceapi.DeviceClass) map[corev1.ResourceName]*resourceapi.DeviceClass {
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

// sortedNames are the keys in order.
func sortedNames[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
