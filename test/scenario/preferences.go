package scenario

import (
	"math/rand/v2"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels of nodes and pods that preferences are about.
const (
	diskLabel = "scenario.test/disk"
	appLabel  = "scenario.test/app"
)

// addPreferences adds labels and taints of nodes, and preferences of pods. The scheduler
// scores nodes by them, but they do not change on which nodes a pod fits. It has random
// numbers of its own, so that the rest of a scenario is the same without it.
func (m maker) addPreferences(seed uint64) {
	m.Rand = rand.New(rand.NewPCG(seed, 2))
	for _, node := range m.Nodes {
		node.Labels[corev1.LabelHostname] = node.Name
		node.Labels[corev1.LabelTopologyZone] = pick(m, "z0", "z1")
		if !m.chance(3) {
			node.Labels[diskLabel] = pick(m, "0", "1", "2")
		}
		if m.chance(4) {
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: pick(m, nodeTaint, Label), Effect: corev1.TaintEffectPreferNoSchedule})
		}
	}
	for _, pod := range m.Pods {
		pod.Labels = map[string]string{Label: m.Name, appLabel: pick(m, "a", "b")}
		if m.chance(2) {
			pod.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = *resource.NewQuantity(int64(m.IntN(1<<30)), resource.BinarySI)
		}
		if m.chance(3) {
			m.preferNodes(pod)
		}
		if m.chance(3) {
			m.preferPods(pod)
		}
		if m.chance(3) {
			pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
				MaxSkew: int32(1 + m.IntN(3)), TopologyKey: pick(m, corev1.LabelHostname, corev1.LabelTopologyZone, diskLabel),
				WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: m.app(),
			}}
		}
	}
}

// app selects some of the scenario's pods.
func (m maker) app() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{Label: m.Name, appLabel: pick(m, "a", "b")}}
}

func affinityOf(pod *corev1.Pod) *corev1.Affinity {
	if pod.Spec.Affinity == nil {
		pod.Spec.Affinity = &corev1.Affinity{}
	}
	return pod.Spec.Affinity
}

func (m maker) preferNodes(pod *corev1.Pod) {
	affinity := &corev1.NodeAffinity{}
	for range 1 + m.IntN(2) {
		affinity.PreferredDuringSchedulingIgnoredDuringExecution = append(affinity.PreferredDuringSchedulingIgnoredDuringExecution, corev1.PreferredSchedulingTerm{
			Weight: int32(1 + m.IntN(100)),
			Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: diskLabel, Operator: pick(m, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn), Values: []string{strconv.Itoa(m.IntN(3))}},
			}},
		})
	}
	affinityOf(pod).NodeAffinity = affinity
}

// preferPods makes a pod prefer to be near some pods and far from others.
func (m maker) preferPods(pod *corev1.Pod) {
	term := func() []corev1.WeightedPodAffinityTerm {
		return []corev1.WeightedPodAffinityTerm{{
			Weight:          int32(1 + m.IntN(100)),
			PodAffinityTerm: corev1.PodAffinityTerm{LabelSelector: m.app(), TopologyKey: pick(m, corev1.LabelHostname, corev1.LabelTopologyZone)},
		}}
	}
	affinity := affinityOf(pod)
	if m.chance(2) {
		affinity.PodAffinity = &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: term()}
	} else {
		affinity.PodAntiAffinity = &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: term()}
	}
}
