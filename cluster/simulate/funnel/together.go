package funnel

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
)

// Together explains requests that fit alone but not together. To find out what is too
// much, it calls fits, which asks the allocator, with fewer and fewer requirements.
func Together(pod *corev1.Pod, claims []Claim, fits func(...*resourceapi.ResourceClaim) bool) (sentence, hint string) {
	for _, used := range claims {
		if fits(used.Claim) {
			continue
		}
		relaxed := used.Claim.DeepCopy()
		relaxed.Spec.Devices.Constraints = nil
		if fits(relaxed) {
			return fmt.Sprintf("claim %s: each request fits alone, but not all of them together with the constraints on %s", used.Entry, constraintNames(used.Claim)), ""
		}
		return fmt.Sprintf("claim %s: each request fits alone, but not all of them together: %s", used.Entry, requestsText(used.Claim)), ""
	}
	var names []string
	for _, used := range claims {
		names = append(names, used.Entry)
	}
	return fmt.Sprintf("the claims %s fit alone, but not all of them together", strings.Join(names, ", ")), InitHint(pod)
}

func constraintNames(claim *resourceapi.ResourceClaim) string {
	var names []string
	for _, constraint := range claim.Spec.Devices.Constraints {
		for _, name := range []*resourceapi.FullyQualifiedName{constraint.MatchAttribute, constraint.DistinctAttribute} {
			if name != nil {
				names = append(names, string(*name))
			}
		}
	}
	return strings.Join(names, ", ")
}

// requestsText lists what the requests of a claim ask for.
func requestsText(claim *resourceapi.ResourceClaim) string {
	var parts []string
	for _, request := range claim.Spec.Devices.Requests {
		for _, a := range requests.Alternatives(request) {
			part := fmt.Sprintf("%s wants %s of %s", a.Name, devices(int(a.Count)), a.Class)
			if a.Capacity != nil {
				for _, name := range sortedNames(a.Capacity.Requests) {
					amount := a.Capacity.Requests[name]
					part += fmt.Sprintf(", %s %s", amount.String(), name)
				}
			}
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "; ")
}
