package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
)

// refusal is a reason, other than devices, why a pod does not fit on a node.
type refusal struct {
	text     string
	resource corev1.ResourceName // what the node does not have enough of; "" for other reasons
}

// refusals returns all such reasons. The checks are in the order of the scheduler's
// plugins.
func (n *node) refusals(d *demand, extended map[corev1.ResourceName]*resourceapi.DeviceClass) (list []refusal) {
	tolerations := d.pod.Spec.Tolerations
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if n.Spec.Unschedulable && !schedulinghelper.TolerationsTolerateTaint(klog.Logger{}, tolerations, &cordon, false) {
		list = append(list, refusal{text: "the node is cordoned: spec.unschedulable is true"})
	}
	for i := range n.Spec.Taints {
		taint := &n.Spec.Taints[i]
		isCordon := taint.Key == cordon.Key && n.Spec.Unschedulable // the cordon is already there
		if preventsScheduling(taint) && !isCordon && !schedulinghelper.TolerationsTolerateTaint(klog.Logger{}, tolerations, taint, false) {
			list = append(list, refusal{text: fmt.Sprintf("the pod does not tolerate the node's taint %s", taint.ToString())})
		}
	}
	if match, err := d.affinity.Match(n.Node); err != nil {
		list = append(list, refusal{text: fmt.Sprintf("the pod's node affinity is invalid: %v", err)})
	} else if !match {
		list = append(list, refusal{text: "the node does not match the pod's node selector or affinity"})
	}
	list = append(list, n.shortages(d.requests, extended)...)
	for _, used := range d.claims {
		if used.availableOn != nil && !used.availableOn.Match(n.Node) {
			list = append(list, refusal{text: fmt.Sprintf("ResourceClaim %s is allocated to a device that this node cannot reach", used.claim.Name)})
		}
	}
	return list
}

// textOf joins the reasons.
func textOf(list []refusal) string {
	var texts []string
	for _, r := range list {
		texts = append(texts, r.text)
	}
	return strings.Join(texts, "; ")
}

func preventsScheduling(taint *corev1.Taint) bool {
	return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
}

// shortages says which resources the node does not have enough of. A Node without
// allocatable, or without allocatable pods, was written by a person: it has enough.
func (n *node) shortages(asked requests.Amounts, extended map[corev1.ResourceName]*resourceapi.DeviceClass) (lacking []refusal) {
	if len(n.allocatable) == 0 {
		return nil
	}
	if limit, ok := n.allocatable[corev1.ResourcePods]; ok && n.pods+1 > limit {
		lacking = append(lacking, refusal{text: fmt.Sprintf("the node already runs its maximum of %d pods", limit)})
	}
	for name, amount := range asked {
		if amount == 0 || extended[name] != nil && n.allocatable[name] == 0 {
			continue // nothing is requested, or devices provide it (shouldDelegateResourceToDRA)
		}
		if free := n.allocatable[name] - n.taken[name]; amount > free {
			lacking = append(lacking, refusal{fmt.Sprintf("the pod requests %s %s, but %s", name, requests.Text(name, amount),
				freeText(name, max(free, 0), n.allocatable[name])), name})
		}
	}
	slices.SortFunc(lacking, func(a, b refusal) int { return cmp.Compare(a.text, b.text) })
	return lacking
}

// freeText says how much of a resource a node has, if all of it is free, or is left of it.
func freeText(name corev1.ResourceName, free, all int64) string {
	switch {
	case all == 0:
		return "the node has none"
	case free == all:
		return "the node has " + requests.Text(name, all)
	}
	return fmt.Sprintf("only %s of %s are free", requests.Text(name, free), requests.Text(name, all))
}
