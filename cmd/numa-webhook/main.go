// Command numa-webhook is the admission webhook. It is a separate program so that it
// does not add to the memory of the daemon, which runs on every node.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	os.Exit(cli.Exit("numa-webhook", err, os.Stderr))
}
