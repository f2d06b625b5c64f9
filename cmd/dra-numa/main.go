// Command dra-numa is the node daemon: it publishes the zones of its machine and
// prepares the claims that the kubelet asks for.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
)

func main() {
	// The daemon is mostly idle: memory matters more than time for garbage collection.
	debug.SetGCPercent(25)
	// Each of its threads that looks for work costs time, and there is never much to do.
	runtime.GOMAXPROCS(2)
	if err := refuseHugePages(); err != nil {
		klog.ErrorS(err, "Transparent hugepages stay on, so the daemon may use more memory than it needs")
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout)
	stop()
	os.Exit(cli.Exit("dra-numa", err, os.Stderr))
}
