// Command kubectl-numa shows machines, and how the driver and the scheduler use them
// and the objects of a cluster. It does not change machines or clusters. If it is in
// the PATH, kubectl runs it as "kubectl numa".
//
// It is larger than other packages because it has some twenty commands. A command
// is its flags, its help and the text of its answer. What it answers comes from the
// packages below.
package main

import (
	"os"
	"runtime/debug"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

func main() {
	// A command runs for about a second. Up to a limit, using more memory costs less
	// than collecting garbage.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(768 << 20)
	// client-go reports problems of watches, and warnings of the API server.
	klog.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Output(message.NewWriter(os.Stderr)))))
	os.Exit(run(os.Args, os.Getenv, os.Stdout, os.Stderr))
}
