package pin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// reclaimDir is the scratch cgroup of reclaim. No task runs in it.
const reclaimDir = "dra-numa-reclaim"

// lost returns the CPUs of cpus that neither the root cgroup nor a partition has. They
// are offline, or the kernel has lost them: if a program clears the cpuset.cpus.exclusive
// of a partition or of a cgroup above it, and then changes the partition, Linux 6.12 and
// 7.2 forget to give the CPUs back. The kernel then refuses every partition with such a
// CPU below a member, does not grant it without a partition, and no task runs there.
func lost(cgroups fs.FS, cpus cpuset.Set) (cpuset.Set, error) {
	root, err := readSet(cgroups, cpusFile+".effective")
	if err != nil || cpus.IsSubsetOf(root) {
		return cpuset.Set{}, err
	}
	var t tree
	if err := t.walk(cgroups, ""); err != nil {
		return cpuset.Set{}, err
	}
	cpus = cpus.Difference(root)
	for _, g := range t {
		if g.isValid() {
			cpus = cpus.Difference(g.holds())
		}
	}
	return cpus, nil
}

// reclaim makes the kernel give the root cgroup back the CPUs that the target should have
// and that the kernel has lost. A partition of them directly below the root cgroup, which
// ends at once, does that. The kernel refuses CPUs of isolcpus= unless it is isolated. The
// cgroups on the way to the target must not have the CPUs then, so reclaim first releases
// what the target holds. It returns false if there was nothing to do.
func (h Host) reclaim(target string, want cpuset.Set) (reclaimed bool, err error) {
	if reclaimed, err = h.resetReclaim(); err != nil {
		return false, err
	}
	cpus, err := lost(h.Cgroups.FS(), want)
	cpus = h.online(Pinning{CPUs: cpus}).CPUs
	if err != nil || cpus.IsEmpty() {
		return reclaimed, err
	}
	if err := makeReclaim(h.Cgroups); err != nil {
		return false, err
	}
	if err := h.release(record{Cgroup: target, Claims: []Claim{{Pinning: Pinning{CPUs: want}}}}); err != nil {
		return false, err
	}
	boot, _ := h.systemSet("cpu/isolated")
	if err = h.reclaimAs(PartitionRoot, cpus.Difference(boot)); err == nil {
		err = h.reclaimAs(PartitionIsolated, cpus.Intersection(boot))
	}
	if err != nil {
		err = fmt.Errorf("get cpus %s back, which the kernel has lost: %w", cpus, err)
	}
	return true, err
}

// reclaimAs makes the partition and ends it. CPUs of isolcpus= are not in the mask of the
// kernel's workqueues, so an isolated partition of them changes nothing there.
func (h Host) reclaimAs(kind Partition, cpus cpuset.Set) (err error) {
	if cpus.IsEmpty() {
		return nil
	}
	if kind == PartitionIsolated {
		if err := h.awaitReleaser(); err != nil {
			return err
		}
	}
	// Linux 7.2 accepts the partition at the write of cpuset.cpus, not before.
	for _, w := range []Write{{exclusiveFile, cpus.String()}, {partitionFile, kind.String()}, {cpusFile, cpus.String()}} {
		if err = h.write(Write{path.Join(reclaimDir, w.File), w.Value}); err != nil {
			break
		}
	}
	_, reset := h.resetReclaim()
	return errors.Join(err, reset)
}

// makeReclaim makes the scratch cgroup, unless it exists. The keeper may not make a cgroup
// directly below the mount, so [Probe] makes it, and it stays.
func makeReclaim(cgroups *os.Root) error {
	if err := cgroups.Mkdir(reclaimDir, 0o755); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// resetReclaim takes everything from the scratch cgroup. It returns false if the cgroup
// had nothing. A killed process may have left it with CPUs.
func (h Host) resetReclaim() (changed bool, err error) {
	g, err := readGroup(h.Cgroups.FS(), reclaimDir, true)
	if isGone(err) {
		return false, nil
	}
	if err == nil && g.state == PartitionIsolated.String() {
		err = h.awaitReleaser()
	}
	if err != nil {
		return false, err
	}
	for _, w := range []struct {
		file, value string
		needed      bool
	}{
		{partitionFile, member, g.state != member},
		{exclusiveFile, "", !g.exclusive.IsEmpty()},
		{cpusFile, "", !g.cpus.IsEmpty()},
	} {
		if !w.needed {
			continue
		}
		changed = true
		if err := h.write(Write{path.Join(reclaimDir, w.file), w.value}); err != nil {
			return false, err
		}
	}
	return changed, nil
}
