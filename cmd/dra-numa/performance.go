package main

import (
	"cmp"
	"context"
	"io/fs"
	"slices"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/cpufreq"
	"github.com/dra-driver-numa/dra-driver-numa/driver/interrupts"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/driver/tuning"
	"github.com/dra-driver-numa/dra-driver-numa/driver/uncore"
	"github.com/dra-driver-numa/dra-driver-numa/internal/kernelfs"
)

// tuningOf returns how this node makes CPUs fast and quiet; nil if it does not.
func tuningOf(o options) *tuning.Config {
	allow := cmp.Or(o.performance.Allow, deviceclasses.AllowNone)
	if allow == deviceclasses.AllowNone && o.performance.Default == nil {
		return nil
	}
	tuning := o.tunable()
	tuning.ClaimsTune, tuning.OnlyDefault = allow == deviceclasses.AllowClaim, allow == deviceclasses.AllowNone
	if o.performance.Default != nil {
		tuning.Default, tuning.DefaultReserved = o.performance.Default.PerformanceSettings, o.performance.Default.ReservedCPUs
	}
	return tuning
}

// tunable returns what can be changed of CPUs on this node.
func (o *options) tunable() *tuning.Config {
	files := kernelfs.Dir(o.machineRoot)
	write := func(name, text string) error { return kernelfs.Write(o.performanceRoot, name, text) }
	return &tuning.Config{Frequencies: cpufreq.New(files, write), Interrupts: interrupts.New(files, write), Uncore: uncore.New(files, write)}
}

// interruptPeriod bounds how long an interrupt that another program has moved stays on the
// CPUs of a claim. New interrupts are seen earlier.
const interruptPeriod = 30 * time.Second

// repairPerformance keeps the CPUs of claims as they should be. It logs which services of
// the host may undo that.
func (w *watcher) repairPerformance(ctx context.Context) error {
	all := time.Since(w.moved) >= interruptPeriod
	if all {
		w.moved = time.Now()
	}
	if all && w.core.Config().Tuning != nil {
		for _, service := range meddlers(w.cgroups) {
			if !w.meddlers[service] {
				klog.FromContext(ctx).Info("A service of this node may change frequencies or interrupts of claims' CPUs: exclude these CPUs from it, or stop it", "service", service)
			}
			w.meddlers[service] = true
		}
	}
	return w.core.RepairPerformance(all)
}

// meddlers returns the services that are running and write the files that claims change.
func meddlers(cgroups fs.FS) (running []string) {
	for _, service := range []string{nodestate.ServiceIrqbalance, "tuned", "power-profiles-daemon", "tlp", "auto-cpufreq", "cpupower", "thermald"} {
		if runs(cgroups, service) {
			running = append(running, service)
		}
	}
	return running
}

// serviceCgroup is the cgroup of a service that systemd starts. The daemon does not see the
// processes of the host, but their cgroups.
func serviceCgroup(service string) string { return "system.slice/" + service + ".service" }

// runs reports whether the cgroup of a service has processes.
func runs(cgroups fs.FS, service string) bool {
	events, err := fs.ReadFile(cgroups, serviceCgroup(service)+"/cgroup.events")
	return err == nil && slices.Contains(strings.Split(string(events), "\n"), "populated 1")
}
