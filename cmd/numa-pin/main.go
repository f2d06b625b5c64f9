// Command numa-pin is the createRuntime hook that a claim's CDI device carries.
// The runtime runs it on the host after the container's cgroup exists and before
// its process starts, with the OCI state on standard input. It finds the
// cgroup, pins it under the host's lock, and ends with an error, which aborts
// the container, unless the kernel grants exactly what the claim was given.
// It decides nothing and reads nothing from the container's environment.
//
// Exit status: 0 pinned, 1 not pinned, 2 wrong usage.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
)

func main() {
	host := host{proc: "/proc", cgroups: "/sys/fs/cgroup"}
	os.Exit(exit(run(os.Args[1:], host, os.Stdin), os.Stderr))
}

// exit says what went wrong in one line and returns the exit status.
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
