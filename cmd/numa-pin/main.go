// Command numa-pin makes the CPUs of claims exclusive, and keeps them exclusive.
//
// numa-pin pin is the createRuntime hook in a claim's CDI device. The runtime runs it
// on the host, after the container's cgroup exists and before its process starts, with
// the OCI state on standard input. It finds the cgroup and pins it under the host's
// lock. Unless the kernel grants exactly what the claim was given, it ends with an
// error, which aborts the container. It decides nothing and reads nothing from the
// container's environment. A refusal comes with the plan: what the hook wanted to write. With
// --dry-run, the hook prints the plan and changes nothing.
//
// numa-pin use is the createRuntime hook in the other CDI devices. It records that the
// container uses the claim, so that what the claim holds is not given to another one while the
// container runs. For a PCI function, it stops the container if the function does not have its
// device nodes any more.
//
// numa-pin joined is the createRuntime hook in the CDI device of ways of a cache that the
// container's processes have wherever they run. It stops the container unless the runtime
// has put it into the group of resctrl.
//
// numa-pin mempolicy is the poststart hook in the CDI devices of claims with a memory policy.
// It records a container that has started without the policy.
//
// numa-pin keep is the keeper. It runs as long as the node, and verifies and repairs
// what all hooks recorded. It also tells the daemon which policies the kubelet's managers
// have. When it ends, claims stay as they are.
//
// Exit status: 0 pinned, or keeper ended by SIGTERM or SIGINT; 1 not pinned, or keeper
// cannot start; 2 wrong usage.
package main

import (
	"context"
	"os"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
)

func main() {
	host := host{proc: "/proc", cgroups: "/sys/fs/cgroup", workqueues: "/sys/" + pin.WorkqueuesDir, machine: "/"}
	streams := streams{os.Stdin, os.Stdout, os.Stderr}
	cli.Main("numa-pin", func(ctx context.Context, args []string) error { return run(ctx, args, host, streams) })
}
