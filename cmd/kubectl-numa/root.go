package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis/bundle"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis/collect"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
	"github.com/dra-driver-numa/dra-driver-numa/internal/platform"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/capture"
)

// origin says which machine a command reads: one with files, or a known one.
type origin struct {
	flags  *pflag.FlagSet
	root   string
	preset string
}

// addTo adds the flags to a command.
func (o *origin) addTo(command *cobra.Command) {
	o.flags = command.Flags()
	addRoot(command, &o.root)
	addPreset(command, &o.preset)
}

func (o *origin) read() (numa.Machine, error) {
	if !o.flags.Changed("preset") {
		return readMachine(o.root)
	}
	if o.flags.Changed("root") {
		return numa.Machine{}, errors.New("--root and --preset: set only one of them")
	}
	machine, err := presetNamed(o.preset)
	if err != nil {
		return numa.Machine{}, err
	}
	return numa.Read(machine.FS())
}

// addRoot adds the flag for the folder of the machine.
func addRoot(command *cobra.Command, root *string) {
	command.Flags().StringVar(root, "root", "/", "`folder` with sys and proc of the machine")
	_ = command.MarkFlagDirname("root") // for completion in shells; the flag exists
}

// readMachine reads the machine in the folder.
func readMachine(folder string) (numa.Machine, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return numa.Machine{}, fmt.Errorf("--root: %w", err)
	}
	defer root.Close()
	if _, err := root.Stat("sys"); errors.Is(err, fs.ErrNotExist) {
		return numa.Machine{}, &hintedError{
			fmt.Errorf("--root %q: there is no folder sys", folder),
			[]string{
				"name the folder with the machine's sys and proc, which only Linux has",
				"set --preset for a known machine, such as rig",
			},
		}
	}
	machine, err := numa.Read(root.FS())
	if err == nil {
		machine.Platform, err = platform.Read(root.FS())
	}
	if err != nil {
		return numa.Machine{}, &failure{fmt.Errorf("read machine under %q: %w", folder, err)}
	}
	return machine, nil
}

// gatheredMachine reads the machine of a node from a bundle that gather wrote.
func gatheredMachine(file, node string) (numa.Machine, error) {
	read, err := readBundle(file)
	if err != nil {
		return numa.Machine{}, err
	}
	archive, there := read.Machines[node]
	if !there {
		return numa.Machine{}, notGathered(read, file, node)
	}
	root, err := capture.Read(bytes.NewReader(archive))
	if err != nil {
		return numa.Machine{}, fmt.Errorf("--from %q: files of node %q: %w", file, node, err)
	}
	machine, err := numa.Read(root)
	if err == nil {
		machine.Platform, err = platform.Read(root)
	}
	if err != nil {
		return numa.Machine{}, &failure{fmt.Errorf("read machine of node %q in %q: %w", node, file, err)}
	}
	return machine, nil
}

// notGathered says why a bundle has no machine of the node, and which it has.
func notGathered(read bundle.Bundle, file, node string) error {
	err := fmt.Errorf("--from %q: the bundle has no files of node %q", file, node)
	for _, missing := range read.Facts.Missing {
		if missing.Setting == collect.MachineSetting && missing.Node == node {
			err = fmt.Errorf("%w: %s", err, message.OneLine(missing.Why))
		}
	}
	if names := slices.Sorted(maps.Keys(read.Machines)); len(names) > 0 {
		return &hintedError{err, []string{"the bundle has files of " + strings.Join(names, ", ")}}
	}
	return err
}
