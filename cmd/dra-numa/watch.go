package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

const (
	// partitionPeriod bounds how long it takes to notice that a partition is invalid,
	// or that CPUs are still blocked after their cgroup is gone.
	partitionPeriod = time.Second
	// machinePeriod leaves 3 of the 5 seconds in which a machine that has changed must
	// be published.
	machinePeriod = 2 * time.Second
)

// watcher looks for changes that nothing reports to the daemon.
type watcher struct {
	core    *driver.Driver
	plugin  *kubeletplugin.Plugin
	machine fs.FS // holds sys and proc
	cgroups fs.FS
	records fs.FS

	withPCI   bool              // some PCI functions are published
	signature string            // of the machine as the core knows it
	findings  []string          // of the last look at partitions
	problems  map[string]string // by what is looked at: the last error
}

func newWatcher(o options, n node, core *driver.Driver, plugin *kubeletplugin.Plugin) *watcher {
	return &watcher{
		core: core, plugin: plugin, withPCI: !n.config.Attached.IsEmpty(), signature: n.signature,
		machine:  os.DirFS(o.machineRoot),
		cgroups:  os.DirFS(o.cgroupRoot),
		records:  os.DirFS(cdi.RecordsDir(o.hookPath())),
		problems: make(map[string]string),
	}
}

// run looks at the partitions and at the machine until ctx ends.
func (w *watcher) run(ctx context.Context) {
	partitions, machine := time.NewTicker(partitionPeriod), time.NewTicker(machinePeriod)
	defer partitions.Stop()
	defer machine.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-partitions.C:
			w.report(ctx, "partitions", w.lookAtPartitions(ctx))
		case <-machine.C:
			w.report(ctx, "machine", w.lookAtMachine(ctx))
		}
	}
}

func (w *watcher) report(ctx context.Context, what string, err error) {
	if w.isNews(what, err) {
		klog.FromContext(ctx).Error(err, "Looking at the node failed, keeping what was known before", "part", what)
	}
}

// isNews reports whether an error is new: it is the first one, or differs from what the
// last look found.
func (w *watcher) isNews(what string, err error) bool {
	before := w.problems[what]
	w.problems[what] = ""
	if err != nil {
		w.problems[what] = err.Error()
	}
	return err != nil && w.problems[what] != before
}

// lookAtMachine reads the machine if it has changed. If it changes again meanwhile, the
// next look reads it again.
func (w *watcher) lookAtMachine(ctx context.Context) error {
	now, err := numa.Signature(w.machine, w.withPCI)
	if err != nil || now == w.signature {
		return err
	}
	machine, err := numa.Read(w.machine)
	if err != nil {
		return err
	}
	w.signature = now
	w.core.SetMachine(machine)
	w.plugin.RefreshPool(ctx)
	klog.FromContext(ctx).Info("Machine has changed", "online", machine.Online.String(), "zones", len(machine.Zones))
	return nil
}

// lookAtPartitions tells the core which CPUs partitions hold, and the plugin what the
// cgroups of claims have.
func (w *watcher) lookAtPartitions(ctx context.Context) error {
	held, err := heldCPUs(w.cgroups)
	if err != nil {
		return err
	}
	report, err := w.core.Observe(held)
	if err != nil {
		return err
	}
	var findings []string
	released := false
	for _, finding := range report {
		findings = append(findings, finding.String())
		released = released || finding.Outcome == driver.Released
		if !slices.Contains(w.findings, finding.String()) {
			klog.FromContext(ctx).Info("Observed", "finding", finding.String())
		}
	}
	w.findings = findings
	if released {
		w.plugin.RefreshPool(ctx)
	}
	refusals, unread := pin.Refusals(w.records, time.Now())
	w.plugin.ObserveRefusals(refusals)
	live, err := pin.Inspect(w.cgroups, w.records)
	if w.core.SetDowngraded(downgraded(live)) {
		w.plugin.RefreshPool(ctx)
	}
	w.plugin.Observe(live) // live lacks the records that the error names
	return errors.Join(err, unread)
}

// downgraded returns the CPUs of cgroups that have no partition because another pod uses
// the same claim.
func downgraded(live []pin.Live) (cpus cpuset.Set) {
	for i := range live {
		if live[i].Downgraded {
			cpus = cpus.Union(live[i].Want.CPUs)
		}
	}
	return cpus
}

// heldCPUs returns the CPUs that the partitions of the host hold.
func heldCPUs(cgroups fs.FS) ([]driver.Held, error) {
	holdings, err := pin.Holdings(cgroups)
	if err != nil {
		return nil, err
	}
	held := make([]driver.Held, 0, len(holdings))
	for _, holding := range holdings {
		held = append(held, driver.Held{Cgroup: holding.Cgroup, CPUs: holding.CPUs, Invalid: invalid(holding.State)})
	}
	return held, nil
}

// invalid returns the kernel's reason in "root invalid (reason)". It returns "" if the
// partition is as it should be.
func invalid(state string) string {
	_, reason, found := strings.Cut(state, " invalid")
	if !found {
		return ""
	}
	return cmp.Or(strings.Trim(reason, " ()"), "invalid")
}
