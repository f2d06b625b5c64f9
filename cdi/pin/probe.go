package pin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

const (
	probeDir  = "dra-numa-probe"
	probeLeaf = probeDir + "/leaf"
)

// Probe makes a remote partition of one CPU, two levels below the mount, and removes it
// again. No other partition may hold the CPU. Probe also removes what a killed probe
// left behind. It returns true if the CPU left the root cgroup, false if this kernel or
// cgroup hierarchy refuses the partition, and an error if it could not tell. If it returns
// true, it leaves an empty cgroup, in which the keeper can get CPUs back that the kernel
// has lost. Only one process of a host may call Probe at a time, with the host's [Lock]: it
// clears the CPU where dead partitions left it. No task runs in the scratch cgroups.
func Probe(cgroups *os.Root, cpu int) (supported bool, err error) {
	if _, err := cgroups.Stat("cgroup.controllers"); errors.Is(err, fs.ErrNotExist) {
		return false, nil // cgroup v1, whose folder is read-only
	}
	if err := removeProbe(cgroups); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, removeProbe(cgroups)) }()
	if err := makeProbe(cgroups); err != nil {
		return false, err
	}
	want := Pinning{CPUs: cpuset.New(cpu), Partition: PartitionRoot}
	err = errors.Join(Host{Cgroups: cgroups}.enforce([]decision{{record: record{Cgroup: probeLeaf}, want: want}}, nil)...)
	if errors.Is(err, ErrNotSupported) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("probe cpuset partitions with cpu %d: %w", cpu, err)
	}
	others, err := readSet(cgroups.FS(), cpusFile+".effective")
	if err != nil || others.Contains(cpu) {
		return false, err
	}
	return true, makeReclaim(cgroups)
}

func makeProbe(cgroups *os.Root) error {
	if err := cgroups.Mkdir(probeDir, 0o755); err != nil {
		return err
	}
	err := writeKernelFile(cgroups, probeDir+"/cgroup.subtree_control", "+cpuset")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // ENOENT: no cpuset controller, as checkController says
	}
	return cgroups.Mkdir(probeLeaf, 0o755)
}

func removeProbe(cgroups *os.Root) error {
	for _, dir := range []string{probeLeaf, probeDir} {
		if err := cgroups.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
