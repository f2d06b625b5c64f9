package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/internal/kernelfs"
	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

const (
	// partitionPeriod bounds how long it takes to notice that a recorded cgroup or a
	// partition has changed.
	partitionPeriod = time.Second
	// hostPeriod is the same for an invalid partition that is not of a claim: see
	// [pin.Lookout]. It is also how often all cgroups are read, in case an event was lost.
	hostPeriod = 30 * time.Second
	// quietPeriod is how often the plugin is told that nothing has changed. The kubelet
	// hears of the health of devices only if the plugin does.
	quietPeriod = 5 * time.Second
	// machinePeriod leaves 1 of the 5 seconds in which a machine that has changed must
	// be published.
	machinePeriod = 4 * time.Second
)

// watcher looks for changes that nothing reports to the daemon.
type watcher struct {
	core    *driver.Driver
	plugin  *kubeletplugin.Plugin
	machine fs.FS // holds sys and proc
	lookout *pin.Lookout
	stopped func() bool // whether pinning is
	before  bool        // whether it was at the start
	fatal   func(error)

	withPCI   bool                // some PCI functions are published
	signature string              // of the machine as the core knows it
	facts     kernelfs.FirstLines // of the machine, without PCI functions
	known     bool                // the signature was read after facts last changed
	sight     pin.Sight           // of the last look at partitions
	looked    time.Time           // when that was
	told      time.Time           // when the plugin was last told
	findings  []string            // of it
	problems  map[string]string   // by what is looked at: the last error
	cacheNews []string            // what the last look at caches found
	moved     time.Time           // when all interrupts were last looked at
	filed     time.Time           // when files were last looked at
	cgroups   fs.FS               // of the host
	meddlers  map[string]bool     // services that were logged
}

func newWatcher(ctx context.Context, o options, n node, core *driver.Driver, plugin *kubeletplugin.Plugin, fatal func(error)) *watcher {
	lookout, err := pin.NewLookout(o.cgroupRoot, o.hook().RecordsDir(), o.pluginDir())
	if err != nil {
		klog.FromContext(ctx).Error(err, "Looking at all cgroups each second")
	}
	return &watcher{
		core: core, plugin: plugin, withPCI: !n.config.Attached.IsEmpty(), signature: n.signature,
		machine:  o.watched(),
		lookout:  lookout,
		stopped:  o.pinningStopped,
		before:   o.pinningStopped(),
		fatal:    fatal,
		problems: make(map[string]string),
		cgroups:  kernelfs.Dir(o.cgroupRoot),
		meddlers: make(map[string]bool),
	}
}

// watched returns the files of the machine. A real one is read with few system calls.
func (o *options) watched() fs.FS {
	if o.madeUp != "" {
		return o.machine()
	}
	return kernelfs.Dir(o.machineRoot)
}

// run looks at the partitions and at the machine until ctx ends. All looks share one beat,
// because what they cost is mostly to be woken.
func (w *watcher) run(ctx context.Context) {
	beat, err := kernelfs.NewPulse(partitionPeriod)
	if err != nil {
		w.fatal(fmt.Errorf("look at the node: %w", err))
		return
	}
	defer context.AfterFunc(ctx, func() { _ = beat.Close() })()
	defer func() { _ = beat.Close() }() // with an error if it is closed already
	defer w.lookout.Close()
	defer w.facts.Close()
	looked := time.Now()
	for beat.Wait() {
		w.repairCaches(ctx)
		if time.Since(looked) >= machinePeriod-partitionPeriod/2 {
			looked = time.Now()
			w.report(ctx, "machine", w.lookAtMachine(ctx))
			w.report(ctx, "functions", w.lookAtFunctions(ctx))
			w.report(ctx, "performance", w.repairPerformance(ctx))
			w.report(ctx, "files", w.repairFiles(ctx))
		}
		w.report(ctx, "partitions", w.lookAtPartitions(ctx)) // last: it tells the plugin
	}
}

// lookAtOthers looks at what administrators and the keeper leave in the driver's directory.
func (w *watcher) lookAtOthers() {
	if w.stopped() != w.before {
		w.fatal(errors.New("pinning was stopped or is allowed again on this node: starting again, because zones and claims say so"))
	}
	w.plugin.LookAtGuards()
}

