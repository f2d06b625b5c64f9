package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/tuning"
)

const checkpointUsage = `Usage: dra-numa checkpoint verify|dump [--kubelet-root DIR | FILE]

verify prints one line about the checkpoint. If the checkpoint is damaged, or
written by another build, it says what is wrong and exits with status 1. dump
prints the content of the checkpoint as JSON. Neither changes anything. A FILE
with the name first.json is what the node had before claims changed it.

`

// runCheckpoint verifies or prints a checkpoint: that of the daemon on this node, or a
// copy.
func runCheckpoint(args []string, stdout io.Writer) error {
	var kubeletRoot string
	flags := flag.NewFlagSet("dra-numa checkpoint", flag.ContinueOnError)
	hostFlag(flags, "kubelet-root", &kubeletRoot)
	var verb string
	if len(args) > 0 && (args[0] == "verify" || args[0] == "dump") {
		verb, args = args[0], args[1:]
	}
	if err := cli.Parse(flags, args, checkpointUsage, stdout); err != nil {
		return err
	}
	switch {
	case verb == "":
		return cli.Usagef("checkpoint %q: want verify or dump", flags.Arg(0))
	case flags.NArg() > 1 || flags.NArg() == 1 && flags.NFlag() > 0:
		return cli.Usagef("checkpoint %s: want --kubelet-root or one file", verb)
	}
	path := filepath.Join((&options{kubeletRoot: kubeletRoot}).pluginDir(), ledger.CheckpointName)
	if flags.NArg() == 1 {
		path = flags.Arg(0)
	}
	if filepath.Base(path) == tuning.FirstName {
		return showFirst(verb, path, stdout)
	}
	checkpoint, err := readCheckpoint(path)
	if err != nil {
		return err
	}
	if verb == "dump" {
		return dump(stdout, struct {
			Version int `json:"version"` // of the file
			ledger.Checkpoint
		}{checkpoint.Version, checkpoint})
	}
	if err := checkpoint.Validate(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	_, err = fmt.Fprintf(stdout, "%s: version %d, claims %d, boot %s\n", path, checkpoint.Version, len(checkpoint.Grants), checkpoint.BootID)
	return err
}

func readCheckpoint(path string) (ledger.Checkpoint, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return ledger.Checkpoint{}, err
	}
	checkpoint, err := ledger.DecodeCheckpoint(data)
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return checkpoint, err
}

// showFirst verifies or prints what a node had first.
func showFirst(verb, path string, stdout io.Writer) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	first, err := tuning.DecodeFirst(data)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if verb == "dump" {
		return dump(stdout, first)
	}
	_, err = fmt.Fprintf(stdout, "%s: interrupts %t, dies %d, defaults %d, boot %s\n", path, !first.Interrupts.IsZero(), len(first.Uncore), len(first.Defaults), first.BootID)
	return err
}

func dump(stdout io.Writer, content any) error {
	encoder := json.NewEncoder(stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(content)
}
