package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

// probeFile holds the boot that was probed and the answer. It lies in the plugin
// directory because another process reads it: only CAP_SYS_ADMIN can make a
// remote partition, and the daemon, which runs for long, does without.
const probeFile = "exclusivity"

// probe asks the kernel for a partition of a CPU that no claim holds and keeps
// the answer. If it cannot tell, the zones promise nothing; claims are served
// all the same.
func probe(ctx context.Context, o options, config driver.Config, core *driver.Driver) error {
	answer := driver.ExclusivityNone
	supported, err := probeKernel(o.cgroupRoot, cdi.LockFile(config.HookPath), core)
	logger := klog.FromContext(ctx)
	switch {
	case err != nil:
		logger.Error(err, "Cpuset partitions cannot be probed, zones publish exclusivity none", "cgroupRoot", o.cgroupRoot)
	case !supported:
		logger.Info("Cpuset partitions are not supported, zones publish exclusivity none", "cgroupRoot", o.cgroupRoot)
	default:
		answer = driver.ExclusivityKernel
	}
	state, err := os.OpenRoot(o.pluginDir())
	if err != nil {
		return err
	}
	defer state.Close()
	return cdi.ReplaceFile(state, probeFile, []byte(config.BootID+" "+string(answer)+"\n"), 0o644)
}

func probeKernel(cgroupRoot, lockFile string, core *driver.Driver) (supported bool, err error) {
	held, err := heldCPUs(cgroupRoot)
	if err != nil {
		return false, err
	}
	if _, err := core.Recover(nil, held); err != nil { // without the API server: every claim keeps what it has
		return false, err
	}
	cpu, ok := core.IdleCPU()
	if !ok {
		return false, errors.New("claims hold every CPU but the reserved one")
	}
	cgroups, err := os.OpenRoot(cgroupRoot)
	if err != nil {
		return false, err
	}
	defer cgroups.Close()
	unlock, err := pin.Lock(lockFile)
	if err != nil {
		return false, err
	}
	defer unlock()
	return pin.Probe(cgroups, cpu)
}

// readProbe returns what this boot's probe found; without one, the zones promise
// nothing.
func readProbe(ctx context.Context, o options, bootID string) (driver.Exclusivity, error) {
	state, err := os.OpenRoot(o.pluginDir())
	if err != nil {
		return "", err
	}
	defer state.Close()
	text, err := state.ReadFile(probeFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	probed, answer, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	if probed == bootID && answer == string(driver.ExclusivityKernel) {
		return driver.ExclusivityKernel, nil
	}
	if probed != bootID {
		klog.FromContext(ctx).Info("No probe of this boot, zones publish exclusivity none; run dra-numa --probe", "bootID", bootID)
	}
	return driver.ExclusivityNone, nil
}
