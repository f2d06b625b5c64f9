package main

import (
	"context"
	"errors"
	"io"
	"sync"

	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin"
	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin/nri"
)

// run runs the daemon until ctx ends, or one of its commands.
func run(ctx context.Context, args []string, env func(string) string, stdout io.Writer) error {
	return program(env).Run(ctx, args, stdout)
}

// runDaemon runs the daemon until ctx ends. The order matters. Before the kubelet can ask for
// more, any other daemon of this node must have ended, and everything that was granted must
// be known and visible to the runtime.
func runDaemon(ctx context.Context, c cli.Call, env func(string) string) error {
	o, err := parseFlags(c, env)
	if err != nil {
		return err
	}
	if err := o.logging.Apply(); err != nil {
		return err
	}
	if err := refuseHugePages(); err != nil {
		klog.FromContext(ctx).Error(err, "Transparent hugepages stay on, so the daemon may use more memory than it needs")
	}
	if o, err = o.withConfig(ctx); err != nil {
		return err
	}
	if _, err := readNode(o); err != nil { // flags that do not suit the machine fail here, before another daemon has to end
		return err
	}
	shown := o.show()
	fatal := make(chan error, 1)
	stopServing, err := serve(o.listen, shown.readiness.Handler(), nil, firstOf(fatal))
	if err != nil {
		return err
	}
	defer stopServing()
	stopMonitoring, err := o.monitoring.monitor(shown.metrics, firstOf(fatal))
	if err != nil {
		return err
	}
	defer stopMonitoring()
	stop, err := serveNode(ctx, o, shown, firstOf(fatal))
	if err != nil {
		return ignoreEnd(ctx, err)
	}
	defer stop()
	select {
	case <-ctx.Done():
		klog.FromContext(ctx).Info("Stopping: claims keep what they hold")
		return nil
	case err := <-fatal:
		return err
	}
}

