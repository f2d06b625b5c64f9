// Command kubectl-numa shows machines, and what driver and scheduler make of them
// and of a cluster. It changes nothing there. kubectl runs it as "kubectl numa" when it is in the PATH.
package main

import (
	"os"
	"runtime/debug"
)

func main() {
	// A command lives for a second: up to a limit, memory is cheaper than collections.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(768 << 20)
	os.Exit(run(os.Args, os.Getenv, os.Stdout, os.Stderr))
}
