// Command dra-numa is the node daemon: it publishes the zones of its machine and
// prepares the claims that the kubelet asks for.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

func main() {
	// The daemon idles: memory counts for more than the time of its collections.
	debug.SetGCPercent(25)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout)
	stop()
	var usage *usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return
	case errors.As(err, &usage):
		fmt.Fprintf(os.Stderr, "dra-numa: error: %s\n", oneLine(err))
		os.Exit(2)
	default:
		fmt.Fprintf(os.Stderr, "dra-numa: error: %s\n", oneLine(err))
		os.Exit(1)
	}
}
