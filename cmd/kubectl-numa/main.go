// Command kubectl-numa shows machines and what the driver makes of them, without
// a cluster. kubectl runs it as "kubectl numa" when it is in the PATH.
package main

import "os"

func main() {
	os.Exit(run(os.Args, os.Getenv, os.Stdout, os.Stderr))
}
