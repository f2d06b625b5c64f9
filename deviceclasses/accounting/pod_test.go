package accounting

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// podOf reads a pod of one line for each container, such as
//
//	main a cpu=2 limit:cpu=4 uses=claim uses=other/request
//
// where main is an ordinary container, init one that ends, side a sidecar; the
// line "pod cpu=2" says what the pod requests itself.
func podOf(lines ...string) *corev1.Pod {
	pod := &corev1.Pod{}
	always := corev1.ContainerRestartPolicyAlways
	for _, line := range lines {
		words := strings.Fields(line)
		if words[0] == "pod" {
			requirements := requirementsOf(words[1:])
			pod.Spec.Resources = &requirements
			continue
		}
		container := corev1.Container{Name: words[1], Resources: requirementsOf(words[2:])}
		switch words[0] {
		case "main":
			pod.Spec.Containers = append(pod.Spec.Containers, container)
			continue
		case "side":
			container.RestartPolicy = &always
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, container)
	}
	return pod
}

func requirementsOf(words []string) (requirements corev1.ResourceRequirements) {
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		if key == "uses" {
			claim, request, _ := strings.Cut(value, "/")
			requirements.Claims = append(requirements.Claims, corev1.ResourceClaim{Name: claim, Request: request})
			continue
		}
		list := &requirements.Requests
		if name, limit := strings.CutPrefix(key, "limit:"); limit {
			key, list = name, &requirements.Limits
		}
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[corev1.ResourceName(key)] = resource.MustParse(value)
	}
	return requirements
}

// sharesOf reads shares such as "claim cpu=4" and "claim/request cpu=4".
func sharesOf(lines ...string) (shares []Share) {
	for _, line := range lines {
		words := strings.Fields(line)
		claim, request, _ := strings.Cut(words[0], "/")
		shares = append(shares, Share{claim, request, requirementsOf(words[1:]).Requests})
	}
	return shares
}

// requestsOf lists what a pod's containers request, such as "a: cpu 4; b: ".
func requestsOf(pod *corev1.Pod) string {
	var parts []string
	for _, container := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		parts = append(parts, fmt.Sprintf("%s: %s", container.Name, Text(container.Resources.Requests)))
	}
	if pod.Spec.Resources != nil {
		parts = append(parts, "pod: "+Text(pod.Spec.Resources.Requests))
	}
	return strings.Join(parts, "; ")
}
