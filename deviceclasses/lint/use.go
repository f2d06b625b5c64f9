package lint

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"
)

// checkUse compares what the containers name with what the claims of the pod have.
func (l *Linter) checkUse(pod *corev1.Pod) (findings []Finding) {
	for i, entry := range pod.Spec.ResourceClaims {
		spec := l.specOf(pod, &entry)
		if spec == nil {
			continue // what the claim has is not known
		}
		wrong := l.checkNames(pod, entry.Name, spec.Devices.Requests)
		findings = append(findings, wrong...)
		if names := l.unused(pod, entry.Name, spec); len(wrong) == 0 && len(names) > 0 {
			findings = append(findings, warn(UnusedClaim, fmt.Sprintf("spec.resourceClaims[%d]", i),
				"no container uses %s, so the pod holds it for nothing: name %q in resources.claims of a container", requestsText(names), entry.Name))
		}
	}
	return findings
}

// specOf returns what an entry of the pod claims, or nil if that is not known.
func (l *Linter) specOf(pod *corev1.Pod, entry *corev1.PodResourceClaim) *resourceapi.ResourceClaimSpec {
	name, _, err := resourceclaim.Name(pod, entry)
	switch {
	case err == nil && name != nil:
		if claim := l.known.ResourceClaim(pod.Namespace, *name); claim != nil {
			return &claim.Spec
		}
	case entry.ResourceClaimTemplateName != nil:
		if template := l.known.ResourceClaimTemplate(pod.Namespace, *entry.ResourceClaimTemplateName); template != nil {
			return &template.Spec.Spec
		}
	}
	return nil
}

// checkNames finds containers that name a request that the claim does not have. Such a
// container starts, but without the devices.
func (l *Linter) checkNames(pod *corev1.Pod, entry string, requests []resourceapi.DeviceRequest) (findings []Finding) {
	var names []string
	for _, request := range requests {
		names = append(names, request.Name)
	}
	for _, container := range containers(pod) {
		for i, ref := range container.Resources.Claims {
			if ref.Name != entry || ref.Request == "" || slices.Contains(names, ref.Request) {
				continue
			}
			advice := "the claim has " + requestsText(names) + ", so the container starts without its devices"
			if main := resourceclaim.BaseRequestRef(ref.Request); slices.Contains(names, main) {
				advice = fmt.Sprintf("a container names a request without its alternative: write %s", main)
			}
			findings = append(findings, warn(RequestNotInClaim, fmt.Sprintf("%s.resources.claims[%d].request", container.field, i), "%q is no request of the claim: %s", ref.Request, advice))
		}
	}
	return findings
}

// unused returns the requests of a claim for devices of this driver, if no container uses
// any of them. A claim that only looks at devices holds nothing. Selectors are evaluated
// only if some request is not used.
func (l *Linter) unused(pod *corev1.Pod, entry string, spec *resourceapi.ResourceClaimSpec) (names []string) {
	used := func(ask ask) bool {
		return slices.ContainsFunc(containers(pod), func(container placed) bool {
			return slices.ContainsFunc(container.Resources.Claims, func(ref corev1.ResourceClaim) bool {
				return ref.Name == entry && (ref.Request == "" || ref.Request == ask.request)
			})
		})
	}
	asks := asksOf("", *spec)
	if !slices.ContainsFunc(asks, func(ask ask) bool { return !used(ask) }) {
		return nil
	}
	for _, ask := range asks {
		switch {
		case ask.admin || !l.getsOurs(ask):
		case used(ask):
			return nil
		case !slices.Contains(names, ask.request):
			names = append(names, ask.request)
		}
	}
	return names
}

// getsOurs reports whether the request gets devices of this driver, and no others.
func (l *Linter) getsOurs(ask ask) bool {
	class := l.known.DeviceClass(ask.class)
	if class == nil {
		return false
	}
	gets := l.known.Selectors().Try(class.Spec.Selectors, ask.selectors)
	return (gets.Zones || gets.Caches || gets.Functions) && !gets.Foreign && !gets.Incomplete
}

// maxNamed is the number of requests that a message names: the API server cuts long ones.
const maxNamed = 3

func requestsText(names []string) string {
	if len(names) == 0 {
		return "no requests"
	}
	text, more := "request ", len(names)-maxNamed
	if len(names) > 1 {
		text = "requests "
	}
	text += strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// checkNodeName finds a pod that has its node without the scheduler, which alone allocates
// claims. A pod that the scheduler has placed has its claims reserved.
func (l *Linter) checkNodeName(pod *corev1.Pod) []Finding {
	if pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil {
		return nil
	}
	unreserved := func(entry corev1.PodResourceClaim) bool {
		name, _, err := resourceclaim.Name(pod, &entry)
		if errors.Is(err, resourceclaim.ErrClaimNotFound) {
			return true
		}
		claim := l.known.ResourceClaim(pod.Namespace, ptr.Deref(name, ""))
		return claim != nil && !resourceclaim.IsReservedForPod(pod, claim, true)
	}
	if !slices.ContainsFunc(pod.Spec.ResourceClaims, unreserved) {
		return nil
	}
	return []Finding{warn(NodeNameWithClaims, "spec.nodeName", "the scheduler, which alone allocates claims, skips the pod, so it does not start: use nodeSelector kubernetes.io/hostname: %s", pod.Spec.NodeName)}
}
