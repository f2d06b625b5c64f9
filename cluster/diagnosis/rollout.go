package diagnosis

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// podGeneration is the label of a DaemonSet's pod with the generation of the template from
// which it was made (extensions.DaemonSetTemplateGenerationKey). The DaemonSet has its own
// in the annotation appsv1.DeprecatedTemplateGeneration. The controller compares the two.
const podGeneration = "pod-template-generation"

// isCurrent reports whether the DaemonSet's controller made the pod from the template that
// the DaemonSet has now. Images do not say that: policies rewrite those of pods, such as to
// digests. Without generations, it reports false.
func isCurrent(pod *corev1.Pod, set *appsv1.DaemonSet) bool {
	want := set.Annotations[appsv1.DeprecatedTemplateGeneration]
	return want != "" && pod.Labels[podGeneration] == want
}
