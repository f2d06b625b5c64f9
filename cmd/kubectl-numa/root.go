package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

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
			[]string{"name the folder with the machine's sys and proc"},
		}
	}
	machine, err := numa.Read(root.FS())
	if err != nil {
		return numa.Machine{}, &failure{fmt.Errorf("read machine under %q: %w", folder, err)}
	}
	return machine, nil
}
