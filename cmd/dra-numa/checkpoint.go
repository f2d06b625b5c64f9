package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/tuning"
)

// runCheckpoint verifies or prints a checkpoint: that of the daemon on this node, or a
// copy.
func runCheckpoint(ctx context.Context, c cli.Call) error {
	command := func(verb string) cli.Command {
		return cli.Command{Name: verb, Args: "[--kubelet-root DIR | FILE]", About: checkpointAbout, Run: func(_ context.Context, c cli.Call) error { return showCheckpoint(verb, c) }}
	}
	return cli.Program{Name: c.Name, Commands: []cli.Command{command("verify"), command("dump")}}.Run(ctx, c.Args, c.Stdout)
}

func showCheckpoint(verb string, c cli.Call) error {
	var kubeletRoot string
	flags, stdout := c.Flags(), c.Stdout
	hostFlag(flags, "kubelet-root", &kubeletRoot)
	if err := c.Parse(flags); err != nil {
		return err
	}
	if flags.NArg() > 1 || flags.NArg() == 1 && flags.NFlag() > 0 {
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
