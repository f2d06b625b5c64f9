package lint

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/accounting"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
)

// Pod checks a pod and what its claims hold.
func (l *Linter) Pod(pod *corev1.Pod) (findings []Finding) {
	shares, unresolved := accounting.SharesOf(pod, l.known)
	for _, one := range unresolved {
		findings = append(findings, warn(UnresolvedClaim, fmt.Sprintf("spec.resourceClaims[%d]", one.Index), "%s", one.Why))
	}
	if accounting.TooLarge(pod, shares) {
		return findings
	}
	if len(unresolved) == 0 {
		findings = append(findings, checkHugepages(pod, shares)...)
	}
	findings = append(findings, l.checkUse(pod)...)
	findings = append(findings, l.checkNodeName(pod)...)
	if len(shares) == 0 {
		return findings
	}
	findings = append(findings, checkLimits(pod, shares)...)
	findings = append(findings, checkInit(pod, shares)...)
	if lacks := accounting.Mirror(pod, shares).Uncounted; len(lacks) > 0 {
		findings = append(findings, warn(RequestsDoNotMatch, "spec.containers",
			"the requests lack %s, which the pod's claims hold", accounting.Text(lacks)))
	}
	return findings
}

// checkHugepages finds hugepages that no claim of the pod has.
func checkHugepages(pod *corev1.Pod, shares []accounting.Share) (findings []Finding) {
	found := corev1.ResourceList{}
	for _, container := range containers(pod) {
		unclaimed := accounting.UnclaimedHugepages(container.Container, shares)
		maps.Copy(found, unclaimed)
		for _, name := range slices.Sorted(maps.Keys(unclaimed)) {
			findings = append(findings, warn(HugepagesNoClaim, fmt.Sprintf("%s.resources.limits[%s]", container.field, name),
				"no claim of the container has them, so they may be those of another pod's claim: request them from a zone"))
		}
	}
	limits := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		if _, already := found[name]; already || !strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) {
			continue
		}
		var held resource.Quantity
		for _, share := range shares {
			held.Add(share.Amounts[name])
		}
		held.Format = resource.BinarySI
		if limit := limits[name]; limit.Cmp(held) > 0 {
			findings = append(findings, warn(HugepagesNoClaim, limitField(pod, name),
				"the pod may use %s, but its claims hold %s, so the rest may be those of another pod's claim: request all of them from a zone", limit.String(), held.String()))
		}
	}
	return findings
}

// limitField is the field with the pod's limit of a resource, or the list of containers if
// several have a part of it.
func limitField(pod *corev1.Pod, name corev1.ResourceName) string {
	var fields []string
	for _, container := range containers(pod) {
		if limit := container.Resources.Limits[name]; !limit.IsZero() {
			fields = append(fields, fmt.Sprintf("%s.resources.limits[%s]", container.field, name))
		}
	}
	if own := pod.Spec.Resources; own != nil {
		if _, limited := own.Limits[name]; limited {
			fields = []string{fmt.Sprintf("spec.resources.limits[%s]", name)}
		}
	}
	if len(fields) == 1 {
		return fields[0]
	}
	return "spec.containers"
}

// placed is a container, with its place in the pod.
type placed struct {
	corev1.Container
	field string
	ends  bool // before the next one starts
}

func containers(pod *corev1.Pod) (list []placed) {
	for i, container := range pod.Spec.InitContainers {
		sidecar := container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways
		list = append(list, placed{container, fmt.Sprintf("spec.initContainers[%d]", i), !sidecar})
	}
	for i, container := range pod.Spec.Containers {
		list = append(list, placed{container, fmt.Sprintf("spec.containers[%d]", i), false})
	}
	return list
}

// cpus returns how many CPUs the container has of its claims.
func (c placed) cpus(shares []accounting.Share) (sum resource.Quantity) {
	for _, share := range shares {
		if share.UsedBy(c.Container) {
			sum.Add(share.Amounts[corev1.ResourceCPU])
		}
	}
	return sum
}

// checkLimits finds limits of CPUs that are less than what claims give. The driver lifts the
// quotas of others, unless the pod has a limit of its own. A translated pod keeps its limits,
// which make it Guaranteed: only its init containers have more CPUs than they say.
func checkLimits(pod *corev1.Pod, shares []accounting.Share) (findings []Finding) {
	if translate.TemplateOf(pod) != "" {
		return nil
	}
	const message = "limit %s throttles the container on its own CPUs: remove the limit"
	if own := pod.Spec.Resources; own != nil {
		if limit, limited := own.Limits[corev1.ResourceCPU]; limited {
			findings = append(findings, warn(CPULimitOnClaimPod, "spec.resources.limits[cpu]", message, limit.String()))
		}
	}
	for _, container := range containers(pod) {
		limit, limited := container.Resources.Limits[corev1.ResourceCPU]
		if cpus := container.cpus(shares); limited && limit.Cmp(cpus) < 0 {
			findings = append(findings, warn(CPULimitOnClaimPod, container.field+".resources.limits[cpu]", message, limit.String()))
		}
	}
	return findings
}

// checkInit finds shares that are only used by containers that end before the others
// start.
func checkInit(pod *corev1.Pod, shares []accounting.Share) (findings []Finding) {
	for _, share := range shares {
		field, toTheEnd := "", false
		for _, container := range containers(pod) {
			if !share.UsedBy(container.Container) {
				continue
			}
			toTheEnd = toTheEnd || !container.ends
			if field == "" {
				field = container.field
			}
		}
		if field != "" && !toTheEnd {
			findings = append(findings, warn(InitClaimsAddUp, field+".resources.claims",
				"the pod holds claim %q (%s) until it ends, in addition to its other claims", share.Claim, accounting.Text(share.Amounts)))
		}
	}
	return findings
}
