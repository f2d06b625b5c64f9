// Command kubectl-numa shows machines, and what driver and scheduler make of them
// and of a cluster. It changes nothing there. kubectl runs it as "kubectl numa" when it is in the PATH.
package main

import "os"

func main() {
	os.Exit(run(os.Args, os.Getenv, os.Stdout, os.Stderr))
}
