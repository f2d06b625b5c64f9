package main

import (
	"flag"
	"io"
	"os"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/numa/capture"
)

const machineUsage = `Usage: dra-numa machine [flags]

Writes the files of sys and proc that the driver reads of this machine to stdout,
as a tar archive that is compressed with gzip. It changes nothing. Unpacked, the
archive is a folder for kubectl numa topology --root.

`

// runMachine writes the files of this machine.
func runMachine(args []string, stdout io.Writer) error {
	o := options{}
	flags := flag.NewFlagSet("dra-numa machine", flag.ContinueOnError)
	hostFlag(flags, "machine-root", &o.machineRoot)
	if err := cli.Parse(flags, args, machineUsage, stdout); err != nil {
		return err
	}
	if err := cli.FlagsOnly(flags); err != nil {
		return err
	}
	return capture.Write(stdout, os.DirFS(o.machineRoot))
}
