package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/internal/durable"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// probeFile holds the boot that was probed and the answer. It is in the plugin
// directory, because another process reads it: the daemon. Making a remote partition
// needs CAP_SYS_ADMIN, and the daemon, which runs for a long time, does without that
// capability.
const probeFile = "exclusivity"

// probeProblemFile says what was wrong with partitions in a boot: its id and a line. It is
// there until a probe succeeds. The answer alone would let a new version of the driver that
// makes no partitions any more take node after node.
const probeProblemFile = "probe-problem"

// lostPartitions is the problem of a boot whose kernel made partitions before.
const lostPartitions = "an earlier probe of this boot found cpuset partitions, and the last one did not"

// A probe is tried so often, with this pause.
const (
	probeAttempts = 3
	probePause    = 200 * time.Millisecond
)

// errNoIdleCPU says that the probe could not try, which is nothing wrong.
var errNoIdleCPU = errors.New("partitions leave no CPU to probe with")

// runProbe installs the hook and probes the kernel.
func runProbe(ctx context.Context, c cli.Call, env func(string) string) error {
	o, err := parseFlags(c, env)
	if err != nil {
		return err
	}
	if o.configFile != "" {
		return cli.Usagef("--config %q: dra-numa probe takes no NodeConfig", o.configFile)
	}
	if err := o.logging.Apply(); err != nil {
		return err
	}
	if o, err = o.withConfig(ctx); err != nil {
		return err
	}
	n, err := readNode(o)
	if err != nil {
		return err
	}
	return probe(ctx, o, n)
}

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
	if err := checkHook(o.hook().Path); err != nil {
		return err
	}
	before, err := readProbe(ctx, state, n.config.BootID)
	if err != nil {
		return err
	}
	known, err := readProbeProblem(state, n.config.BootID)
	if err != nil {
		return err
	}
	answer := driver.ExclusivityNone
	supported, err := probeAgain(ctx, func() (bool, error) { return probeKernel(os.DirFS(o.machineRoot), o, n) })
	switch {
	case ledger.GrantsUnknown(err): // the daemon would not start either
		return err
	case err != nil:
		answer = before
		logger.Error(err, "Probing the kernel for cpuset partitions failed", "cgroupRoot", o.cgroupRoot, "exclusivity", answer)
	case !supported:
		logger.Info("Cpuset partitions are not supported", "cgroupRoot", o.cgroupRoot)
	default:
		answer = driver.ExclusivityKernel
	}
	if err := saveProbeProblem(state, n.config.BootID, probeProblem(before, known, supported, err)); err != nil {
		return err
	}
	return durable.Replace(state, probeFile, []byte(n.config.BootID+" "+string(answer)+"\n"), 0o644)
}

// probeAgain repeats a probe whose result is unclear: a container that starts or ends at the
// same time may disturb it.
func probeAgain(ctx context.Context, probe func() (bool, error)) (supported bool, err error) {
	for range probeAttempts {
		supported, err = probe()
		err = cli.Confined(err)
		if err == nil || errors.Is(err, errNoIdleCPU) || ledger.GrantsUnknown(err) {
			return supported, err
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(probePause):
		}
	}
	return false, err
}

// probeProblem returns what is wrong with partitions after a probe that returned supported
// and err; "" if nothing is. before and known are the answer and the problem of this boot's
// earlier probe. A kernel does not lose partitions while it runs.
func probeProblem(before driver.Exclusivity, known string, supported bool, err error) string {
	switch {
	case errors.Is(err, errNoIdleCPU):
		return known
	case err != nil:
		return message.OneLine(err.Error())
	case !supported && (before == driver.ExclusivityKernel || known == lostPartitions):
		return lostPartitions
	}
	return ""
}

func saveProbeProblem(state *os.Root, bootID, problem string) error {
	if problem == "" {
		if err := state.Remove(probeProblemFile); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	return durable.Replace(state, probeProblemFile, []byte(bootID+" "+problem+"\n"), 0o644)
}

// readProbeProblem returns what a probe of this boot found wrong, or "".
func readProbeProblem(state *os.Root, bootID string) (string, error) {
	text, err := state.ReadFile(probeProblemFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	boot, problem, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	if boot != bootID {
		return "", nil
	}
	return problem, nil
}

// checkProbe returns what the probe of this boot found wrong, if the node may use partitions.
func (o *options) checkProbe(bootID string) error {
	if asked := driver.Exclusivity(o.exclusivityMode); asked == driver.ExclusivityCooperative || asked == driver.ExclusivityNone {
		return nil
	}
	state, err := openDir(o.pluginDir(), 0o750)
	if err != nil {
		return err
	}
	defer func() { _ = state.Close() }()
	problem, err := readProbeProblem(state, bootID)
	if err == nil && problem != "" {
		err = fmt.Errorf("probe cpuset partitions: %s", problem)
	}
	return err
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
		return false, errNoIdleCPU
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
func idleCPU(n node, grants []ledger.Grant, held []driver.Held) (cpu int, ok bool) {
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
		klog.FromContext(ctx).Info("The kernel has not been probed since boot, so the driver makes no cpuset partitions: run dra-numa probe", "bootID", bootID)
	}
	return driver.ExclusivityNone, nil
}

// exclusivity returns the mode that --exclusivity asks for, and why the node has it. For
// auto, it is the first mode that the node has. Kernel is an error if the probe did not find
// cpuset partitions. While an administrator has stopped pinning, it is ExclusivityNone.
func (o *options) exclusivity(probed driver.Exclusivity) (mode driver.Exclusivity, why string, err error) {
	if o.madeUp != "" {
		return driver.ExclusivityNone, "the node only pretends to have the machine " + o.madeUp, nil
	}
	if o.pinningStopped() {
		return driver.ExclusivityNone, "an administrator has stopped pinning with the file " + o.hook().StopFile(), nil
	}
	asked := driver.Exclusivity(o.exclusivityMode)
	why = "the configuration asks for " + o.exclusivityMode
	switch asked {
	case driver.ExclusivityKernel:
		if probed != asked {
			return "", "", errors.New("--exclusivity=kernel: the probe found no support for cpuset partitions on this node; they need Linux 6.11 or newer and cgroup v2")
		}
		return asked, why, nil
	case driver.ExclusivityCooperative, driver.ExclusivityNone:
		return asked, why, nil
	}
	if probed == driver.ExclusivityKernel {
		return probed, "the kernel supports cpuset partitions", nil
	}
	const unsupported = "the probe found no support for cpuset partitions, which need Linux 6.11 or newer and cgroup v2"
	if o.hasNRISocket() {
		return driver.ExclusivityCooperative, unsupported, nil
	}
	return driver.ExclusivityNone, unsupported + ", and the container runtime offers no NRI", nil
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
