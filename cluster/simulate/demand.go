package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/funnel"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
)

// demand is what a pod needs on any node. It corresponds to the result of the
// scheduler's PreFilter.
type demand struct {
	pod      *corev1.Pod
	requests requests.Amounts
	affinity nodeaffinity.RequiredNodeAffinity
	claims   []podClaim
	waits    []string // for which binding conditions the scheduler waits
	extended bool     // devices provide an extended resource of the pod
	// alternatives is score.Alternatives of the claims that are allocated.
	alternatives int64
	number       int // demands have the same number if their claims to allocate are equal
	// harmless means that on every node, the allocator answers yes or no and cannot
	// fail. If the demand is not harmless, all nodes have to be asked: the scheduler
	// gives up on a pod if one node fails.
	harmless bool
}

// podClaim is a claim that the pod uses.
type podClaim struct {
	entry       string // name in pod.spec.resourceClaims; "" for extended resources
	claim       *resourceapi.ResourceClaim
	availableOn *nodeaffinity.NodeSelector // nil means everywhere, or not allocated
	refused     funnel.Cause               // why the scheduler uses it nowhere; nil if it does
}

func (d *demand) toAllocate() (list []*resourceapi.ResourceClaim) {
	for _, c := range d.claims {
		if c.claim.Status.Allocation == nil {
			list = append(list, c.claim)
		}
	}
	return list
}

// Reason says why a pod does not fit. It is not a failure of this program.
type Reason string

func (r Reason) Error() string { return string(r) }

// shortageError is the Reason that the pod and the devices of its claims together
// request more of the node's resources than are free.
type shortageError struct{ lacking []funnel.Cause }

func (e *shortageError) Error() string { return e.Unwrap().Error() }

func (e *shortageError) Unwrap() error {
	return reason("with the devices of its claims, %s", textOf(e.lacking))
}

func reason(format string, args ...any) error { return Reason(fmt.Sprintf(format, args...)) }

// demandOf returns the demand of a pod, or a Reason if the pod has to wait on every node.
func (c *Cluster) demandOf(pod *corev1.Pod) (*demand, error) {
	var why []string // all reasons to wait, because each has to go
	for _, gate := range pod.Spec.SchedulingGates {
		why = append(why, fmt.Sprintf("the pod waits for its scheduling gate %q", gate.Name))
	}
	d := &demand{
		pod:      pod,
		requests: requests.Waiting(pod),
		affinity: nodeaffinity.GetRequiredNodeAffinity(pod),
	}
	for i := range pod.Spec.ResourceClaims {
		entry := &pod.Spec.ResourceClaims[i]
		claim, err := c.claimFor(pod, entry)
		if err != nil {
			why = append(why, err.Error())
		}
		if claim == nil {
			continue
		}
		why = append(why, c.mayNotUse(pod, claim)...)
		used := podClaim{entry: entry.Name, claim: claim}
		if allocation := claim.Status.Allocation; allocation != nil && allocation.NodeSelector != nil {
			if used.availableOn, err = nodeaffinity.NewNodeSelector(allocation.NodeSelector); err != nil {
				why = append(why, fmt.Sprintf("the allocation of ResourceClaim %s has an invalid node selector: %v", claim.Name, err))
			}
		}
		var waits []string
		used.refused, waits = c.bindingOf(pod, claim)
		d.claims, d.waits = append(d.claims, used), append(d.waits, waits...)
	}
	if len(why) > 0 {
		return nil, Reason(strings.Join(why, "; "))
	}
	d.extended = c.asksExtended(d.requests)
	for _, used := range d.claims {
		if allocation := used.claim.Status.Allocation; allocation != nil {
			d.alternatives += c.alternatives([]*resourceapi.ResourceClaim{used.claim}, []resourceapi.AllocationResult{*allocation})
		}
	}
	return d, c.number(d)
}

// claimFor finds the claim for an entry of the pod. For a template, it makes the claim.
// It returns nil if the entry needs no claim. It mirrors foreachPodResourceClaim.
func (c *Cluster) claimFor(pod *corev1.Pod, entry *corev1.PodResourceClaim) (*resourceapi.ResourceClaim, error) {
	name, mustOwn, err := resourceclaim.Name(pod, entry)
	if errors.Is(err, resourceclaim.ErrClaimNotFound) {
		return c.fromTemplate(pod, entry)
	}
	if err != nil {
		return nil, reason("%v", err)
	}
	if name == nil {
		return nil, nil
	}
	claim := c.claims[types.NamespacedName{Namespace: pod.Namespace, Name: *name}]
	switch {
	case claim == nil:
		return nil, reason("ResourceClaim %q does not exist in namespace %s", *name, pod.Namespace)
	case claim.DeletionTimestamp != nil:
		return nil, reason("ResourceClaim %q is being deleted", *name)
	case mustOwn:
		if err := resourceclaim.IsForPod(pod, claim, false); err != nil {
			return nil, reason("%v", err)
		}
	}
	return c.respelled(claim), nil
}

