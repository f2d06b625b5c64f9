package funnel

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
)

// Causes that are about requests which fit alone but not together.
type (
	tooConstrained struct{ Claim }
	tooMany        struct{ Claim }
	claimsApart    struct {
		claims []Claim
		pod    *corev1.Pod
	}
)

// Together finds out what is too much of requests that fit alone but not together. It
// calls fits, which asks the allocator, with fewer and fewer requirements.
func Together(pod *corev1.Pod, claims []Claim, fits func(...*resourceapi.ResourceClaim) bool) Cause {
	for _, used := range claims {
		if fits(used.Claim) {
			continue
		}
		relaxed := used.Claim.DeepCopy()
		relaxed.Spec.Devices.Constraints = nil
		if fits(relaxed) {
			return tooConstrained{used}
		}
		return tooMany{used}
	}
	return claimsApart{claims, pod}
}

func (c tooConstrained) String() string {
	var names []string
	for _, constraint := range c.Claim.Claim.Spec.Devices.Constraints {
		for _, name := range []*resourceapi.FullyQualifiedName{constraint.MatchAttribute, constraint.DistinctAttribute} {
			if name != nil {
				names = append(names, string(*name))
			}
		}
	}
	return fmt.Sprintf("claim %s: each request fits alone, but not all of them together with the constraints on %s", c.Entry, strings.Join(names, ", "))
}

func (c tooMany) String() string {
	var parts []string
	for _, request := range c.Claim.Claim.Spec.Devices.Requests {
		for _, a := range requests.Alternatives(request) {
			part := fmt.Sprintf("%s wants %s of %s", a.Name, devices(int(a.Count)), a.Class)
			if a.Capacity != nil {
				for _, name := range sortedNames(a.Capacity.Requests) {
					amount := a.Capacity.Requests[name]
					part += fmt.Sprintf(", %s %s", spelling.Text(amount), name)
				}
			}
			parts = append(parts, part)
		}
	}
	return fmt.Sprintf("claim %s: each request fits alone, but not all of them together: %s", c.Entry, strings.Join(parts, "; "))
}

func (c claimsApart) String() string {
	var names []string
	for _, used := range c.claims {
		names = append(names, used.Entry)
	}
	return fmt.Sprintf("the claims %s fit alone, but not all of them together", strings.Join(names, ", "))
}

func (c claimsApart) Hint() string { return InitHint(c.pod) }
