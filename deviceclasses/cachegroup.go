package deviceclasses

import (
	"fmt"
	"regexp"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// MaxCacheGroups is how many groups of CPUs a node can have: each takes a class of the
// kernel, and many processors have 16 or fewer.
const MaxCacheGroups = 8

// CacheGroup is some of the reserved CPUs, with ways to themselves.
type CacheGroup struct {
	// Name is the part after dra-numa. of the name of the group in resctrl. It has at most
	// 32 small letters, digits and dashes, begins with a letter, and no other group has it.
	//
	//	name: dpdk
	Name string `json:"name"`
	// CPUs is the list of CPUs whose tasks use the ways. They must be reserved CPUs of the
	// node, which no claim gets, and neither in another group nor in infra. Tasks that
	// administrators write to the file tasks of the group use the ways on any CPU.
	//
	//	cpus: 2-3
	CPUs string `json:"cpus"`

	CacheWays `json:",inline"`
}

// groupWord is what a group of CPUs can be named. It is not the number of another group.
var groupWord = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)

// validateGroup checks a group, also against infra and the groups before it.
func (c CachePools) validateGroup(i, most int) error {
	g := &c.Groups[i]
	if !groupWord.MatchString(g.Name) {
		return fmt.Errorf("name: %.80q, want at most 32 small letters, digits and dashes, a letter first, such as dpdk", g.Name)
	}
	cpus, err := cpuset.Parse(g.CPUs)
	switch {
	case err != nil:
		return fmt.Errorf("cpus: %w", err)
	case cpus.IsEmpty():
		return fmt.Errorf("cpus: %.80q has no CPU, want a list such as 2-3", g.CPUs)
	}
	taken := func(field, list string) error {
		others, _ := cpuset.Parse(list) // an error is that of the other field
		if both := cpus.Intersection(others); !both.IsEmpty() {
			return fmt.Errorf("cpus: %s are CPUs of %s, too", both, field)
		}
		return nil
	}
	for before, other := range c.Groups[:i] {
		if other.Name == g.Name {
			return fmt.Errorf("name: groups[%d] has %q, too", before, g.Name)
		}
		if err := taken(fmt.Sprintf("groups[%d]", before), other.CPUs); err != nil {
			return err
		}
	}
	if c.Infra != nil {
		if err := taken("infra", c.Infra.CPUs); err != nil {
			return err
		}
	}
	return g.validate(most)
}