// respelled returns a claim that is not allocated with the names of capacities that the
// allocator knows.
func (c *Cluster) respelled(claim *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	if c.names == nil || claim.Status.Allocation != nil {
		return claim
	}
	if spec := c.names.Claim(&claim.Spec); spec != &claim.Spec {
		return &resourceapi.ResourceClaim{TypeMeta: claim.TypeMeta, ObjectMeta: claim.ObjectMeta, Spec: *spec, Status: claim.Status}
	}
	return claim
}

// MissingTemplate says that there is no template of the name, and who makes it if the pod was
// translated.
func MissingTemplate(namespace, name string) string {
	missing := fmt.Sprintf("ResourceClaimTemplate %q does not exist in namespace %s", name, namespace)
	if translate.IsTemplateName(name) {
		missing += ", and the driver's Deployment whose name ends with -templates has not made it: the pod's events and its log say why"
	}
	return missing
}

func (c *Cluster) fromTemplate(pod *corev1.Pod, entry *corev1.PodResourceClaim) (*resourceapi.ResourceClaim, error) {
	name := *entry.ResourceClaimTemplateName
	template := c.templates[types.NamespacedName{Namespace: pod.Namespace, Name: name}]
	if template == nil {
		return nil, Reason(MissingTemplate(pod.Namespace, name))
	}
	claim := requests.Claim(pod, entry.Name)
	claim.Labels, claim.Annotations = template.Spec.Labels, template.Spec.Annotations
	claim.Spec = template.Spec.Spec
	return c.respelled(claim), nil
}

// mostAmounts is how many capacities a request may name. API servers of Kubernetes 1.38
// refuse more.
const mostAmounts = 32

// mayNotUse returns why the pod cannot reserve the claim, or which classes of the claim
// do not exist.
func (c *Cluster) mayNotUse(pod *corev1.Pod, claim *resourceapi.ResourceClaim) (why []string) {
	add := func(format string, args ...any) { why = append(why, fmt.Sprintf(format, args...)) }
	if claim.Status.Allocation != nil {
		if len(claim.Status.ReservedFor) >= resourceapi.ResourceClaimReservedForMaxSize && !resourceclaim.IsReservedForPod(pod, claim, false) {
			add("ResourceClaim %q is in use by %d pods, which is the maximum", claim.Name, len(claim.Status.ReservedFor))
		}
		return why
	}
	for _, request := range claim.Spec.Devices.Requests {
		for _, alternative := range requests.Alternatives(request) {
			if alternative.Class == "" {
				add("request %q of ResourceClaim %q has neither exactly nor firstAvailable", request.Name, claim.Name)
			} else if c.classes[alternative.Class] == nil && !slices.Contains(c.hidden, "DeviceClasses") {
				add("DeviceClass %q, which request %q of ResourceClaim %q asks for, does not exist", alternative.Class, alternative.Name, claim.Name)
			}
			if amounts := alternative.Amounts(); c.minor >= 38 && len(amounts) > mostAmounts {
				add("request %q of ResourceClaim %q asks for %d capacities, allowed are %d", alternative.Name, claim.Name, len(amounts), mostAmounts)
			}
		}
		if len(request.FirstAvailable) > 0 && !c.gates[gatePrioritizedList] {
			add("request %q of ResourceClaim %q has firstAvailable, but the feature gate %s is off", request.Name, claim.Name, gatePrioritizedList)
		}
	}
	return why
}

// number numbers the demand. Demands with the same claims to allocate get the same
// number.
func (c *Cluster) number(d *demand) error {
	key := struct {
		Specs    []*resourceapi.ResourceClaimSpec
		Extended *corev1.PodSpec // the requests of each container matter
	}{}
	for _, claim := range d.toAllocate() {
		key.Specs = append(key.Specs, &claim.Spec)
	}
	if d.extended {
		key.Extended = &d.pod.Spec
	}
	text, err := json.Marshal(key)
	if err != nil {
		return fmt.Errorf("compare claims of pod %s: %w", keyOf(d.pod), err)
	}
	if same := c.demands[string(text)]; same != nil {
		d.number, d.harmless = same.number, same.harmless
		return nil
	}
	d.number, d.harmless = len(c.demands), c.isHarmless(d)
	c.demands[string(text)] = d
	return nil
}

// asksExtended reports whether devices provide one of the pod's extended resources.
func (c *Cluster) asksExtended(asked requests.Amounts) bool {
	for name, amount := range asked {
		if amount != 0 && c.deviceResources()[name] != nil {
			return true
		}
	}
	return false
}

// extendedClaim returns the claim for the pod's extended resources, or nil if there is
// none on this node.
func (c *Cluster) extendedClaim(d *demand, n *node) *resourceapi.ResourceClaim {
	if !d.extended {
		return nil
	}
	return requests.ExtendedClaim(d.pod, d.requests, c.extended, n.allocatable)
}
