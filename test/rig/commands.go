package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/test/rig/build"
	"github.com/dra-driver-numa/dra-driver-numa/test/rig/cluster"
	"github.com/dra-driver-numa/dra-driver-numa/test/rig/guest"
	"github.com/dra-driver-numa/dra-driver-numa/test/rig/topology"
)

const maxNodes = 8

// options are the flags of all commands; each command takes those that it knows.
type options struct {
	home string // folder of everything
	name string // of the cluster
	args []string

	nodes      int
	topology   string
	kernel     string
	boot       string // parameters of the kernel
	guest      guest.Guest
	kubernetes string
	source     string
	speed      int
	node       string
}

func parseOptions(command string, args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("cluster "+command, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.name, "name", "default", "")
	switch command {
	case "up":
		f.IntVar(&o.nodes, "nodes", 1, "")
		f.StringVar(&o.topology, "topology", "", "")
		f.StringVar(&o.kernel, "kernel", "6.12", "")
		f.StringVar(&o.boot, "boot", "", "")
		f.StringVar((*string)(&o.guest.Init), "init", string(guest.Busybox), "")
		f.StringVar((*string)(&o.guest.CRI), "cri", string(guest.Containerd), "")
		f.StringVar((*string)(&o.guest.Layout), "layout", string(guest.Common), "")
		f.StringVar(&o.kubernetes, "kubernetes", build.DefaultKubernetes, "")
		f.StringVar(&o.guest.Gates, "feature-gates", "", "")
		f.StringVar(&o.source, "source", ".", "")
		f.IntVar(&o.speed, "speed", 100, "")
	case "exec", "console", "monitor":
		f.StringVar(&o.node, "node", "numa-node-0", "")
	}
	if err := f.Parse(args); err != nil {
		return options{}, err
	}
	o.args = f.Args()
	if err := cluster.CheckName(o.name); err != nil {
		return options{}, err
	}
	if (command == "exec" || command == "monitor") && len(o.args) == 0 {
		return options{}, fmt.Errorf("%s: no command; see cluster help", command)
	}
	if o.nodes < 0 || o.nodes > maxNodes {
		return options{}, fmt.Errorf("-nodes %d is not in 0-%d", o.nodes, maxNodes)
	}
	if command == "up" && (o.speed < 1 || o.speed > 100) {
		return options{}, fmt.Errorf("-speed %d is not in 1-100", o.speed)
	}
	if command == "up" && !slices.Contains(build.KernelNames(), o.kernel) {
		return options{}, fmt.Errorf("-kernel %q, allowed are %s", o.kernel, strings.Join(build.KernelNames(), ", "))
	}
	if command == "up" && !slices.Contains(guest.Inits(), o.guest.Init) {
		return options{}, fmt.Errorf("-init %q, allowed are %s, %s", o.guest.Init, guest.Busybox, guest.Systemd)
	}
	if command == "up" && !slices.Contains(guest.CRIs(), o.guest.CRI) {
		return options{}, fmt.Errorf("-cri %q, allowed are %s, %s", o.guest.CRI, guest.Containerd, guest.CRIO)
	}
	if command == "up" && !slices.Contains(guest.Layouts(), o.guest.Layout) {
		return options{}, fmt.Errorf("-layout %q, allowed are %s, %s, %s", o.guest.Layout, guest.Common, guest.Sealed, guest.SELinux)
	}
	if command == "up" && o.guest.Layout != guest.Common && o.guest.CRI != guest.Containerd {
		return options{}, fmt.Errorf("-layout %s -cri %s: a node of this layout has %s", o.guest.Layout, o.guest.CRI, guest.Containerd)
	}
	if command == "up" && o.guest.SELinux() && o.guest.Init != guest.Systemd {
		return options{}, fmt.Errorf("-layout %s -init %s: it is %s that loads the policy", o.guest.Layout, o.guest.Init, guest.Systemd)
	}
	if versions := build.KubernetesVersions(); command == "up" && !slices.Contains(versions, o.kubernetes) {
		return options{}, fmt.Errorf("-kubernetes %q, allowed are %s", o.kubernetes, strings.Join(versions, ", "))
	}
	var err error
	o.home, err = cluster.Home()
	return o, err
}

func (o options) dir() string   { return cluster.Dir(o.home, o.name) }
func (o options) cache() string { return build.Dir(o.home) }

// load reads the cluster's folder.
func (o options) load() (*cluster.Cluster, error) {
	r, err := cluster.Load(o.dir(), os.Stderr)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no cluster %q is up", o.name)
	}
	return r, err
}

