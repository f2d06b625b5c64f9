package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// addConfig gives a command the flag for what the node's operator decides.
func addConfig(command *cobra.Command, file *string) {
	command.Flags().StringVar(file, "config", "", "`file` with the NodeConfig of the node (default: the first core is reserved, and no memory)")
	_ = command.MarkFlagFilename("config", "yaml", "yml", "json") // for a shell's completion; the flag is there
}

// readConfig is the driver's configuration for the machine; without a file, the
// one it has without settings.
func readConfig(file string, machine numa.Machine) (driver.Config, error) {
	var node deviceclasses.NodeConfig
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return driver.Config{}, fmt.Errorf("--config: %w", err)
		}
		if node, err = deviceclasses.DecodeNodeConfig(text); err != nil {
			return driver.Config{}, fmt.Errorf("--config %q: %w", file, err)
		}
	}
	reserved, err := driver.Reserved(machine, node.ReservedCPUs, nil)
	if err != nil && node.ReservedCPUs != "" {
		return driver.Config{}, fmt.Errorf("--config %q: %w", file, err)
	}
	if err != nil {
		return driver.Config{}, &failure{err}
	}
	return driver.Config{Reserved: reserved, ReservedMemoryBytes: node.ReservedMemoryBytes()}, nil
}
