package score

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// term is a pod's wish to be near other pods or, if the weight is negative, far from them.
type term struct {
	key        string // nodes with the same value of this label are near each other
	weight     int64
	selector   labels.Selector
	namespaces []string // of the other pods
	everywhere bool     // the other pods are of any namespace
	elsewhere  bool     // the other pods are also of namespaces with certain labels
}

// socialPod is a pod with its wishes.
type socialPod struct {
	pod   *corev1.Pod
	terms []term
}

// newSocialPod returns a pod with the terms that count for pods that come after it. A
// required affinity is a wish for them, with weight 1 (hardPodAffinityWeight).
func newSocialPod(pod *corev1.Pod) socialPod {
	p := socialPod{pod, preferences(pod)}
	if affinity := pod.Spec.Affinity; affinity != nil && affinity.PodAffinity != nil {
		for _, required := range affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			p.terms = append(p.terms, newTerm(pod, required, 1))
		}
	}
	return p
}

// preferences returns the pod's preferred affinity to and from other pods.
func preferences(pod *corev1.Pod) (terms []term) {
	affinity := pod.Spec.Affinity
	if affinity == nil {
		return nil
	}
	if affinity.PodAffinity != nil {
		for _, preferred := range affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			terms = append(terms, newTerm(pod, preferred.PodAffinityTerm, int64(preferred.Weight)))
		}
	}
	if affinity.PodAntiAffinity != nil {
		for _, preferred := range affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			terms = append(terms, newTerm(pod, preferred.PodAffinityTerm, -int64(preferred.Weight)))
		}
	}
	return terms
}

func newTerm(pod *corev1.Pod, from corev1.PodAffinityTerm, weight int64) term {
	t := term{key: from.TopologyKey, weight: weight, namespaces: from.Namespaces}
	selector, err := metav1.LabelSelectorAsSelector(from.LabelSelector)
	if err != nil {
		selector = labels.Nothing() // an API server does not accept such a pod
	}
	t.selector = selector
	switch namespaces := from.NamespaceSelector; {
	case namespaces == nil && len(from.Namespaces) == 0:
		t.namespaces = []string{pod.Namespace}
	case namespaces != nil:
		t.everywhere = len(namespaces.MatchLabels)+len(namespaces.MatchExpressions) == 0
		t.elsewhere = !t.everywhere
	}
	return t
}

// Avoids reports whether a pod of the cluster may require that the pod is not near it
// (satisfyExistingPodsAntiAffinity of InterPodAffinity).
func (c *Cluster) Avoids(pod *corev1.Pod) bool {
	q := &question{}
	return slices.ContainsFunc(c.nodes, func(n *Node) bool {
		return slices.ContainsFunc(n.avoids, func(t term) bool {
			_, has := n.Labels[t.key]
			return has && (q.applies(t, pod) || len(q.unknown) > 0)
		})
	})
}

// applies reports whether the term is about the pod.
func (q *question) applies(t term, pod *corev1.Pod) bool {
	if !t.selector.Matches(labels.Set(pod.Labels)) {
		return false
	}
	if t.everywhere || slices.Contains(t.namespaces, pod.Namespace) {
		return true
	}
	if t.elsewhere {
		q.cannotTell("namespaceSelector of pod affinity")
	}
	return false
}

// interPodAffinity scores nodes by the pods near them: those that the pod prefers to be
// near, and those that prefer to be near the pod.
func interPodAffinity(q *question) []int64 {
	near := make(map[string]map[string]int64) // by label and value
	meet := func(n *Node, t term, other *corev1.Pod) {
		value, has := n.Labels[t.key]
		if !has || !q.applies(t, other) {
			return
		}
		if near[t.key] == nil {
			near[t.key] = make(map[string]int64)
		}
		near[t.key][value] += t.weight
	}
	own := preferences(q.pod)
	for _, n := range q.nodes {
		if len(own) > 0 {
			for _, pod := range n.Pods {
				for _, t := range own {
					meet(n, t, pod)
				}
			}
		}
		for _, other := range n.social {
			for _, t := range other.terms {
				meet(n, t, q.pod)
			}
		}
	}
	if len(near) == 0 {
		return nil
	}
	scores := q.each(func(n Candidate) (sum int64) {
		for key, values := range near {
			if value, has := n.Labels[key]; has {
				sum += values[value]
			}
		}
		return sum
	})
	least, most := slices.Min(scores), slices.Max(scores)
	for i := range scores {
		share := 0.0
		if most > least {
			share = float64(scores[i]-least) / float64(most-least)
		}
		scores[i] = int64(highest * share)
	}
	return scores
}