// loadNode returns the cluster, the node that a command is for, and the exit code if
// there is none.
func (o options) loadNode() (r *cluster.Cluster, n cluster.Node, code int, err error) {
	if r, err = o.load(); err != nil {
		return nil, n, 1, err
	}
	if n, err = r.Node(o.node); err != nil {
		return nil, n, 2, usageError{err}
	}
	return r, n, 0, nil
}

func up(ctx context.Context, o options) (int, error) {
	if o.nodes > 0 {
		if err := build.CheckHost(); err != nil {
			return 1, err
		}
	}
	machine, err := readTopology(o.topology)
	if err != nil {
		return 2, usageError{err}
	}
	source, err := filepath.Abs(o.source)
	if err != nil {
		return 1, err
	}
	if _, err := os.Stat(filepath.Join(source, "test/rig/go.mod")); err != nil {
		return 2, usageError{fmt.Errorf("-source %s is not the root of the project: %w", o.source, err)}
	}
	if err := removeRemains(o); err != nil {
		return 1, err
	}
	c := build.Cache{Dir: o.cache(), Source: source, Log: os.Stderr}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return 1, err
	}
	needs := build.Needs{
		Kubernetes: o.kubernetes, Nodes: o.nodes > 0, Kernel: o.kernel, Init: string(o.guest.Init), CRI: string(o.guest.CRI),
		RDT: machine.RDT != nil, SELinux: o.guest.SELinux(),
	}
	if err := c.AnnounceMissing(needs); err != nil {
		return 1, err
	}
	if err := c.HostPrograms(ctx, needs); err != nil {
		return 1, err
	}
	if err := c.ControlPlane(ctx, o.kubernetes); err != nil {
		return 1, err
	}
	var boot cluster.Boot
	var programs cluster.Programs
	if o.nodes > 0 {
		if boot, programs, err = prepareNodes(ctx, c, o, machine); err != nil {
			return 1, err
		}
	}
	return start(ctx, o, c, machine, boot, programs)
}

// removeRemains removes a cluster whose processes have all ended, because this machine was
// restarted, for example. It is an error if the cluster runs or is about to.
func removeRemains(o options) error {
	left, err := cluster.Load(o.dir(), os.Stderr)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || !left.Ended() {
		return fmt.Errorf("cluster %q is up already, stop it first: bin/cluster down -name %s", o.name, o.name)
	}
	fmt.Fprintf(os.Stderr, "cluster %q does not run any more: its folder %s is removed\n", o.name, o.dir())
	return cluster.Down(o.dir(), os.Stderr)
}

// start brings the cluster up; a cluster that does not come up is left as it is, for its
// logs.
func start(ctx context.Context, o options, c build.Cache, machine topology.Topology, boot cluster.Boot, programs cluster.Programs) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 1, err
	}
	boot.Self = self
	r, err := cluster.New(o.dir(), o.nodes, o.speed, os.Stderr)
	if err != nil {
		return 1, err
	}
	flags, err := r.Audit()
	if err != nil {
		return 1, err
	}
	if o.guest.Sealed() {
		strict, err := r.StrictAdmission()
		if err != nil {
			return 1, err
		}
		flags = append(flags, strict)
	}
	if err := r.StartControlPlane(ctx, c.Path("bin"), c.KubernetesDir(o.kubernetes), self, o.guest.Gates, map[string][]string{"apiserver": flags}); err != nil {
		return 1, fmt.Errorf("%w (logs: %s; then: cluster down -name %s)", err, r.Path("logs"), o.name)
	}
	if err := r.StartNodes(ctx, machine, boot, programs); err != nil {
		return 1, fmt.Errorf("%w (logs: %s; then: cluster down -name %s)", err, r.Path("logs"), o.name)
	}
	fmt.Println(r.Path("admin.kubeconfig"))
	return 0, nil
}

func prepareNodes(ctx context.Context, c build.Cache, o options, machine topology.Topology) (cluster.Boot, cluster.Programs, error) {
	var b cluster.Boot
	p := cluster.Programs{Bin: c.Path("bin"), Kubernetes: c.KubernetesDir(o.kubernetes), Guest: o.guest}
	err := c.Node(ctx, string(o.guest.CRI))
	if err != nil {
		return b, p, err
	}
	if p.Images, err = c.Images(ctx); err != nil {
		return b, p, err
	}
	if p.System, err = c.System(ctx, string(o.guest.Init), string(o.guest.CRI)); err != nil {
		return b, p, err
	}
	if b.Vmlinuz, b.Initramfs, err = c.Kernel(ctx, o.kernel, guest.InitramfsInit); err != nil {
		return b, p, err
	}
	if o.guest.SELinux() {
		if p.Policy, err = c.Policy(ctx); err != nil {
			return b, p, err
		}
	}
	b.Parameters = strings.TrimSpace(o.guest.Parameters() + " " + o.boot)
	if machine.RDT != nil {
		if b.QEMU, err = c.QEMU(ctx); err != nil {
			return b, p, err
		}
	}
	b.Accelerator, err = cluster.PickAccelerator(ctx, machine, b, c.Path("accelerator"))
	return b, p, err
}

