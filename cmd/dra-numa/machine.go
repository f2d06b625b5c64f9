package main

import (
	"context"
	"os"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/numa/capture"
)

// runMachine writes the files of this machine.
func runMachine(_ context.Context, c cli.Call) error {
	o := options{}
	flags := c.Flags()
	hostFlag(flags, "machine-root", &o.machineRoot)
	if err := c.ParseAll(flags); err != nil {
		return err
	}
	return capture.Write(c.Stdout, os.DirFS(o.machineRoot))
}
