package simulate

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
)

// refusal says why the pod does not fit on the node for a reason other than devices. It
// returns "" if the pod fits. The checks are in the order of the scheduler's plugins.
func (n *node) refusal(d *demand, extended map[corev1.ResourceName]*resourceapi.DeviceClass) (reason string) {
	tolerations := d.pod.Spec.Tolerations
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if n.Spec.Unschedulable && !schedulinghelper.TolerationsTolerateTaint(klog.Logger{}, tolerations, &cordon, false) {
		return "the node is cordoned: spec.unschedulable is true"
	}
	taint, untolerated := schedulinghelper.FindMatchingUntoleratedTaint(klog.Logger{}, n.Spec.Taints, tolerations, preventsScheduling, false)
	if untolerated {
		return fmt.Sprintf("the pod does not tolerate the node's taint %s", taint.ToString())
	}
	if match, err := d.affinity.Match(n.Node); err != nil {
		return fmt.Sprintf("the pod's node affinity is invalid: %v", err)
	} else if !match {
		return "the node does not match the pod's node selector or affinity"
	}
	return n.shortage(d.requests, extended)
}

func preventsScheduling(taint *corev1.Taint) bool {
	return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
}

// shortage says which resources the node does not have enough of. A Node without
// allocatable, or without allocatable pods, was written by a person: it has enough.
func (n *node) shortage(asked requests.Amounts, extended map[corev1.ResourceName]*resourceapi.DeviceClass) string {
	if len(n.allocatable) == 0 {
		return ""
	}
	var lacking []string
	if limit, ok := n.allocatable[corev1.ResourcePods]; ok && n.pods+1 > limit {
		lacking = append(lacking, fmt.Sprintf("the node already runs its maximum of %d pods", limit))
	}
	for name, amount := range asked {
		if amount == 0 || extended[name] != nil && n.allocatable[name] == 0 {
			continue // nothing is requested, or devices provide it (shouldDelegateResourceToDRA)
		}
		if free := n.allocatable[name] - n.taken[name]; amount > free {
			lacking = append(lacking, fmt.Sprintf("the pod requests %s %s, but only %s of %s is free", name, requests.Text(name, amount),
				requests.Text(name, max(free, 0)), requests.Text(name, n.allocatable[name])))
		}
	}
	slices.Sort(lacking)
	return strings.Join(lacking, "; ")
}
