package score

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/klog/v2"
)

// taintToleration scores nodes by their taints PreferNoSchedule: the fewer of them the pod
// does not tolerate, the better.
func taintToleration(q *question) []int64 {
	scores := normalize(q.each(func(n Candidate) (count int64) {
		for i := range n.Spec.Taints {
			taint := &n.Spec.Taints[i]
			if taint.Effect == corev1.TaintEffectPreferNoSchedule &&
				!schedulinghelper.TolerationsTolerateTaint(klog.Logger{}, q.pod.Spec.Tolerations, taint, false) {
				count++
			}
		}
		return count
	}))
	for i := range scores {
		scores[i] = highest - scores[i]
	}
	return scores
}

// nodeAffinity scores nodes by the pod's preferred node affinity.
func nodeAffinity(q *question) []int64 {
	affinity := q.pod.Spec.Affinity
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	terms, err := nodeaffinity.NewPreferredSchedulingTerms(affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	if err != nil {
		q.cannotTell("preferred node affinity that is not valid (%v)", err)
		return nil
	}
	return normalize(q.each(func(n Candidate) int64 { return terms.Score(n.Node.Node) }))
}

// prioritizedList scores nodes by the alternatives of firstAvailable that the pod gets.
func prioritizedList(q *question) []int64 {
	return normalize(q.each(func(n Candidate) int64 { return n.Alternatives }))
}

// Alternatives returns what the plugin DynamicResources gives a node for the alternatives
// of firstAvailable that the pod gets there: 8 for each first one, 7 for each second one,
// and so on. Each claim has an allocation at the same index.
func Alternatives(claims []*resourceapi.ResourceClaim, allocations []resourceapi.AllocationResult) (sum int64) {
	for i, claim := range claims {
		results := allocations[i].Devices.Results
		for _, request := range claim.Spec.Devices.Requests {
			for j, alternative := range request.FirstAvailable {
				name := resourceclaim.CreateSubRequestRef(request.Name, alternative.Name)
				if slices.ContainsFunc(results, func(r resourceapi.DeviceRequestAllocationResult) bool { return r.Request == name }) {
					sum += int64(resourceapi.FirstAvailableDeviceRequestMaxSize - j)
				}
			}
		}
	}
	return sum
}

// image is a container image that nodes have.
type image struct {
	bytes int64 // as the first node says
	nodes map[*Node]bool
}

// imagesOn returns the images of the nodes by name.
func imagesOn(nodes []*Node) map[string]image {
	images := make(map[string]image)
	for _, n := range nodes {
		for _, found := range n.Status.Images {
			for _, name := range found.Names {
				if _, known := images[name]; !known {
					images[name] = image{found.SizeBytes, make(map[*Node]bool)}
				}
				images[name].nodes[n] = true
			}
		}
	}
	return images
}

// imageLocality scores nodes by the images of the pod that they already have. An image
// that is on few nodes counts little.
func imageLocality(q *question) []int64 {
	const (
		least = 23 << 20   // bytes in all
		most  = 1000 << 20 // bytes of each image
	)
	var names []string
	for _, container := range slices.Concat(q.pod.Spec.InitContainers, q.pod.Spec.Containers) {
		names = append(names, container.Image)
	}
	for _, volume := range q.pod.Spec.Volumes {
		if volume.Image != nil {
			names = append(names, volume.Image.Reference)
		}
	}
	if len(names) == 0 {
		return nil
	}
	var wanted []image
	for _, name := range names {
		if found := q.images[withTag(name)]; found.nodes != nil {
			wanted = append(wanted, found)
		}
	}
	limit := int64(most * len(names))
	return q.each(func(n Candidate) int64 {
		sum := int64(0)
		for _, i := range wanted {
			if i.nodes[n.Node] {
				sum += int64(float64(i.bytes) * (float64(len(i.nodes)) / float64(len(q.nodes))))
			}
		}
		return highest * (min(max(sum, least), limit) - least) / (limit - least)
	})
}

// withTag returns the name of an image as nodes report it.
func withTag(name string) string {
	if strings.LastIndex(name, ":") <= strings.LastIndex(name, "/") {
		return name + ":latest"
	}
	return name
}
