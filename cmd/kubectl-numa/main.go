// Command kubectl-numa shows machines, and what the driver and the scheduler make of them
// and of the objects of a cluster. It changes neither. If it is in the PATH, kubectl runs
// it as "kubectl numa".
package main

import (
	"os"
	"runtime/debug"
)

func main() {
	// A command runs for about a second. Up to a limit, memory is cheaper than collecting garbage.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(768 << 20)
	os.Exit(run(os.Args, os.Getenv, os.Stdout, os.Stderr))
}
