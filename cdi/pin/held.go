package pin

import (
	"errors"
	"io/fs"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Holding is the CPUs that one partition keeps from all other tasks of the host.
type Holding struct {
	Cgroup string // its path below the mount
	CPUs   cpuset.Set
	State  string // as cpuset.cpus.partition reads: root, isolated, or one of them with " invalid (reason)"
}

// Holdings lists the partitions of the host that have CPUs, no matter which program made
// them, but not those inside other partitions. The list is empty on a host without cgroup
// v2 or without partitions. Cgroups may come and go while Holdings reads.
func Holdings(cgroups fs.FS) ([]Holding, error) {
	t, err := readPartitions(cgroups)
	return t.holdings(), err
}

// HoldingsOf returns Holdings if one may have some of these CPUs, and else nothing. Then it reads
// one file.
func HoldingsOf(cgroups fs.FS, cpus cpuset.Set) ([]Holding, error) {
	left, err := readSet(cgroups, rootCPUsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // no cpuset controller of cgroup v2, so no partitions
	}
	if err != nil || cpus.IsSubsetOf(left) {
		return nil, err
	}
	return Holdings(cgroups)
}

func (t tree) holdings() (list []Holding) {
	for _, g := range t {
		if cpus := g.holds(); !cpus.IsEmpty() {
			list = append(list, Holding{Cgroup: g.path, CPUs: cpus, State: g.state})
		}
	}
	return list
}
