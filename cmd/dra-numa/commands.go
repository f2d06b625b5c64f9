package main

import (
	"context"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
)

// program returns the daemon and its commands.
func program(env func(string) string) cli.Program {
	with := func(run func(context.Context, cli.Call, func(string) string) error) func(context.Context, cli.Call) error {
		return func(ctx context.Context, c cli.Call) error { return run(ctx, c, env) }
	}
	return cli.Program{Name: "dra-numa", Commands: []cli.Command{
		{Name: "", Args: "[flags]", Run: with(runDaemon), About: `Publishes the machine of this node, and prepares the claims that the kubelet asks for,
until it is ended. Claims keep what they hold.`},
		{Name: "checkpoint", Args: "verify|dump [--kubelet-root DIR | FILE]", Run: runCheckpoint, About: checkpointAbout},
		{Name: "config", Args: "[--pid ID | flags of the daemon]", Run: with(runConfig), About: `Prints the configuration that a daemon with these flags would have on this node,
as YAML. It starts nothing and writes no file. If such a daemon would not start
because of its configuration, the error is that of the daemon.`},
		{Name: "machine", Args: "[flags]", Run: runMachine, About: `Writes the files of sys and proc that the driver reads of this machine to stdout,
as a tar archive that is compressed with gzip. It changes nothing. Unpacked, the
archive is a folder for kubectl numa topology --root.`},
		{Name: "mount-resctrl", Args: "[flags]", Run: runMountResctrl, About: `Mounts resctrl at /sys/fs/resctrl of the host, if its kernel has resctrl and it is
not mounted. The mount stays when this program has ended: nothing unmounts it. The
kernel mounts resctrl only once, so it must not be mounted in the mount namespace of
a container, with which it would end. Needs CAP_SYS_ADMIN, CAP_SYS_CHROOT and
CAP_SYS_PTRACE.`},
		{Name: "probe", Args: "[flags of the daemon]", Run: with(runProbe), About: `Installs the hook, tests whether the kernel supports cpuset partitions, and saves the
answer for the daemon. It takes no --config. Needs CAP_SYS_ADMIN.`},
		{Name: "state", Args: "[flags]", Run: with(runState), About: `Prints the state of the claims on this node as one JSON document, from the
checkpoint, the CDI specs and the cgroups, and where the CPUs of the node are.
It changes nothing and takes no lock, so a daemon may run at the same time. The
document names what cannot be read as a problem.`},
		{Name: "test-release", Args: "--namespace NAMESPACE --selector LABELS [flags]", Run: runTestRelease, About: `Waits until each daemon of a release is ready and the API server has all
ResourceSlices of its node. If that takes too long, it says what is missing and exits
with status 1. helm test runs it in a pod of the cluster. It changes nothing.`},
		{Name: "uninstall", Args: "check|node|finish --namespace NAMESPACE [flags]", Run: runUninstall, About: uninstallAbout},
	}}
}

const checkpointAbout = `verify prints one line about the checkpoint. If the checkpoint is damaged, or
written by another build, it says what is wrong and exits with status 1. dump
prints the content of the checkpoint as JSON. Neither changes anything. A FILE
with the name first.json is what the node had before claims changed it.`

const uninstallAbout = `The hooks of the chart run these commands when the release is uninstalled.
check has the scheduler allocate no more claims of the driver, and waits until no pod uses
one. If pods still do, it takes that back, names them and exits with status 1. It does
the same at once if neither Helm nor Argo CD has installed the DaemonSet of the driver.
node waits until the daemon of its node has ended. Then it removes everything that
the driver has left on the node, unless claims are prepared there, and goes on
running; /readyz says whether it is done.
finish waits until that is done on each node, and deletes the ResourceSlices and the
DeviceTaintRule of check that are left. If the driver is installed, it exits with status 1
and deletes only the rule.`
