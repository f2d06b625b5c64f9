package cdi

import (
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Variables that list CPUs of a claim.
const (
	cpusVariable     = "DRA_NUMA_CPUS"
	idleCPUsVariable = "DRA_NUMA_IDLE_CPUS"
)

// content collects what several shares give a container. It becomes the container's
// environment variables.
type content struct {
	zones                            bool // at least one share is a Zone
	cpus, idleCPUs, mems, sharedCPUs cpuset.Set
	mixed                            bool
	pci, interfaces, caches          []string
}

func (c *content) environment(suffix string) (env []string) {
	add := func(name, value string) { env = append(env, name+suffix+"="+value) }
	if c.zones {
		add(cpusVariable, c.cpus.Difference(c.idleCPUs).String())
		add("DRA_NUMA_MEMS", c.mems.String())
	}
	if !c.idleCPUs.IsEmpty() {
		add(idleCPUsVariable, c.idleCPUs.String())
	}
	if c.mixed {
		add("DRA_NUMA_SHARED_CPUS", c.sharedCPUs.String())
	}
	if len(c.pci) > 0 {
		add("DRA_NUMA_PCI", strings.Join(c.pci, ","))
	}
	if len(c.interfaces) > 0 {
		add("DRA_NUMA_INTERFACES", strings.Join(c.interfaces, ","))
	}
	if len(c.caches) > 0 {
		add("DRA_NUMA_CACHES", strings.Join(c.caches, ","))
	}
	return env
}
