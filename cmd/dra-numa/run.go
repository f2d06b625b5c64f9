package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// run is the daemon until ctx ends. The order matters: what was granted is known
// and visible to the runtime before the kubelet can ask for more.
func run(ctx context.Context, args []string, env func(string) string, stdout io.Writer) error {
	if len(args) > 0 && args[0] == "checkpoint" {
		return runCheckpoint(args[1:], stdout)
	}
	o, err := parseFlags(args, env, stdout)
	if err != nil {
		return err
	}
	setVerbosity(o.verbosity)
	machine, config, err := readNode(o)
	if err != nil {
		return err
	}
	core, err := openDriver(o, machine, config)
	if err != nil {
		return err
	}
	if o.probe {
		return probe(ctx, o, config, core)
	}
	if config.Exclusivity, err = readProbe(ctx, o, config.BootID); err != nil {
		return err
	}
	client, err := newClient(o.kubeconfig)
	if err != nil {
		return err
	}
	if err := recoverClaims(ctx, o, client, core); err != nil {
		return err
	}
	defer startObserving(ctx, o.cgroupRoot, core)()
	fatal := make(chan error, 1)
	plugin, err := kubeletplugin.Start(ctx, core, kubeletplugin.Options{
		Client:      client,
		NodeName:    o.nodeName,
		PluginDir:   o.pluginDir(),
		RegistryDir: o.registryDir(),
		KubeletRoot: o.kubeletRoot,
		Resources:   driver.Resources(o.nodeName, driver.Devices(machine, config)),
		Exclusivity: config.Exclusivity,
		Fatal:       firstOf(fatal),
	})
	if err != nil {
		return err
	}
	defer plugin.Stop()
	stopServing, err := serve(o.listen, plugin.Handler(), firstOf(fatal))
	if err != nil {
		return err
	}
	defer stopServing()
	select {
	case <-ctx.Done():
		klog.FromContext(ctx).Info("Stopping: claims stay as they are")
		return nil
	case err := <-fatal:
		return err
	}
}

// readNode reads the machine and what the operator withholds of it.
func readNode(o options) (numa.Machine, driver.Config, error) {
	root := os.DirFS(o.machineRoot)
	machine, err := numa.Read(root)
	if err != nil {
		return numa.Machine{}, driver.Config{}, fmt.Errorf("read machine: %w", err)
	}
	bootID, err := readBootID(root)
	if err != nil {
		return numa.Machine{}, driver.Config{}, err
	}
	reserved, err := readReserved(o, machine)
	if err != nil {
		return numa.Machine{}, driver.Config{}, &usageError{err}
	}
	return machine, driver.Config{
		NodeName:            o.nodeName,
		BootID:              bootID,
		Reserved:            reserved,
		ReservedMemoryBytes: o.reservedMemoryBytes,
		HookPath:            o.hookPath(),
	}, nil
}

// openDriver loads the checkpoint and puts the hook and the CDI specs in place.
func openDriver(o options, machine numa.Machine, config driver.Config) (*driver.Driver, error) {
	state, err := openDir(o.pluginDir(), 0o750)
	if err != nil {
		return nil, err
	}
	specs, err := openDir(o.cdiDir, 0o755)
	if err != nil {
		return nil, err
	}
	if err := installHook(o.hookSource, state); err != nil {
		return nil, fmt.Errorf("install pin hook: %w", err)
	}
	return driver.Open(machine, config, state, specs)
}

func openDir(path string, mode os.FileMode) (*os.Root, error) {
	if err := os.MkdirAll(path, mode); err != nil {
		return nil, err
	}
	return os.OpenRoot(path)
}

func newClient(kubeconfig string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent = "dra-numa"
	return kubernetes.NewForConfig(config)
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

func setVerbosity(level int) {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	_ = flags.Set("v", strconv.Itoa(level)) // a number is always accepted
}
