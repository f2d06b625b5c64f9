package driver

import (
	"slices"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// Every device with a NUMA node has it under the keys of the NodeConfig, and those of the
// default are gone.
func TestNUMANodeKeysOfTheNodeConfig(t *testing.T) {
	const other = resourceapi.QualifiedName("fpga.example.com/numaNode")
	defaults := deviceclasses.NUMANodeAttributes()[1:]
	divided, disk := newCacheNode(t, tenWays), pciDisk(t)
	config, machine := divided.config(), disk.machine
	config.Attached = disk.selected
	groups, err := numa.ReadResctrl(divided.groups, numa.ResctrlView{AllTasks: true})
	if err != nil {
		t.Fatal(err)
	}
	machine.Resctrl = &groups.Info
	for name, row := range map[string]struct{ keys, want []resourceapi.QualifiedName }{
		"default":         {nil, defaults},
		"none":            {[]resourceapi.QualifiedName{}, nil},
		"another":         {[]resourceapi.QualifiedName{other}, []resourceapi.QualifiedName{other}},
		"one of defaults": {defaults[:1], defaults[:1]},
	} {
		t.Run(name, func(t *testing.T) {
			config := config
			before := Devices(machine, config, nil)
			config.NUMANodeKeys = row.keys
			kinds := make(map[string]bool)
			for i, device := range Devices(machine, config, nil) {
				node, has := device.Attributes[deviceclasses.AttributeNUMANode]
				if !has {
					continue
				}
				kinds[*device.Attributes[deviceclasses.AttributeKind].StringValue] = true
				for _, key := range append(slices.Clone(defaults), other) {
					value, found := device.Attributes[key]
					if found != slices.Contains(row.want, key) || found && *value.IntValue != *node.IntValue {
						t.Errorf("device %s has %s %v, want the NUMA node for %q only", device.Name, key, value.IntValue, row.want)
					}
				}
				if got, want := len(device.Attributes), len(before[i].Attributes)-len(defaults)+len(row.want); got != want {
					t.Errorf("device %s has %d attributes, want %d", device.Name, got, want)
				}
			}
			for _, kind := range []string{deviceclasses.KindZone, deviceclasses.KindCache, "nvme"} {
				if !kinds[kind] {
					t.Errorf("no device of kind %s", kind)
				}
			}
		})
	}
}
