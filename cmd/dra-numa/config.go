package main

import (
	"context"
	"fmt"
	"os"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
)

// withConfig adds the settings of the file that --config names. It asks for the labels
// of the node only if the file has profiles. A setting that is also a flag must not be in
// both.
func (o options) withConfig(ctx context.Context) (options, error) {
	if o.configFile == "" {
		return o, nil
	}
	text, err := os.ReadFile(o.configFile)
	if err != nil {
		return options{}, cli.Usagef("--config: %w", err)
	}
	config, err := deviceclasses.DecodeNodeConfig(text)
	if err != nil {
		return options{}, cli.Usagef("--config %q: %w", o.configFile, err)
	}
	var labels map[string]string
	if len(config.Profiles) > 0 {
		if labels, err = o.nodeLabels(ctx); err != nil {
			return options{}, fmt.Errorf("--config %q has profiles: %w", o.configFile, err)
		}
	}
	next, err := o.with(config, labels)
	if err == nil && len(config.Profiles) > 0 {
		next.profiled = &profiled{o, config, labels}
	}
	return next, err
}

// with adds the settings of a file to those of the flags.
func (o options) with(config deviceclasses.NodeConfig, labels map[string]string) (options, error) {
	settings := config.For(labels)
	o.settings = &settings
	for _, both := range []struct {
		field, flag   string
		isSet, isFlag bool
	}{
		{"reservedCPUs", "reserved-cpus", settings.ReservedCPUs != "", o.reservedCPUs != ""},
		{"reservedMemory", "reserved-memory", settings.ReservedMemory != nil, o.reservedMemory != ""},
		{"exclusivity", "exclusivity", settings.Exclusivity != "", o.exclusivityMode != deviceclasses.ExclusivityAuto},
	} {
		if both.isSet && both.isFlag {
			return options{}, cli.Usagef("--config %q: %s%s: set --%s or this, not both", o.configFile, config.Profile(both.field, labels), both.field, both.flag)
		}
	}
	if settings.ReservedCPUs != "" {
		o.reservedCPUs, o.reservedIn = settings.ReservedCPUs, fmt.Sprintf("--config %q: %sreservedCPUs", o.configFile, config.Profile("reservedCPUs", labels))
	}
	if settings.ReservedMemory != nil {
		o.reservedQuantity = settings.ReservedMemory
	}
	o.reservedHugepages, o.reservedNodeMemory, o.exclude = settings.ReservedHugepages, settings.ReservedNodeMemory, settings.Exclude
	o.fieldOf = func(field string) string {
		return fmt.Sprintf("--config %q: %s%s", o.configFile, config.Profile(field, labels), field)
	}
	if settings.Exclusivity != "" {
		o.exclusivityMode = settings.Exclusivity
	}
	o.zoneBy, o.zoneOrder = settings.ZoneBy, settings.ZoneOrder
	o.cpuDrivers, o.memoryDrivers = settings.OtherCPUDrivers, settings.OtherMemoryDrivers
	o.numaNodeKeys, o.numaNodeLists = settings.NUMANodeKeys, settings.NUMANodeLists
	o.groups, o.accounting, o.publishing = settings.Groups, settings.Accounting, settings.Publishing
	o.cpuQuota, o.cachePools = settings.CPUQuota, settings.Cache
	if settings.Performance != nil {
		o.performance = *settings.Performance
	}
	if settings.Devices != nil {
		selection, err := attached.NewSelection(*settings.Devices)
		if err != nil {
			return options{}, cli.Usagef("--config %q: %s%w", o.configFile, config.Profile("devices", labels), err)
		}
		o.attached, o.bindDrivers = selection, settings.Devices.BindDrivers
	}
	if err := o.validate(); err != nil {
		return options{}, cli.Usagef("--config %q: %w", o.configFile, err)
	}
	return o, nil
}
