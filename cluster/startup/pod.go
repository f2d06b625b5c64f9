// Package startup says why a pod that has its node does not start there, and why a
// controller such as a Deployment has created no pods. It reads the objects of a
// snapshot. It does not place pods: package simulate does that.
package startup

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/funnel"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
)

// Pod explains a pod that has a node.
func Pod(s *snapshot.Snapshot, pod *corev1.Pod) simulate.Explanation {
	e := simulate.Explanation{Pod: pod.Namespace + "/" + pod.Name, Node: pod.Spec.NodeName, Nodes: []simulate.NodeExplanation{}}
	switch {
	case snapshot.Finished(pod):
		e.Sentence = fmt.Sprintf("has ended on node %s: %s", e.Node, pod.Status.Phase)
		return e
	case pod.DeletionTimestamp != nil:
		e.Sentence = fmt.Sprintf("is being deleted from node %s", e.Node)
		e.Notes = notReleased(s, pod)
		return e
	}
	obstacles := obstaclesOf(s, pod)
	e.Notes = notesOf(s, pod)
	switch {
	case Runs(pod):
		e.Sentence = fmt.Sprintf("runs on node %s", e.Node)
		return e
	case len(obstacles) > 0:
		e.Sentence = fmt.Sprintf("is assigned to node %s, but does not start there", e.Node)
		e.Blocked = true
		e.Nodes = append(e.Nodes, simulate.NotOn(e.Node, obstacles))
	default:
		e.Sentence = fmt.Sprintf("is assigned to node %s, and no object says why it would not start there", e.Node)
	}
	for _, obstacle := range obstacles {
		if obstacle.Hint != "" && !slices.Contains(e.Hints, obstacle.Hint) {
			e.Hints = append(e.Hints, obstacle.Hint)
		}
	}
	return e
}

// notReleased says what may keep the kubelet from releasing the claims of a pod that ends.
func notReleased(s *snapshot.Snapshot, pod *corev1.Pod) (notes []string) {
	node := s.Node(pod.Spec.NodeName)
	if node != nil || len(s.Hides("Nodes")) == 0 {
		for _, obstacle := range ofNode(node, pod.Spec.NodeName) {
			notes = append(notes, obstacle.Sentence)
		}
	}
	publishes := slices.ContainsFunc(s.Slices, func(slice *resourceapi.ResourceSlice) bool {
		return slice.Spec.Driver == deviceclasses.DriverName && slice.Spec.Pool.Name == pod.Spec.NodeName
	})
	if publishes || len(s.Hides("ResourceSlices")) > 0 {
		return notes
	}
	for _, name := range claimsOf(pod) {
		if claim := s.Claim(pod.Namespace, name); claim != nil && claim.Status.Allocation != nil && hasDevices(claim) {
			notes = append(notes, fmt.Sprintf("driver %s has published nothing on node %s: while it does not run there, the pod does not end, because nothing releases ResourceClaim %q", deviceclasses.DriverName, pod.Spec.NodeName, name))
		}
	}
	return notes
}

// claimsOf returns the names of the pod's claims that are known, that for extended resources
// included.
func claimsOf(pod *corev1.Pod) (names []string) {
	for i := range pod.Spec.ResourceClaims {
		if name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i]); err == nil && name != nil {
			names = append(names, *name)
		}
	}
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil {
		names = append(names, extended.ResourceClaimName)
	}
	return names
}

// hasDevices reports whether an allocated claim has devices of this driver.
func hasDevices(claim *resourceapi.ResourceClaim) bool {
	return slices.ContainsFunc(claim.Status.Allocation.Devices.Results, func(result resourceapi.DeviceRequestAllocationResult) bool {
		return result.Driver == deviceclasses.DriverName
	})
}

// Runs reports whether no container of the pod waits.
func Runs(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && !slices.ContainsFunc(statusesOf(pod), func(status corev1.ContainerStatus) bool { return status.State.Waiting != nil })
}

