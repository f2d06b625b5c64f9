// Command numa-webhook is the admission webhook. It is no part of the daemon,
// whose memory counts on every node.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	// The messages of other modules may have several lines.
	fmt.Fprintf(os.Stderr, "numa-webhook: error: %s\n", strings.Join(strings.Fields(err.Error()), " "))
	if usage := (*usageError)(nil); errors.As(err, &usage) {
		os.Exit(2)
	}
	os.Exit(1)
}
