package diagnosis

import (
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// PolicyGroup is the API group of the configurations of NRI resource policies, and
// PolicyVersion its version. Source: containers/nri-plugins, config/crd.
const (
	PolicyGroup   = "config.nri"
	PolicyVersion = "v1alpha1"
)

// policyImage begins the names of the images of NRI resource policies.
const policyImage = "nri-resource-policy"

// resourcePolicy finds nodes on which an NRI resource policy rewrites the cpusets of all
// containers, those of claims included. Policies whose image has another name show only by
// their configurations, which do not say on which nodes.
func resourcePolicy(f *Facts) (findings []Finding) {
	nodes, seen := f.nodeNames(), false
	expected := "none on a node with " + driver.Name + ", because it rewrites the cpusets of all containers"
	for _, pod := range f.Objects.Pods {
		set, image := metav1.GetControllerOf(pod), policyImageOf(pod)
		if image == "" || set == nil || set.Kind != "DaemonSet" || snapshot.Finished(pod) {
			continue
		}
		seen = true
		if !nodes[pod.Spec.NodeName] {
			continue
		}
		detected := "runs " + image
		if len(f.Policies) > 0 {
			detected += ", configured by " + message.First(f.Policies, 3)
		}
		findings = append(findings, Finding{
			Node: pod.Spec.NodeName, Component: "DaemonSet " + pod.Namespace + "/" + set.Name, Setting: "NRI resource policy", Expected: expected, Detected: detected,
		})
	}
	if !seen && len(nodes) > 0 {
		for _, policy := range f.Policies {
			findings = append(findings, Finding{Component: policy, Setting: "NRI resource policy", Expected: expected, Detected: "exists; its DaemonSet is not known"})
		}
	}
	return findings
}

// policyImageOf returns the last part of the image of a policy that the pod runs, without tag
// and digest; "" if it runs none.
func policyImageOf(pod *corev1.Pod) string {
	for _, container := range pod.Spec.Containers {
		if name := imageName(container.Image); strings.HasPrefix(name, policyImage) {
			return name
		}
	}
	return ""
}

// imageName returns the last part of an image's path, without tag and digest.
func imageName(image string) string {
	base, _, _ := strings.Cut(path.Base(image), "@")
	base, _, _ = strings.Cut(base, ":")
	return base
}
