// Command numa-webhook is the admission webhook. It is a separate program so that it
// does not add to the memory of the daemon, which runs on every node.
package main

import (
	"context"
	"os"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
)

func main() {
	cli.Main("numa-webhook", func(ctx context.Context, args []string) error { return run(ctx, args, os.Stdout) })
}