func readTopology(file string) (topology.Topology, error) {
	if file == "" {
		return topology.Parse(topology.Default)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return topology.Topology{}, err
	}
	machine, err := topology.Parse(text)
	if err != nil {
		return topology.Topology{}, fmt.Errorf("%s: %w", file, err)
	}
	return machine, nil
}

func down(_ context.Context, o options) (int, error) {
	return 0, cluster.Down(o.dir(), os.Stderr)
}

func execute(ctx context.Context, o options) (int, error) {
	r, n, code, err := o.loadNode()
	if err != nil {
		return code, err
	}
	var stdin io.Reader = strings.NewReader("")
	if info, err := os.Stdin.Stat(); err == nil && info.Mode()&os.ModeCharDevice == 0 {
		stdin = os.Stdin
	}
	return r.Exec(ctx, n, stdin, os.Stdout, o.args...)
}

func load(ctx context.Context, o options) (int, error) {
	r, err := o.load()
	if err != nil {
		return 1, err
	}
	for _, archive := range o.args {
		if err := r.LoadImage(ctx, archive); err != nil {
			return 1, err
		}
	}
	return 0, nil
}

func console(_ context.Context, o options) (int, error) {
	r, n, code, err := o.loadNode()
	if err != nil {
		return code, err
	}
	text, err := os.ReadFile(r.Console(n))
	if err != nil {
		return 1, err
	}
	_, err = os.Stdout.Write(text)
	return 0, err
}

func monitor(ctx context.Context, o options) (int, error) {
	r, n, code, err := o.loadNode()
	if err != nil {
		return code, err
	}
	output, err := r.Monitor(ctx, n, strings.Join(o.args, " "))
	fmt.Print(strings.ReplaceAll(output, "\r\n", "\n"))
	return 0, err
}

func restart(_ context.Context, o options) (int, error) {
	r, err := o.load()
	if err != nil {
		return 1, err
	}
	if len(o.args) != 1 {
		return 2, usageError{errors.New("restart: one program is wanted")}
	}
	return 0, r.Restart(o.args[0])
}

func path(_ context.Context, o options) (int, error) {
	paths := map[string]string{
		"kubeconfig": filepath.Join(o.dir(), "admin.kubeconfig"),
		"kubectl":    filepath.Join(o.cache(), "bin", "kubectl"),
		"logs":       filepath.Join(o.dir(), "logs"),
	}
	if len(o.args) != 1 || paths[o.args[0]] == "" {
		return 2, usageError{errors.New("path: one of kubeconfig, kubectl, logs is wanted")}
	}
	fmt.Println(paths[o.args[0]])
	return 0, nil
}

func qemu(ctx context.Context, o options) (int, error) {
	if err := build.CheckHost(); err != nil {
		return 1, err
	}
	c := build.Cache{Dir: o.cache(), Log: os.Stderr}
	if err := c.HostPrograms(ctx, build.Needs{Nodes: true, RDT: true}); err != nil {
		return 1, err
	}
	_, err := c.QEMU(ctx)
	return 0, err
}

// machine is started by up and keeps a node's virtual machine running.
func machine(ctx context.Context, o options) (int, error) {
	if len(o.args) < 3 {
		return 2, usageError{errors.New("machine: the cluster's folder, a node and the command that runs it are wanted")}
	}
	r, err := cluster.Load(o.args[0], os.Stderr)
	if err != nil {
		return 1, err
	}
	n, err := r.Node(o.args[1])
	if err != nil {
		return 2, usageError{err}
	}
	return 0, r.RunMachine(ctx, n, o.args[2:]...)
}

// proxy is started by up and carries the API server's connections into the nodes.
func proxy(ctx context.Context, o options) (int, error) {
	if len(o.args) != 1 {
		return 2, usageError{errors.New("proxy: the cluster's folder is wanted")}
	}
	r, err := cluster.Load(o.args[0], os.Stderr)
	if err != nil {
		return 1, err
	}
	return 0, r.Proxy(ctx)
}
