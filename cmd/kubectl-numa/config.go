package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
	"github.com/dra-driver-numa/dra-driver-numa/driver/dividing"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// nodeConfig holds the flags for the configuration of a node.
type nodeConfig struct {
	file   string
	labels map[string]string
	lists  bool // the cluster has lists of NUMA nodes
}

// addTo adds the flags to a command.
func (c *nodeConfig) addTo(command *cobra.Command) {
	command.Flags().StringVar(&c.file, "config", "", "`file` with the NodeConfig of the node (default: reserve the first core that is not in isolcpus= and no memory, and publish no PCI functions)")
	command.Flags().StringToStringVar(&c.labels, "node-labels", nil, "`key=value` pairs: labels of the Node, which select profiles of --config")
	withoutDefault(command, "node-labels")
	_ = command.MarkFlagFilename("config", "yaml", "yml", "json") // for completion in shells; the flag exists
}

// read returns the driver's configuration for the machine. Without a file, this is the
// default configuration. Exclusivity is empty if the NodeConfig does not set it.
func (c nodeConfig) read(machine numa.Machine) (driver.Config, error) {
	var config deviceclasses.NodeConfig
	if c.file != "" {
		text, err := os.ReadFile(c.file)
		if err != nil {
			return driver.Config{}, fmt.Errorf("--config: %w", err)
		}
		if config, err = deviceclasses.DecodeNodeConfig(text); err != nil {
			return driver.Config{}, fmt.Errorf("--config %q: %w", c.file, err)
		}
	}
	settings := config.For(c.labels)
	var selection attached.Selection
	if settings.Devices != nil {
		var err error
		if selection, err = attached.NewSelection(*settings.Devices); err != nil {
			return driver.Config{}, fmt.Errorf("--config %q: %s%w", c.file, config.Profile("devices", c.labels), err)
		}
	}
	reserved, err := driver.Reserved(machine, settings.ReservedCPUs, nil)
	if err != nil && settings.ReservedCPUs != "" {
		return driver.Config{}, fmt.Errorf("--config %q: %sreservedCPUs: %w", c.file, config.Profile("reservedCPUs", c.labels), err)
	}
	if err != nil {
		return driver.Config{}, &failure{err}
	}
	hugepages, err := driver.ReservedHugepages(machine, settings.ReservedHugepages)
	if err != nil {
		return driver.Config{}, fmt.Errorf("--config %q: %sreservedHugepages%w", c.file, config.Profile("reservedHugepages", c.labels), err)
	}
	if err := driver.CheckReservedPages(machine, hugepages); err != nil {
		return driver.Config{}, fmt.Errorf("--config %q: %sreservedHugepages: %w", c.file, config.Profile("reservedHugepages", c.labels), err)
	}
	memory, err := driver.ReservedMemory(machine, settings.ReservedMemory, hugepages, nil)
	if err != nil {
		return driver.Config{}, err
	}
	ofNodes, err := driver.ReservedNodeMemory(machine, settings.ReservedNodeMemory)
	if err != nil {
		return driver.Config{}, fmt.Errorf("--config %q: %sreservedNodeMemory%w", c.file, config.Profile("reservedNodeMemory", c.labels), err)
	}
	excluded, err := driver.ExcludedMemory(machine, settings.Exclude)
	if err == nil {
		err = driver.CheckExcludedZones(machine, settings.ZoneBy, settings.Exclude.ZoneNames())
	}
	if err != nil {
		return driver.Config{}, fmt.Errorf("--config %q: %sexclude.%w", c.file, config.Profile("exclude", c.labels), err)
	}
	memory = slices.Concat(memory, ofNodes, excluded)
	read := driver.Config{Reserved: reserved, ReservedMemory: memory, ExcludedZones: settings.Exclude.ZoneNames(), ZoneBy: settings.ZoneBy, ZoneOrder: settings.ZoneOrder, Groups: settings.Groups, NUMANodeKeys: settings.NUMANodeKeys, Attached: selection}
	read.NUMANodeLists = c.lists && settings.NUMANodeLists != deviceclasses.NUMANodeListsNever
	if settings.Cache != nil {
		read.Caches = &dividing.Config{Pools: *settings.Cache}
	}
	if settings.Exclusivity != deviceclasses.ExclusivityAuto {
		read.Exclusivity = driver.Exclusivity(settings.Exclusivity)
	}
	return read, nil
}
