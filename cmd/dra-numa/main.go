// Command dra-numa is the node daemon: it publishes the zones of its machine and
// prepares the claims that the kubelet asks for.
//
// It is larger than other packages because the subcommands that show a node are here, too:
// they take the flags of the daemon, and read its files in the same way.
package main

import (
	"context"
	"os"
	"runtime"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
)

func main() {
	// There is never much to do, and each thread that looks for work costs time.
	runtime.GOMAXPROCS(1)
	cli.Main("dra-numa", func(ctx context.Context, args []string) error { return run(ctx, args, os.Getenv, os.Stdout) })
}
