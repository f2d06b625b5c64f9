package driver

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// withAttached returns a configuration that publishes the devices that the expressions
// include.
func withAttached(t testing.TB, include ...string) Config {
	t.Helper()
	selection, err := attached.NewSelection(deviceclasses.DeviceSelection{Include: include})
	if err != nil {
		t.Fatal(err)
	}
	return Config{NodeName: node, Exclusivity: ExclusivityKernel, Attached: selection}
}

func byFullName(a, b resourceapi.QualifiedName) int {
	return cmp.Compare(deviceclasses.FullName(a), deviceclasses.FullName(b))
}

// drawPool draws a pool in a few lines: the slices, and in them devices with
// attributes, capacities and counters.
func drawPool(config Config, machine numa.Machine) string {
	var out bytes.Buffer
	for i, slice := range Resources(node, Devices(machine, config, nil)).Pools[node].Slices {
		fmt.Fprintf(&out, "slice %d\n", i)
		for _, device := range slice.Devices {
			fmt.Fprintf(&out, "  %s\n", device.Name)
			var words []string
			for _, name := range slices.SortedFunc(maps.Keys(device.Attributes), byFullName) {
				words = append(words, string(name)+"="+drawValue(device.Attributes[name]))
			}
			for _, name := range slices.Sorted(maps.Keys(device.Capacity)) {
				value := device.Capacity[name].Value
				words = append(words, fmt.Sprintf("capacity %s=%s", name, value.String()))
			}
			for _, consumed := range device.ConsumesCounters {
				words = append(words, "consumes "+drawCounters(consumed.CounterSet, consumed.Counters))
			}
			fmt.Fprint(&out, wrap(words))
		}
		for _, set := range slice.SharedCounters {
			fmt.Fprintf(&out, "  counters %s\n", drawCounters(set.Name, set.Counters))
		}
	}
	return out.String()
}

// wrap puts the words into lines of at most 120 columns, if no word is longer.
func wrap(words []string) string {
	var out strings.Builder
	line := "   "
	for _, word := range words {
		if len(line)+len("; ")+len(word) > 120 {
			fmt.Fprintln(&out, line)
			line = "   "
		}
		line += " " + word + ";"
	}
	fmt.Fprintln(&out, strings.TrimSuffix(line, ";"))
	return out.String()
}

func drawValue(value resourceapi.DeviceAttribute) string {
	switch {
	case value.IntValue != nil:
		return fmt.Sprint(*value.IntValue)
	case value.BoolValue != nil:
		return fmt.Sprint(*value.BoolValue)
	}
	return fmt.Sprintf("%q", *value.StringValue)
}

func drawCounters(set string, counters map[string]resourceapi.Counter) string {
	for _, name := range slices.Sorted(maps.Keys(counters)) {
		value := counters[name].Value
		set += fmt.Sprintf(" %s=%s", name, value.String())
	}
	return set
}

func goldenPool(t *testing.T, name, got string) {
	t.Helper()
	files.Golden(t, "testdata/attached/"+name+".txt", got)
}

// For each kind of machine, this publishes what an operator would select, not every
// device.
func TestAttachedDevicesGolden(t *testing.T) {
	const ours = `device.attributes["dra.numa"]`
	for name, include := range map[string]string{
		"dgx-h100":      ours + `.kind in ["gpu", "nic"] || device.attributes["resource.kubernetes.io"].pciBusID == "0000:1a:00.0"`,
		"epyc-mi300x":   ours + `.kind in ["gpu", "nvme"]`,
		"epyc-2s-nps4":  ours + `.kind != "pci"`,
		"grace-hopper":  "true",
		"cxl-expander":  "true",
		"hybrid-laptop": "true",
	} {
		t.Run(name, func(t *testing.T) { goldenPool(t, name, drawPool(withAttached(t, include), sample.Machine(t, name))) })
	}
}

// Other projects recorded these machines; their archives are not in this repository.
func TestAttachedDevicesOfRecordedMachinesGolden(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: make unit runs it without the race detector")
	}
	wanted := map[string]bool{
		"fakepcilocalities": true, "2pa-pcidomain32bits": true, "32em64t-2n8c+dax+nvme+mic+dimms": true, "40intel64-2g2n4c+pcilocality": true,
	}
	for _, recorded := range files.RecordedMachines(t) {
		if !wanted[recorded.Name] {
			continue
		}
		delete(wanted, recorded.Name)
		t.Run(recorded.Name, func(t *testing.T) {
			pool := drawPool(withAttached(t, `device.attributes["dra.numa"].kind != "pci"`), sample.Recorded(t, recorded))
			goldenPool(t, recorded.Name, pool)
		})
	}
	if len(wanted) > 0 {
		t.Errorf("no archives %v", slices.Sorted(maps.Keys(wanted)))
	}
}

// A slice has counters or devices. It has fewer devices if some consume counters.
func TestSlicesWithCountersAreWhatTheAPITakes(t *testing.T) {
	for _, preset := range fake.Presets() {
		machine := sample.Machine(t, preset.Name)
		// Many cards, each of which has a virtual function.
		for i := range 40 {
			physical, virtual := fmt.Sprintf("0100:%02x:00.0", i), fmt.Sprintf("0100:%02x:00.1", i)
			card := numa.PCIFunction{
				Address: physical, Kind: numa.NICFunction, Class: new(uint32(0x020000)), Vendor: new(uint16(0x8086)), Device: new(uint16(0x1572)),
				VirtFns: []string{virtual},
			}
			machine.PCI = append(machine.PCI, card)
			card.Address, card.PhysFn, card.VirtFns = virtual, physical, nil
			machine.PCI = append(machine.PCI, card)
		}
		sets, consumed := map[string]bool{}, map[string]bool{}
		for i, slice := range Resources(node, Devices(machine, withAttached(t, "true"), nil)).Pools[node].Slices {
			if len(slice.Devices) > resourceapi.ResourceSliceMaxDevicesWithAdvancedFeatures || len(slice.SharedCounters) > resourceapi.ResourceSliceMaxCounterSets ||
				len(slice.Devices) > 0 == (len(slice.SharedCounters) > 0) {
				t.Errorf("%s: slice %d has %d devices and %d counter sets", preset.Name, i, len(slice.Devices), len(slice.SharedCounters))
			}
			for _, set := range slice.SharedCounters {
				sets[set.Name] = true
			}
			for _, device := range slice.Devices {
				for _, counters := range device.ConsumesCounters {
					consumed[counters.CounterSet] = true
				}
			}
		}
		if !maps.Equal(sets, consumed) || len(sets) < 40 {
			t.Errorf("%s: there are counter sets %v, consumed are %v", preset.Name, sets, consumed)
		}
	}
}

// The next claim for a GPU needs the CPUs that are near it.
func TestZonesWithoutAttachedDevicesComeFirst(t *testing.T) {
	machine := sample.Machine(t, "epyc-2s-nps4") // GPUs are on zones 0, 2 and 7
	var zones []string
	for _, device := range Devices(machine, withAttached(t, `device.attributes["dra.numa"].kind == "gpu"`), nil) {
		if zone, isZone := strings.CutPrefix(device.Name, "numa-"); isZone {
			zones = append(zones, zone)
		}
	}
	if got := strings.Join(zones, " "); got != "1 3 4 5 6 0 2 7" {
		t.Errorf("zones are tried in the order %s", got)
	}
}
