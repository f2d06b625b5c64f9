package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin"
	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin/nri"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// run is the daemon until ctx ends. The order matters: another daemon of this
// node has ended, and what was granted is known and visible to the runtime,
// before the kubelet can ask for more.
func run(ctx context.Context, args []string, env func(string) string, stdout io.Writer) error {
	if len(args) > 0 && args[0] == "checkpoint" {
		return runCheckpoint(args[1:], stdout)
	}
	if len(args) > 0 && args[0] == "state" {
		return runState(args[1:], env, stdout)
	}
	o, err := parseFlags(args, env, stdout)
	if err != nil {
		return err
	}
	if err := cli.SetVerbosity(o.verbosity); err != nil {
		return err
	}
	if o, err = o.withConfig(ctx); err != nil {
		return err
	}
	n, err := readNode(o) // a flag that suits no machine must not end the daemon that runs
	if err != nil {
		return err
	}
	if o.probe {
		return probe(ctx, o, n)
	}
	var readiness kubeletplugin.Readiness
	fatal := make(chan error, 1)
	stopServing, err := serve(o.listen, readiness.Handler(), firstOf(fatal))
	if err != nil {
		return err
	}
	defer stopServing()
	unlock, err := lockInstance(ctx, o.pluginDir(), func() {
		readiness.Standby("another dra-numa has this node")
		klog.FromContext(ctx).Info("Waiting: another dra-numa has this node")
	})
	if err != nil {
		return ignoreEnd(ctx, err)
	}
	defer unlock()
	readiness.NotReady("what claims hold is being recovered")
	stop, err := start(ctx, o, &readiness, firstOf(fatal))
	if err != nil {
		return ignoreEnd(ctx, err)
	}
	defer stop()
	select {
	case <-ctx.Done():
		klog.FromContext(ctx).Info("Stopping: claims stay as they are")
		return nil
	case err := <-fatal:
		return err
	}
}

// ignoreEnd is for what was cut short because the daemon is to end.
func ignoreEnd(ctx context.Context, err error) error {
	if errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// start serves the node until stop is called, which waits for all of it to end.
func start(ctx context.Context, o options, readiness *kubeletplugin.Readiness, fatal func(error)) (stop func(), err error) {
	n, core, err := openNode(ctx, o)
	if err != nil {
		return nil, err
	}
	client, err := newClient(o.kubeconfig)
	if err != nil {
		return nil, err
	}
	claims, err := recoverClaims(ctx, o, client, core)
	if err != nil {
		return nil, err
	}
	n.config.NodeAllocatable = countsAllocatable(ctx, client, o.nodeName)
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	options := kubeletplugin.Options{
		Client:      client,
		PluginDir:   o.pluginDir(),
		RegistryDir: o.registryDir(),
		CDIDir:      o.cdiDir,
		KubeletRoot: o.kubeletRoot,
		Claims:      claims,
		Readiness:   readiness,
		Fatal:       fatal,
	}
	if o.nriSocket != "" && n.config.Exclusivity != driver.ExclusivityNone {
		pool := nri.New(nri.Options{Socket: o.nriSocket, Core: core, NodeCPUs: func() cpuset.Set { return core.Machine().Online }})
		options.Pool = pool
		running.Go(func() { pool.Run(ctx) })
	}
	plugin, err := kubeletplugin.Start(ctx, core, options)
	if err != nil {
		cancel()
		running.Wait()
		return nil, err
	}
	running.Go(func() { newWatcher(o, n, core, plugin).run(ctx) })
	running.Go(func() { keepTrim(ctx) })
	return func() {
		cancel()
		plugin.Stop()
		running.Wait()
	}, nil
}

// openNode reads the node again, which another daemon may have had for long.
func openNode(ctx context.Context, o options) (node, *driver.Driver, error) {
	n, err := readNode(o)
	if err != nil {
		return node{}, nil, err
	}
	state, err := openDir(o.pluginDir(), 0o750)
	if err != nil {
		return node{}, nil, err
	}
	defer state.Close()
	if err := installHook(o.hookSource, state); err != nil {
		return node{}, nil, fmt.Errorf("install pin hook: %w", err)
	}
	probed, err := readProbe(ctx, state, n.config.BootID)
	if err != nil {
		return node{}, nil, err
	}
	if n.config.Exclusivity, err = o.exclusivity(probed); err != nil {
		return node{}, nil, err
	}
	core, err := openDriver(o, n)
	return n, core, err
}

// firstOf keeps the first error and drops the rest: the daemon ends with it.
func firstOf(errs chan<- error) func(error) {
	return func(err error) {
		select {
		case errs <- err:
		default:
		}
	}
}
