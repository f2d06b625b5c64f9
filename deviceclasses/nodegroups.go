package deviceclasses

import (
	"fmt"
	"regexp"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
)

// MaxGroups is how many groups a node may have: each costs the scheduler time for every claim.
const MaxGroups = 4

var groupName = regexp.MustCompile(`^[a-z][a-zA-Z0-9]*$`)

func validateGroups(groups []string) error {
	const longest = resourceapi.DeviceMaxIDLength - len(CapacityGroupPrefix)
	if len(groups) > MaxGroups {
		return fmt.Errorf("groups: %d names, at most %d are allowed", len(groups), MaxGroups)
	}
	for i, name := range groups {
		switch {
		case !groupName.MatchString(name) || len(name) > longest:
			return fmt.Errorf("groups[%d]: %q, want a small letter and then letters and digits, at most %d bytes", i, name, longest)
		case slices.Contains(groups[:i], name):
			return fmt.Errorf("groups[%d]: %q is in the list twice", i, name)
		}
	}
	return nil
}
