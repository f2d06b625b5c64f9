package pin

import (
	"fmt"
	"path"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// systemSet reads a list below [Host.System].
func (h Host) systemSet(file string) (set cpuset.Set, known bool) {
	if h.System == nil {
		return cpuset.Set{}, false
	}
	set, err := readSet(h.System, file)
	return set, err == nil
}

// online returns the part of what a cgroup should have that is online.
func (h Host) online(want Pinning) Pinning {
	if cpus, known := h.systemSet("cpu/online"); known {
		want.CPUs = want.CPUs.Intersection(cpus)
	}
	if mems, known := h.systemSet("node/has_memory"); known {
		want.Mems = want.Mems.Intersection(mems)
	}
	return want
}

// waiting is a cgroup that lacks only CPUs and NUMA nodes that are offline, so that no write
// helps.
type waiting struct {
	decision
	cause error
}

func (w waiting) err() error { return shouldHave(w.decision, w.cause) }

// shouldHave says which claim of which cgroup lacks what.
func shouldHave(d decision, cause error) error {
	return fmt.Errorf("cgroup %s should have %s for claim %s: %w", d.Cgroup, d.want, d.names(), cause)
}

// lacksOnlyOffline reports whether a cgroup that is at fault has all that is online, and is
// configured as it should be. The kernel keeps offline CPUs in some files and not in others.
func (h Host) lacksOnlyOffline(d decision) bool {
	least, rest := h.online(d.want), d
	if least == d.want {
		return false
	}
	if least.CPUs.IsEmpty() { // then the kernel keeps no partition, and the cgroup has the CPUs of its parent
		rest.want.CPUs, rest.want.Partition = cpuset.Set{}, PartitionNone
	}
	cgroups := h.Cgroups.FS()
	for _, part := range []struct {
		file        string
		least, most cpuset.Set
	}{{cpusFile, least.CPUs, d.want.CPUs}, {exclusiveFile, least.CPUs, d.want.CPUs}, {memsFile, least.Mems, d.want.Mems}} {
		if part.least.IsEmpty() || part.file == exclusiveFile && d.want.Partition == PartitionNone {
			continue
		}
		granted, err := readSet(cgroups, path.Join(d.Cgroup, part.file+".effective"))
		if err != nil || !part.least.IsSubsetOf(granted) || !granted.IsSubsetOf(part.most) {
			return false
		}
	}
	return verifyPartition(cgroups, d.Cgroup, rest.want) == nil && checkConfigured(cgroups, rest) == nil
}
