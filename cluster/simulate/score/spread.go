package score

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
)

// constraint is a topology spread constraint that is a wish (ScheduleAnyway).
type constraint struct {
	key           string
	skew          int32
	counts        func(*corev1.Pod) bool
	honorAffinity bool // count only pods on nodes that match the pod's node selector and affinity
	honorTaints   bool // count only pods on nodes whose taints the pod tolerates
	// pods are those that count, by the value of the key. Only values of candidates are in it.
	pods   map[string]int64
	weight float64
}

// topologySpread scores nodes by how many pods of the same kind are on the nodes with the
// same label: the fewer the better.
func topologySpread(q *question) []int64 {
	own := len(q.pod.Spec.TopologySpreadConstraints) > 0
	constraints := q.ownConstraints()
	if !own {
		constraints = q.defaultConstraints()
	}
	if len(constraints) == 0 {
		return nil
	}
	// A node without a label that is not a default one is not scored.
	ignored := func(n *Node) bool {
		return own && slices.ContainsFunc(constraints, func(c constraint) bool { _, has := n.Labels[c.key]; return !has })
	}
	q.countPods(constraints, ignored)
	return spreadScores(q, ignored, func(n Candidate) int64 {
		score := 0.0
		for _, c := range constraints {
			if value, has := n.Labels[c.key]; has {
				count := c.pods[value]
				if c.key == corev1.LabelHostname {
					count = q.count(c, n.Node)
				}
				score += float64(count)*c.weight + float64(c.skew-1)
			}
		}
		return int64(math.Round(score))
	})
}

// spreadScores turns what pods cost on each node into scores.
func spreadScores(q *question, ignored func(*Node) bool, cost func(Candidate) int64) []int64 {
	costs := q.each(cost)
	least, most := int64(math.MaxInt64), int64(0)
	for i, n := range q.candidates {
		if !ignored(n.Node) {
			least, most = min(least, costs[i]), max(most, costs[i])
		}
	}
	for i, n := range q.candidates {
		switch {
		case ignored(n.Node):
			costs[i] = 0
		case most == 0:
			costs[i] = highest
		default:
			costs[i] = highest * (most + least - costs[i]) / most
		}
	}
	return costs
}

// countPods sets weights and pods of the constraints. Pods of a node are counted later, if
// the node is a topology of its own.
func (q *question) countPods(constraints []constraint, ignored func(*Node) bool) {
	scored := 0
	for _, n := range q.candidates {
		if ignored(n.Node) {
			continue
		}
		scored++
		for _, c := range constraints {
			c.pods[n.Labels[c.key]] = 0
		}
	}
	for i := range constraints {
		c := &constraints[i]
		topologies := len(c.pods)
		if c.key == corev1.LabelHostname {
			topologies = scored
		}
		c.weight = math.Log(float64(topologies + 2))
	}
	affinity := nodeaffinity.GetRequiredNodeAffinity(q.pod)
	for _, n := range q.nodes {
		if ignored(n) {
			continue
		}
		for _, c := range constraints {
			value := n.Labels[c.key]
			if _, known := c.pods[value]; known && c.key != corev1.LabelHostname && q.includes(c, n, affinity) {
				c.pods[value] += q.count(c, n)
			}
		}
	}
}

// includes reports whether the pods of the node count.
func (q *question) includes(c constraint, n *Node, affinity nodeaffinity.RequiredNodeAffinity) bool {
	if c.honorAffinity {
		if match, _ := affinity.Match(n.Node); !match {
			return false
		}
	}
	if c.honorTaints {
		_, untolerated := schedulinghelper.FindMatchingUntoleratedTaint(klog.Logger{}, n.Spec.Taints, q.pod.Spec.Tolerations, func(t *corev1.Taint) bool {
			return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
		}, false)
		return !untolerated
	}
	return true
}

// count counts the pods of the node that are of the same kind.
func (q *question) count(c constraint, n *Node) (count int64) {
	for _, pod := range n.Pods {
		if pod.DeletionTimestamp == nil && pod.Namespace == q.pod.Namespace && c.counts(pod) {
			count++
		}
	}
	return count
}

// ownConstraints returns the constraints of the pod that are wishes.
func (q *question) ownConstraints() (list []constraint) {
	for _, own := range q.pod.Spec.TopologySpreadConstraints {
		if own.WhenUnsatisfiable != corev1.ScheduleAnyway {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(own.LabelSelector)
		if err != nil {
			q.cannotTell("a topology spread constraint whose selector is not valid (%v)", err)
			continue
		}
		same := make(labels.Set)
		for _, key := range own.MatchLabelKeys {
			if value, has := q.pod.Labels[key]; has {
				same[key] = value
			}
		}
		alike := same.AsSelector()
		c := constraint{
			key: own.TopologyKey, skew: own.MaxSkew, pods: make(map[string]int64),
			counts: func(pod *corev1.Pod) bool {
				set := labels.Set(pod.Labels)
				return selector.Matches(set) && alike.Matches(set)
			},
			honorAffinity: ptr.Deref(own.NodeAffinityPolicy, corev1.NodeInclusionPolicyHonor) == corev1.NodeInclusionPolicyHonor,
			honorTaints:   ptr.Deref(own.NodeTaintsPolicy, corev1.NodeInclusionPolicyIgnore) == corev1.NodeInclusionPolicyHonor,
		}
		if selector.Empty() && len(same) == 0 {
			c.counts = func(*corev1.Pod) bool { return false } // countPodsMatchSelector
		}
		list = append(list, c)
	}
	return list
}

// defaultConstraints returns the scheduler's constraints for a pod that has none
// (systemDefaultConstraints). They are for pods of a Service or of the controllers below.
// Services are not read. Here, pods of the same controller are of the same kind: they
// have the labels of the controller's selector, and those of the same Services.
func (q *question) defaultConstraints() []constraint {
	owner := metav1.GetControllerOfNoCopy(q.pod)
	if owner == nil || !slices.Contains([]string{"ReplicaSet", "StatefulSet", "ReplicationController", "Deployment"}, owner.Kind) {
		return nil
	}
	same := func(pod *corev1.Pod) bool {
		other := metav1.GetControllerOfNoCopy(pod)
		return other != nil && other.UID == owner.UID
	}
	return []constraint{
		{key: corev1.LabelHostname, skew: 3, counts: same, honorAffinity: true, pods: make(map[string]int64)},
		{key: corev1.LabelTopologyZone, skew: 5, counts: same, honorAffinity: true, pods: make(map[string]int64)},
	}
}