func (w *watcher) report(ctx context.Context, what string, err error) {
	w.plugin.Looked()
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
	if changed := w.facts.Changed(w.machine); !changed && !w.withPCI && w.known {
		return nil
	}
	w.known = false
	files, err := numa.SignatureFiles(w.machine)
	if err != nil {
		return err
	}
	w.facts.Follow(w.machine, files)
	now, err := numa.Signature(w.machine, w.withPCI)
	if err != nil {
		return err
	}
	if now == w.signature {
		w.known = true
		return nil
	}
	machine, err := numa.Read(w.machine)
	if err != nil {
		return err
	}
	w.signature, w.known = now, true
	w.core.SetMachine(machine)
	w.told = time.Time{} // the plugin publishes it with the next look
	w.plugin.RefreshSharedPool(ctx)
	klog.FromContext(ctx).Info("Machine has changed", "online", machine.Online.String(), "zones", len(machine.Zones))
	return nil
}

// lookAtFunctions reads the device nodes of functions on record again: the signature of the
// machine has no numbers of devices.
func (w *watcher) lookAtFunctions(ctx context.Context) error {
	news, err := w.core.RereadFunctions()
	for _, changed := range news {
		klog.FromContext(ctx).Info("PCI functions of claims have changed", "finding", changed)
	}
	if len(news) > 0 {
		w.told = time.Time{} // the plugin reports it with the next look
	}
	return err
}

// lookAtPartitions tells the core which CPUs partitions hold, and the plugin what the
// cgroups of claims have. It does so only if something may have changed, or if something is
// wrong: what lasts is reported later.
func (w *watcher) lookAtPartitions(ctx context.Context) error {
	if w.lookout.Changed() || time.Since(w.looked) >= hostPeriod {
		w.lookAtOthers()
		now := time.Now()
		sight, err := w.lookout.Look(now)
		if err != nil {
			return err
		}
		w.sight, w.looked, w.told = sight, now, time.Time{}
	}
	if w.quiet() && time.Since(w.told) < quietPeriod {
		return w.sight.Unread
	}
	w.told = time.Now()
	err := w.tellCore(ctx) // on a full disk it cannot record a release: the plugin is told all the same
	w.plugin.ObserveRefusals(w.sight.Refusals)
	w.plugin.ObserveIgnored(w.sight.Ignored)
	if w.core.SetDowngraded(downgraded(w.sight.Live)) {
		w.plugin.RefreshSharedPool(ctx)
	}
	w.plugin.Observe(w.sight.Live)
	return errors.Join(err, w.sight.Unread)
}

// tellCore tells the core which CPUs partitions hold. An error changes nothing of what was found
// before.
func (w *watcher) tellCore(ctx context.Context) error {
	report, err := w.core.Observe(heldCPUs(w.sight.Holdings))
	if err != nil {
		return err
	}
	var findings []string
	released := false
	for _, finding := range report {
		findings = append(findings, finding.String())
		released = released || finding.Outcome == driver.Released
	}
	for _, finding := range kubeletplugin.News(&w.findings, findings) {
		klog.FromContext(ctx).Info("Observed", "finding", finding)
	}
	if released {
		w.plugin.RefreshSharedPool(ctx)
	}
	return nil
}

// quiet reports whether the last look found nothing that would have to be reported if it
// lasts.
func (w *watcher) quiet() bool {
	faulty := func(live pin.Live) bool { return live.Fault != "" }
	return len(w.findings) == 0 && !slices.ContainsFunc(w.sight.Live, faulty)
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

// readHeld returns the CPUs that the partitions of the host hold.
func readHeld(cgroups fs.FS) ([]driver.Held, error) {
	holdings, err := pin.Holdings(cgroups)
	return heldCPUs(holdings), err
}

// heldOf is the same, if a partition may hold some of these CPUs.
func (o *options) heldOf(cpus cpuset.Set) ([]driver.Held, error) {
	holdings, err := pin.HoldingsOf(kernelfs.Dir(o.cgroupRoot), cpus)
	return heldCPUs(holdings), err
}

func heldCPUs(holdings []pin.Holding) []driver.Held {
	held := make([]driver.Held, 0, len(holdings))
	for _, holding := range holdings {
		held = append(held, driver.Held{Cgroup: holding.Cgroup, CPUs: holding.CPUs, Invalid: invalid(holding.State)})
	}
	return held
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
