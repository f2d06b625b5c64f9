// Command numa-pin makes the CPUs of claims exclusive, and keeps them exclusive.
//
// numa-pin pin is the createRuntime hook in a claim's CDI device. The runtime runs it
// on the host, after the container's cgroup exists and before its process starts, with
// the OCI state on standard input. It finds the cgroup and pins it under the host's
// lock. Unless the kernel grants exactly what the claim was given, it ends with an
// error, which aborts the container. It decides nothing and reads nothing from the
// container's environment.
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
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	host := host{proc: "/proc", cgroups: "/sys/fs/cgroup", workqueues: "/sys/" + pin.WorkqueuesDir, machine: "/"}
	streams := streams{os.Stdin, os.Stdout, os.Stderr}
	status := exit(run(ctx, os.Args[1:], host, streams), os.Stderr)
	stop()
	os.Exit(status)
}

// exit prints the error on one line and returns the exit status.
func exit(err error, stderr io.Writer) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "numa-pin: error: %v\n", err)
	if usage := (usageError{}); errors.As(err, &usage) {
		return 2
	}
	return 1
}
