package pin

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Holding is the CPUs that one partition keeps from all other tasks of the host.
type Holding struct {
	Cgroup string // its path below the mount
	CPUs   cpuset.Set
	State  string // as cpuset.cpus.partition reads: root, isolated, or one of them with " invalid (reason)"; or unreadable
}

// Holdings lists the partitions of the host that have CPUs, no matter which program made
// them, but not those inside other partitions. The list is empty on a host without cgroup
// v2 or without partitions. Cgroups may come and go while Holdings reads. One that cannot be
// read counts as a partition of all CPUs that it may have, as far as these are known.
func Holdings(cgroups fs.FS) ([]Holding, error) {
	list, _, err := ReadHoldings(cgroups)
	return list, err
}

// ReadHoldings returns Holdings, and which cgroups cannot be read.
func ReadHoldings(cgroups fs.FS) (list []Holding, unread, err error) {
	t, err := readPartitions(cgroups)
	return t.holdings(), t.unread(), err
}

// HoldingsOf returns Holdings if one may have some of these CPUs, and else nothing. Then it reads
// one file. It returns an error if a cgroup of which nothing is known may have them.
func HoldingsOf(cgroups fs.FS, cpus cpuset.Set) ([]Holding, error) {
	left, err := readSet(cgroups, rootCPUsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // no cpuset controller of cgroup v2, so no partitions
	}
	if err != nil || cpus.IsSubsetOf(left) {
		return nil, err
	}
	t, err := readPartitions(cgroups)
	for _, g := range t {
		if g.fault != nil && path.Dir(g.path) == "." {
			return nil, fmt.Errorf("cgroup %s may hold some of cpus %s: %w", g.path, cpus, g.fault)
		}
	}
	return t.holdings(), err
}

func (t tree) holdings() (list []Holding) {
	for _, g := range t {
		cpus := g.holds()
		if g.most != nil { // a tenant may write any CPUs into its own files
			cpus = cpus.Intersection(*g.most)
		}
		if !cpus.IsEmpty() {
			// A tenant may give a cgroup any name, and the API server refuses what is not UTF-8.
			list = append(list, Holding{Cgroup: strings.ToValidUTF8(g.path, "?"), CPUs: cpus, State: g.state})
		}
	}
	return list
}
