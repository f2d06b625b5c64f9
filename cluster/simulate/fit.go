package simulate

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/funnel"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
)

// refusals returns why the pod does not fit on the node, other than devices. The checks are
// in the order of the scheduler's plugins.
func (n *node) refusals(d *demand, extended map[corev1.ResourceName]*resourceapi.DeviceClass) (list []funnel.Cause) {
	tolerations := d.pod.Spec.Tolerations
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if n.Spec.Unschedulable && !schedulinghelper.TolerationsTolerateTaint(klog.Logger{}, tolerations, &cordon, false) {
		list = append(list, funnel.Cordoned{})
	}
	for i := range n.Spec.Taints {
		taint := &n.Spec.Taints[i]
		isCordon := taint.Key == cordon.Key && n.Spec.Unschedulable // the cordon is already there
		if preventsScheduling(taint) && !isCordon && !schedulinghelper.TolerationsTolerateTaint(klog.Logger{}, tolerations, taint, false) {
			list = append(list, funnel.Untolerated{Taint: taint})
		}
	}
	if match, err := d.affinity.Match(n.Node); err != nil {
		list = append(list, funnel.InvalidAffinity{Err: err})
	} else if !match {
		list = append(list, funnel.OtherNode{})
	}
	list = append(list, n.shortages(d, d.requests, extended)...)
	for _, used := range d.claims {
		if used.availableOn != nil && !used.availableOn.Match(n.Node) {
			list = append(list, funnel.OutOfReach{Claim: used.claim.Name})
		} else if used.refused != nil {
			list = append(list, used.refused)
		}
	}
	return list
}

// textOf joins the sentences.
func textOf(list []funnel.Cause) string {
	var texts []string
	for _, cause := range list {
		texts = append(texts, cause.String())
	}
	return strings.Join(texts, "; ")
}

func preventsScheduling(taint *corev1.Taint) bool {
	return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
}

// shortages says which resources the node does not have enough of, by name. A Node without
// allocatable, or without allocatable pods, was written by a person: it has enough.
func (n *node) shortages(d *demand, asked requests.Amounts, extended map[corev1.ResourceName]*resourceapi.DeviceClass) (lacking []funnel.Cause) {
	if len(n.allocatable) == 0 {
		return nil
	}
	kept, keptAmounts := n.keptFor(d.pod), make(requests.Amounts)
	for _, pod := range kept {
		for name, amount := range requests.Waiting(pod) {
			keptAmounts[name] += amount
		}
	}
	if limit, ok := n.allocatable[corev1.ResourcePods]; ok && n.pods+int64(len(kept))+1 > limit {
		lacking = append(lacking, funnel.TooManyPods{Limit: limit})
	}
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		if asked[name] == 0 || extended[name] != nil && n.allocatable[name] == 0 {
			continue // nothing is requested, or devices provide it (shouldDelegateResourceToDRA)
		}
		if free := n.allocatable[name] - n.taken[name] - keptAmounts[name]; asked[name] > free {
			lacking = append(lacking, funnel.TooLittle{Resource: name, Asked: asked[name], Free: max(free, 0), All: n.allocatable[name]})
		}
	}
	return lacking
}