func statusesOf(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

func obstacle(format string, args ...any) funnel.Obstacle {
	return funnel.Obstacle{Stage: funnel.StageStart, Sentence: fmt.Sprintf(format, args...)}
}

func obstaclesOf(s *snapshot.Snapshot, pod *corev1.Pod) (list []funnel.Obstacle) {
	node := s.Node(pod.Spec.NodeName)
	if node != nil || len(s.Hides("Nodes")) == 0 {
		list = append(list, ofNode(node, pod.Spec.NodeName)...)
	}
	for i := range pod.Spec.ResourceClaims {
		list = append(list, ofEntry(s, pod, &pod.Spec.ResourceClaims[i], node)...)
	}
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil {
		list = append(list, ofClaim(s, pod, extended.ResourceClaimName, node)...)
	}
	for _, status := range statusesOf(pod) {
		waiting := status.State.Waiting
		if waiting == nil || waiting.Reason == "ContainerCreating" || waiting.Reason == "PodInitializing" {
			continue // this only says that something else is the reason
		}
		list = append(list, obstacle("container %s waits: %s", status.Name, joined(waiting.Reason, waiting.Message)))
	}
	return append(list, warnings(current(s.EventsAbout(pod), pod))...)
}

// Lengths of what other programs say, in bytes. Any user can write events of any length.
const (
	maxReason  = 128
	maxMessage = 1024
)

// joined joins a reason and a message, if there is one, as one line.
func joined(reason, text string) string {
	reason = message.Short(message.OneLine(reason), maxReason)
	if text == "" {
		return reason
	}
	return reason + ": " + message.Short(message.OneLine(text), maxMessage)
}

func ofNode(node *corev1.Node, name string) []funnel.Obstacle {
	if node == nil {
		return []funnel.Obstacle{obstacle("there is no Node %s", name)}
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			return []funnel.Obstacle{obstacle("node %s is not ready: %s", name, joined(condition.Reason, condition.Message))}
		}
	}
	return nil
}

// ofEntry is about an entry of the pod's claims.
func ofEntry(s *snapshot.Snapshot, pod *corev1.Pod, entry *corev1.PodResourceClaim, node *corev1.Node) []funnel.Obstacle {
	name, _, err := resourceclaim.Name(pod, entry)
	switch {
	case errors.Is(err, resourceclaim.ErrClaimNotFound) && s.Template(pod.Namespace, *entry.ResourceClaimTemplateName) == nil:
		return []funnel.Obstacle{obstacle("%s", simulate.MissingTemplate(pod.Namespace, *entry.ResourceClaimTemplateName))}
	case errors.Is(err, resourceclaim.ErrClaimNotFound):
		unscheduled := unallocated(fmt.Sprintf("the ResourceClaim for entry %q", entry.Name), pod)
		unscheduled.Sentence = fmt.Sprintf("kube-controller-manager has not created the ResourceClaim for entry %q from ResourceClaimTemplate %q yet", entry.Name, *entry.ResourceClaimTemplateName)
		return []funnel.Obstacle{unscheduled}
	case err != nil:
		return []funnel.Obstacle{obstacle("%s", message.OneLine(err.Error()))}
	case name == nil:
		return nil
	}
	return ofClaim(s, pod, *name, node)
}

// unallocated is about a claim that nothing allocates. The scheduler never binds a pod
// before its claims are allocated.
func unallocated(what string, pod *corev1.Pod) funnel.Obstacle {
	o := obstacle("%s is not allocated: the pod got its node without the scheduler, which alone allocates claims", what)
	o.Hint = fmt.Sprintf("create the pod without spec.nodeName, and with the node selector kubernetes.io/hostname: %s, so that the scheduler allocates its claims", pod.Spec.NodeName)
	return o
}

func ofClaim(s *snapshot.Snapshot, pod *corev1.Pod, name string, node *corev1.Node) (list []funnel.Obstacle) {
	claim := s.Claim(pod.Namespace, name)
	switch {
	case claim == nil:
		return []funnel.Obstacle{obstacle("ResourceClaim %q does not exist in namespace %s", name, pod.Namespace)}
	case claim.Status.Allocation == nil:
		return []funnel.Obstacle{unallocated(fmt.Sprintf("ResourceClaim %q", name), pod)}
	}
	if claim.DeletionTimestamp != nil {
		list = append(list, obstacle("ResourceClaim %q is being deleted", name))
	}
	if selector := claim.Status.Allocation.NodeSelector; selector != nil && node != nil {
		if terms, err := nodeaffinity.NewNodeSelector(selector); err == nil && !terms.Match(node) {
			list = append(list, obstacle("ResourceClaim %q is allocated to a device that node %s cannot reach", name, node.Name))
		}
	}
	if !resourceclaim.IsReservedForPod(pod, claim, false) {
		list = append(list, obstacle("ResourceClaim %q is not reserved for the pod, so the kubelet does not prepare it", name))
	}
	for _, said := range conditionsOf(claim) {
		if said.ready {
			list = append(list, obstacle("%s", said.text))
		}
	}
	return append(list, ofPreparation(s, claim)...)
}

