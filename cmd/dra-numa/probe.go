package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/internal/durable"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// probeFile holds the boot that was probed and the answer. It is in the plugin
// directory, because another process reads it: the daemon. Making a remote partition
// needs CAP_SYS_ADMIN, and the daemon, which runs for a long time, does without that
// capability.
const probeFile = "exclusivity"

// probe asks the kernel for a partition of a CPU that no claim holds, and saves the
// answer. If the result is unclear, the answer of this boot stays. Without one, it
// saves that the kernel cannot be relied on. It also installs the hook. A daemon may run
// at the same time, so probe writes none of the daemon's files.
func probe(ctx context.Context, o options, n node) error {
	logger := klog.FromContext(ctx)
	state, err := openDir(o.pluginDir(), 0o750)
	if err != nil {
		return err
	}
	defer state.Close()
	if err := installHook(o.hookSource, o.hook().Path); err != nil {
		return fmt.Errorf("install pin hook: %w", err)
	}
	answer := driver.ExclusivityNone
	supported, err := probeKernel(os.DirFS(o.machineRoot), o, n)
	switch {
	case errors.Is(err, driver.ErrDamaged): // the daemon would not start either
		return err
	case err != nil:
		cause := err
		if answer, err = readProbe(ctx, state, n.config.BootID); err != nil {
			return err
		}
		logger.Error(cause, "Probing the kernel for cpuset partitions failed", "cgroupRoot", o.cgroupRoot, "exclusivity", answer)
	case !supported:
		logger.Info("Cpuset partitions are not supported", "cgroupRoot", o.cgroupRoot)
	default:
		answer = driver.ExclusivityKernel
	}
	return durable.Replace(state, probeFile, []byte(n.config.BootID+" "+string(answer)+"\n"), 0o644)
}

// probeKernel asks the kernel only if it is new enough: Linux 6.7 to 6.10 have
// cpuset.cpus.exclusive and may pass the probe, but their remote partitions have bugs
// that 6.11 fixed. It holds the host's lock from its first look to the end, so that no
// hook takes the CPU in between.
func probeKernel(root fs.FS, o options, n node) (supported bool, err error) {
	if supported, err := isNewEnough(root); err != nil || !supported {
		return false, err
	}
	unlock, err := pin.Lock(n.config.Hook.LockFile())
	if err != nil {
		return false, err
	}
	defer unlock()
	held, err := readHeld(os.DirFS(o.cgroupRoot))
	if err != nil {
		return false, err
	}
	core, err := openDriver(o, n)
	if err != nil {
		return false, err
	}
	cpu, ok := idleCPU(n, core.Grants(), held)
	if !ok {
		return false, errors.New("partitions leave no CPU to probe with")
	}
	cgroups, err := os.OpenRoot(o.cgroupRoot)
	if err != nil {
		return false, err
	}
	defer cgroups.Close()
	return pin.Probe(cgroups, cpu)
}

// isNewEnough reports whether the kernel is Linux 6.11 or newer.
func isNewEnough(root fs.FS) (bool, error) {
	text, err := fs.ReadFile(root, "proc/sys/kernel/osrelease")
	if err != nil {
		return false, err
	}
	var major, minor int
	if _, err := fmt.Sscanf(string(text), "%d.%d", &major, &minor); err != nil {
		return false, fmt.Errorf("read proc/sys/kernel/osrelease: %q, want a release such as 6.12.1: %w", strings.TrimSpace(string(text)), err)
	}
	return major > 6 || major == 6 && minor >= 11, nil
}

// idleCPU returns a CPU that no partition holds, and one that no claim holds if there is
// one. Reserved CPUs come after free CPUs. After a reboot no partition exists, so the
// CPUs of any claim will do. The first reserved CPU is never returned, nor the last CPU
// outside of all partitions: the kernel needs one. Nor are CPUs of isolcpus=, which the
// kernel refuses for the partition that the probe makes.
func idleCPU(n node, grants []driver.Grant, held []driver.Held) (cpu int, ok bool) {
	outside := n.machine.Online
	for _, partition := range held {
		outside = outside.Difference(partition.CPUs)
	}
	if outside.Size() < 2 {
		return 0, false
	}
	usable := outside
	if n.machine.Isolated != nil {
		usable = usable.Difference(*n.machine.Isolated)
	}
	if housekeeping, ok := n.config.Reserved.First(); ok {
		usable.Remove(housekeeping)
	}
	free := usable
	for _, grant := range grants {
		for _, share := range grant.Shares {
			free = free.Difference(share.CPUs())
		}
	}
	for _, candidates := range []cpuset.Set{free.Difference(n.config.Reserved), free, usable} {
		if cpu, ok := candidates.First(); ok {
			return cpu, true
		}
	}
	return 0, false
}

// readProbe returns the answer of this boot's probe. Without one, it returns
// ExclusivityNone.
func readProbe(ctx context.Context, state *os.Root, bootID string) (driver.Exclusivity, error) {
	text, err := state.ReadFile(probeFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	probed, answer, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	if probed == bootID && answer == string(driver.ExclusivityKernel) {
		return driver.ExclusivityKernel, nil
	}
	if probed != bootID {
		klog.FromContext(ctx).Info("The kernel has not been probed since boot, so the driver makes no cpuset partitions: run dra-numa --probe", "bootID", bootID)
	}
	return driver.ExclusivityNone, nil
}

// exclusivity returns the mode that --exclusivity asks for. For auto, it is the first
// mode that the node has. Kernel is an error if the probe did not find cpuset partitions.
// While an administrator has stopped pinning, it is ExclusivityNone.
func (o *options) exclusivity(probed driver.Exclusivity) (driver.Exclusivity, error) {
	if o.pinningStopped() {
		return driver.ExclusivityNone, nil
	}
	switch asked := driver.Exclusivity(o.exclusivityMode); asked {
	case driver.ExclusivityKernel:
		if probed != asked {
			return "", errors.New("--exclusivity=kernel: the probe found no support for cpuset partitions on this node; they need Linux 6.11 or newer and cgroup v2")
		}
		return asked, nil
	case driver.ExclusivityCooperative, driver.ExclusivityNone:
		return asked, nil
	}
	if probed == driver.ExclusivityKernel {
		return probed, nil
	}
	if o.hasNRISocket() {
		return driver.ExclusivityCooperative, nil
	}
	return driver.ExclusivityNone, nil
}

// hasNRISocket reports whether the container runtime offers NRI.
func (o *options) hasNRISocket() bool {
	info, err := os.Stat(o.nriSocket)
	return err == nil && info.Mode().Type() == fs.ModeSocket
}

// pinningStopped reports whether an administrator has stopped the hook.
func (o *options) pinningStopped() bool {
	_, err := os.Stat(o.hook().StopFile())
	return err == nil
}
