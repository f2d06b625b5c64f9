package driver

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// nodesOf says what each device has under the keys of the NUMA node.
func nodesOf(devices []resourceapi.Device, keys ...resourceapi.QualifiedName) (lines []string) {
	for _, device := range devices {
		line := device.Name + ":"
		for _, key := range keys {
			switch value, has := device.Attributes[key]; {
			case value.IntValue != nil && value.IntValues == nil:
				line += fmt.Sprintf(" %d", *value.IntValue)
			case has:
				line += fmt.Sprintf(" %v", value.IntValues)
			default:
				line += " -"
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// machineOf returns a machine of one socket with these many NUMA nodes of one CPU.
func machineOf(nodes int) (machine numa.Machine) {
	for id := range nodes {
		cpus := cpuset.New(id)
		machine.Online = machine.Online.Union(cpus)
		machine.Cores = append(machine.Cores, numa.Core{Socket: new(0), ID: new(id), Zone: id, CPUs: cpus})
		machine.Zones = append(machine.Zones, numa.Zone{ID: id, CPUs: cpus, Sockets: []int{0}, MemoryBytes: new(uint64(1 << 30))})
	}
	return machine
}

// Zones of several NUMA nodes have the list of them, under all keys, where the cluster has
// lists. All other devices have one number: a selector of a number matches no list.
func TestOnlyZonesOfSeveralNUMANodesHaveLists(t *testing.T) {
	const other = resourceapi.QualifiedName("fpga.example.com/numaNode")
	disk := pciDisk(t)
	pci := disk.machine
	for name, row := range map[string]struct {
		machine numa.Machine
		by      string
		lists   bool
		keys    []resourceapi.QualifiedName
		want    []string // by the keys of the default, then the other one
	}{
		"off":                    {testMachine(), deviceclasses.ZoneByMachine, false, nil, []string{"machine: - - - -", "numa-2: 2 2 2 -"}},
		"on":                     {testMachine(), deviceclasses.ZoneByMachine, true, nil, []string{"machine: [0 1] [0 1] [0 1] -", "numa-2: 2 2 2 -"}},
		"keys of the NodeConfig": {testMachine(), deviceclasses.ZoneByMachine, true, []resourceapi.QualifiedName{other}, []string{"machine: [0 1] - - [0 1]", "numa-2: 2 - - 2"}},
		"no other keys":          {testMachine(), deviceclasses.ZoneByMachine, true, []resourceapi.QualifiedName{}, []string{"machine: [0 1] - - -", "numa-2: 2 - - -"}},
		"a socket of one node":   {testMachine(), deviceclasses.ZoneBySocket, true, nil, []string{"socket-0: 0 0 0 -", "socket-1: 1 1 1 -", "numa-2: 2 2 2 -"}},
		"by NUMA node":           {testMachine(), "", true, nil, []string{"numa-0: 0 0 0 -", "numa-1: 1 1 1 -", "numa-2: 2 2 2 -"}},
	} {
		config := zonedBy(row.by)
		config.NUMANodeLists, config.NUMANodeKeys = row.lists, row.keys
		if got := nodesOf(Devices(row.machine, config, nil), append(deviceclasses.NUMANodeAttributes(), other)...); !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
	config := zonedBy(deviceclasses.ZoneByMachine)
	config.Attached, config.NUMANodeLists = disk.selected, true
	zones := 0
	for _, device := range Devices(pci, config, nil) {
		if HasList(device) {
			zones++
			if !deviceclasses.IsZoneKind(*device.Attributes[deviceclasses.AttributeKind].StringValue) {
				t.Errorf("%s has a list", device.Name)
			}
		}
	}
	if zones == 0 {
		t.Error("no zone beside PCI functions has a list")
	}
}

// What docs/zones.md says of selectors.
func TestSelectorsOfListsAndNumbers(t *testing.T) {
	const node = `device.attributes["resource.kubernetes.io"].numaNode`
	const read = `device.attributes["resource.kubernetes.io"].?numaNode.orValue(-1)`
	features := allocation.DefaultFeatures()
	features.ListTypeAttributes = true
	cache := allocation.NewCache(10, features)
	config := zonedBy(deviceclasses.ZoneByMachine)
	config.NUMANodeLists = true
	zones := Devices(testMachine(), config, nil) // of the NUMA nodes 0 and 1, and of 2
	for expression, want := range map[string]string{
		read + ` == 0`: "false false", read + ` == 2`: "false true", read + ` == [0, 1]`: "true false",
		`has(` + node + `) && ` + node + `.includes(1)`: "true false", `has(` + node + `) && ` + node + `.includes(2)`: "false true", read + ` < 3`: "error true",
	} {
		selector, err := cache.Compile(expression)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range zones {
			matches, _, err := selector.Matches(t.Context(), allocation.NewDevice(Name, &zones[i]))
			text := fmt.Sprint(matches)
			if err != nil {
				text = "error"
			}
			got = append(got, text)
		}
		if all := strings.Join(got, " "); all != want {
			t.Errorf("%s: %s, want %s", expression, all, want)
		}
	}
}

// The API counts each number of a list. A key has all of them or none.
func TestListsFitIntoADevice(t *testing.T) {
	keys := []resourceapi.QualifiedName{"a/numaNode", "b/numaNode", "c/numaNode", "d/numaNode"}
	for nodes, want := range map[int]int{2: 5, 8: 5, 9: 4, 10: 4, 11: 3, 21: 2, 22: 1, 42: 1, 43: 0, 64: 0} {
		config := Config{ZoneBy: deviceclasses.ZoneByMachine, Exclusivity: ExclusivityKernel, NUMANodeKeys: keys}
		config.NUMANodeLists = true
		device := Devices(machineOf(nodes), config, nil)[0]
		values, got := 0, 0
		for _, value := range device.Attributes {
			values += max(1, len(value.IntValues))
			if len(value.IntValues) == nodes {
				got++
			}
		}
		if got != want || HasList(device) != (want > 0) || values > resourceapi.ResourceSliceMaxAttributeValuesPerDevice {
			t.Errorf("%d NUMA nodes: %d keys with a list, %d values, want %d keys", nodes, got, values, want)
		}
	}
}

func TestASliceWithListsHoldsFewerDevices(t *testing.T) {
	devices := make([]resourceapi.Device, resourceapi.ResourceSliceMaxDevices)
	if got := len(Resources(node, devices).Pools[node].Slices); got != 1 {
		t.Errorf("%d slices without a list", got)
	}
	devices[100].Attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{deviceclasses.AttributeNUMANode: {IntValues: []int64{0, 1}}}
	if got := len(Resources(node, devices).Pools[node].Slices); got != 2 {
		t.Errorf("%d slices with a list", got)
	}
}

// The driver is open before the daemon can ask the API server.
func TestAnOpenDriverHasListsOnceItIsTold(t *testing.T) {
	config := zonedBy(deviceclasses.ZoneByMachine)
	d := newDisk(t).openWith(config)
	for _, want := range []bool{false, true, false} {
		d.SetGates(func(g *Gates) { g.NUMANodeLists = want })
		if got := HasList(d.Publish(nil, cpuset.Set{}).Devices[0]); got != want {
			t.Errorf("a list: %t, want %t", got, want)
		}
	}
}