// condition is a condition of a claim's device that is false.
type condition struct {
	text  string
	ready bool // without it, containers do not start
}

func conditionsOf(claim *resourceapi.ResourceClaim) (list []condition) {
	for _, device := range claim.Status.Devices {
		for _, c := range device.Conditions {
			if c.Status == metav1.ConditionFalse {
				list = append(list, condition{
					fmt.Sprintf("ResourceClaim %q, device %s: condition %s is false: %s", claim.Name, device.Device, c.Type, joined(c.Reason, c.Message)),
					c.Type == deviceclasses.ConditionReady,
				})
			}
		}
	}
	return list
}

// notesOf returns what does not keep the pod from starting: that its image is pulled, and
// conditions of its claims.
func notesOf(s *snapshot.Snapshot, pod *corev1.Pod) (notes []string) {
	if pulls := pulling(s.EventsAbout(pod)); pulls != "" && !Runs(pod) {
		notes = append(notes, pulls)
	}
	for _, name := range claimsOf(pod) {
		claim := s.Claim(pod.Namespace, name)
		if claim == nil {
			continue
		}
		for _, said := range conditionsOf(claim) {
			if !said.ready {
				notes = append(notes, said.text)
			}
		}
	}
	return notes
}

// ofPreparation names the devices of this driver that it has not prepared. The driver
// writes the status of a device when it has.
func ofPreparation(s *snapshot.Snapshot, claim *resourceapi.ResourceClaim) (list []funnel.Obstacle) {
	for _, result := range claim.Status.Allocation.Devices.Results {
		prepared := slices.ContainsFunc(claim.Status.Devices, func(device resourceapi.AllocatedDeviceStatus) bool {
			return device.Driver == result.Driver && device.Pool == result.Pool && device.Device == result.Device
		})
		if result.Driver != deviceclasses.DriverName || prepared || result.AdminAccess != nil && *result.AdminAccess {
			continue
		}
		o := obstacle("driver %s has not prepared device %s of ResourceClaim %q", result.Driver, result.Device, claim.Name)
		if requiresOneL3(claim, result.Request) {
			o.Sentence += ", which requires one level-3 cache"
			o.Hint = "l3: require waits on its node until one level-3 cache of the zone has enough free CPUs: delete a pod that holds CPUs of the zone, or use l3: prefer"
			o.HeldBy = othersOn(s, claim, result)
		}
		list = append(list, o)
	}
	return list
}

// requiresOneL3 reports whether the configuration of the request has l3: require. Later
// configurations override earlier ones.
func requiresOneL3(claim *resourceapi.ResourceClaim, request string) (requires bool) {
	for _, config := range claim.Status.Allocation.Devices.Config {
		covers := len(config.Requests) == 0 || slices.Contains(config.Requests, request) || slices.Contains(config.Requests, resourceclaim.BaseRequestRef(request))
		if config.Opaque == nil || config.Opaque.Driver != deviceclasses.DriverName || !covers {
			continue
		}
		var zone struct{ L3 *string }
		if json.Unmarshal(config.Opaque.Parameters.Raw, &zone) == nil && zone.L3 != nil {
			requires = *zone.L3 == deviceclasses.L3Require
		}
	}
	return requires
}

// othersOn returns the other claims that hold CPUs of the same device.
func othersOn(s *snapshot.Snapshot, claim *resourceapi.ResourceClaim, on resourceapi.DeviceRequestAllocationResult) (list []funnel.Holder) {
	for _, other := range s.Claims {
		if other == claim || other.Status.Allocation == nil {
			continue
		}
		for _, result := range other.Status.Allocation.Devices.Results {
			cpus := spelling.Amounts(result.Driver, result.ConsumedCapacity)[deviceclasses.CapacityCPU]
			if result.Driver != on.Driver || result.Pool != on.Pool || result.Device != on.Device || cpus.IsZero() {
				continue
			}
			holder := funnel.Holder{Device: on.Device, Resource: string(deviceclasses.CapacityCPU), Amount: cpus.String(), Claim: other.Namespace + "/" + other.Name}
			for _, user := range other.Status.ReservedFor {
				holder.Pods = append(holder.Pods, other.Namespace+"/"+user.Name)
			}
			list = append(list, holder)
		}
	}
	return list
}
