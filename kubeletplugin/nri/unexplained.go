package nri

import (
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Unexplained returns the names of the containers that have a cpuset which neither a claim nor
// the driver gave them, ascending, each with its CPUs: another program places containers. A
// cpuset without CPUs that claims may get is nobody's concern. While no runtime is connected,
// these are the containers of before.
func (p *Plugin) Unexplained() (names []string) {
	grantable := p.options.Core.Grantable()
	p.mu.Lock()
	var suspects []*container
	for _, c := range p.containers {
		if c.has.cpus != "" && !c.unknown {
			suspects = append(suspects, c)
		}
	}
	p.mu.Unlock()
	for _, c := range suspects {
		if !p.explains(c) && overlaps(c.has.cpus, grantable) {
			names = append(names, c.name+" with cpus "+c.has.cpus)
		}
	}
	slices.Sort(names)
	return names
}

// explains reports whether the container's cpuset is from a claim, perhaps one that is gone,
// or from the driver.
func (p *Plugin) explains(c *container) bool {
	if p.narrowed.has(c.id) {
		return true
	}
	pinned, claimed := p.pinned(c)
	if claimed {
		return !pinned.CPUs.IsEmpty()
	}
	return slices.ContainsFunc(c.devices, func(name string) bool { return strings.HasPrefix(name, cdi.Kind+"=") })
}

func overlaps(list string, cpus cpuset.Set) bool {
	set, err := cpuset.Parse(list)
	return err == nil && set.Overlaps(cpus)
}