// ignoreEnd returns nil for an error that only says that the daemon is to end.
func ignoreEnd(ctx context.Context, err error) error {
	if errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// serveNode waits until no other daemon serves the node, and serves it until stop is called.
// Stop waits until all of it has ended. Until it returns, /healthz says whether it goes on.
func serveNode(ctx context.Context, o options, shown *shown, fatal func(error)) (stop func(), err error) {
	shown.starting.begin("locking the node", nil)
	shown.readiness.Live(shown.starting.alive)
	unlock, err := lockInstance(ctx, o.pluginDir(), func() {
		shown.starting.rest()
		shown.readiness.Standby("another dra-numa is running on this node")
		klog.FromContext(ctx).Info("Waiting: another dra-numa is running on this node")
	})
	if err != nil {
		return nil, err
	}
	shown.readiness.NotReady(kubeletplugin.ReasonStarting, "recovering what the claims of this node hold")
	end, err := start(ctx, o, shown, fatal)
	if err != nil {
		unlock()
		return nil, err
	}
	return func() {
		end()
		unlock()
	}, nil
}

// start serves the node until stop is called. Stop waits until all of it has ended.
func start(ctx context.Context, o options, shown *shown, fatal func(error)) (stop func(), err error) {
	shown.starting.begin("reading the node", nil)
	n, core, err := openNode(ctx, o)
	if err != nil {
		return nil, err
	}
	// A slow disk may take long to write the CDI specs of many claims, one after the other.
	shown.starting.begin("recovering what claims hold", func() uint64 {
		return core.CheckpointWrites().Syncs.Count + core.SpecWrites().Syncs.Count
	})
	client, err := newClient(o.kubeconfig, &shown.requests)
	if err != nil {
		return nil, err
	}
	claims, err := recoverClaims(ctx, o, client, core)
	if err != nil {
		return nil, err
	}
	shown.starting.begin("registering with the kubelet", nil)
	askAgain, unknown := kubeletplugin.Learn(ctx, client, o.nodeName, core.SetGates, o.gates()...)
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	if err := driver.CheckExcludedZones(n.machine, o.zoneBy, n.config.ExcludedZones); err != nil {
		klog.FromContext(ctx).Error(err, "The NodeConfig excludes a zone that there is not", "field", o.fieldOf("exclude"))
	}
	state, err := openDir(o.pluginDir(), 0o750)
	if err != nil {
		cancel()
		return nil, err
	}
	if unknown != nil {
		klog.FromContext(ctx).Error(unknown, "What feature gates are for stays off until the API server answers")
		running.Go(func() { askAgain(ctx) })
	}
	rehearsal := newRehearsal(func(ctx context.Context) error { return o.rehearse(ctx, n) })
	running.Go(func() { rehearsal.run(ctx) })
	rehearsal.wait(ctx)
	options := kubeletplugin.Options{
		Client:      client,
		PluginDir:   o.pluginDir(),
		RegistryDir: o.registryDir(),
		CDIDir:      o.cdiDir,
		KubeletRoot: o.kubeletRoot,
		State:       state,
		Claims:      claims,
		Readiness:   &shown.readiness,
		Rehearsed:   rehearsal.err,
		Paused:      o.publishing == deviceclasses.PublishingPaused,
		ModeReason:  n.modeReason,
		Fatal:       fatal,
	}
	core.SetMemoryPolicies(func() error { return nri.ErrNotUsed })
	if o.nriSocket != "" && n.config.Exclusivity != driver.ExclusivityNone {
		pool := nri.New(nri.Options{Socket: o.nriSocket, Core: core, State: state})
		core.SetMemoryPolicies(pool.MissingPolicies)
		options.SharedPool = pool
		running.Go(func() { pool.Run(ctx) })
	}
	plugin, err := kubeletplugin.Start(ctx, core, options)
	if err != nil {
		cancel()
		running.Wait()
		return nil, err
	}
	counters := ""
	if o.monitoring.cacheUse {
		counters = o.resctrl
	}
	shown.serve(core, plugin, o.hook().LockFile(), counters)
	running.Go(func() { newWatcher(ctx, o, n, core, plugin, fatal).run(ctx) })
	running.Go(func() { keepTrim(ctx) })
	if o.profiled != nil {
		running.Go(func() {
			o.profiled.follow(ctx, func(ctx context.Context) (map[string]string, error) { return o.askLabels(ctx, labelsTimeout) }, fatal)
		})
	}
	return func() {
		cancel()
		plugin.Stop()
		running.Wait()
	}, nil
}

// gates returns the feature gates whose state changes what the node publishes.
func (o options) gates() (gates []kubeletplugin.Gate) {
	if o.accounting != deviceclasses.AccountingRequests {
		gates = append(gates, kubeletplugin.NodeAllocatable())
	}
	severalNodes := o.zoneBy == deviceclasses.ZoneBySocket || o.zoneBy == deviceclasses.ZoneByMachine
	if severalNodes && o.numaNodeLists != deviceclasses.NUMANodeListsNever {
		gates = append(gates, kubeletplugin.NUMANodeLists())
	}
	return gates
}

// openNode reads the node again, because another daemon may have served it for a long
// time since the first read.
func openNode(ctx context.Context, o options) (node, *driver.Driver, error) {
	n, err := readNode(o)
	if err != nil {
		return node{}, nil, err
	}
	if offline := n.config.Reserved.Difference(n.machine.Online); !offline.IsEmpty() {
		klog.FromContext(ctx).Info("Some reserved CPUs are offline, and stay reserved", "reserved", n.config.Reserved, "offline", offline)
	}
	if err := driver.CheckReservedPages(n.machine, n.config.ReservedMemory); err != nil {
		klog.FromContext(ctx).Error(err, "A pool has fewer hugepages than are reserved, so claims get none of them")
	}
	state, err := openDir(o.pluginDir(), 0o750)
	if err != nil {
		return node{}, nil, err
	}
	defer state.Close()
	if o.madeUp != "" {
		klog.FromContext(ctx).Error(nil, "This node only pretends to have its machine: claims get CPUs that there are not, and no container is pinned", "machine", o.madeUp)
	} else if err := checkHook(o.hook().Path); err != nil {
		return node{}, nil, err
	}
	probed, err := readProbe(ctx, state, n.config.BootID)
	if err != nil {
		return node{}, nil, err
	}
	if n.config.Exclusivity, n.modeReason, err = o.exclusivity(probed); err != nil {
		return node{}, nil, err
	}
	core, err := openDriver(o, n)
	if err != nil {
		return node{}, nil, err
	}
	if err := core.FirstUnknown(); err != nil {
		klog.FromContext(ctx).Error(err, "What frequencies, idle states and interrupts had before claims is not known: they get back what the kernel began with")
	}
	return n, core, nil
}

// firstOf returns a function that keeps the first error and drops all later ones. The
// daemon ends with the first error.
func firstOf(errs chan<- error) func(error) {
	return func(err error) {
		select {
		case errs <- err:
		default:
		}
	}
}
