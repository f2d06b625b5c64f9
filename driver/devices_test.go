package driver

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

func TestDevicesGolden(t *testing.T) {
	config := testConfig()
	config.ReservedMemory = zones.Reservations{{Bytes: 100<<20 + 1}}
	got, err := yaml.Marshal(Devices(testMachine(), config, nil))
	if err != nil {
		t.Fatal(err)
	}
	files.Golden(t, "testdata/devices.yaml", string(got))
}

// The API server refuses a policy whose step is larger than the capacity. The scheduler
// gives out whole steps only.
func TestCapacitiesAreWholeSteps(t *testing.T) {
	config := testConfig()
	config.Reserved = cpuset.New(0, 4, 5, 6) // each zone has a core that is partly reserved
	config.Groups = []string{"kafka"}
	for _, device := range Devices(testMachine(), config, nil) {
		for name, capacity := range device.Capacity {
			step := capacity.RequestPolicy.ValidRange.Step.Value()
			if value := capacity.Value.Value(); value < step || value%step != 0 {
				t.Errorf("%s %s: %d in steps of %d", device.Name, name, value, step)
			}
		}
		_, hasCPU := device.Capacity[deviceclasses.CapacityCPU]
		if want := device.Name == "numa-0"; hasCPU != want {
			t.Errorf("%s has cpu capacity: %t, want %t", device.Name, hasCPU, want)
		}
		if group := device.Capacity["groupKafka"]; group.Value.Value() != 1 || group.RequestPolicy.Default.Value() != 0 {
			t.Errorf("%s has the capacity groupKafka %+v, want 1, and none by default", device.Name, group)
		}
	}
}

// The memory of a GPU is given out with the GPU. As a zone, it would be allocated to
// requests for ordinary memory.
func TestMemoryOfAGPUIsNoDevice(t *testing.T) {
	machine := testMachine()
	before := len(Devices(machine, testConfig(), nil))
	machine.Zones[2].Kind = numa.GPUZone
	if after := Devices(machine, testConfig(), nil); len(after) != before-1 || after[len(after)-1].Name != "numa-1" {
		t.Errorf("%d devices, then %d of which the last is %s; want one less, without numa-2", before, len(after), after[len(after)-1].Name)
	}
}

func TestResourcesFillWholeSlices(t *testing.T) {
	const most, mostTainted = resourceapi.ResourceSliceMaxDevices, resourceapi.ResourceSliceMaxDevicesWithAdvancedFeatures
	for _, row := range []struct {
		devices int
		tainted bool
		want    int
	}{
		{0, false, 1},
		{1, false, 1},
		{most, false, 1},
		{most + 1, false, 2},
		{1, true, 1},
		{mostTainted, true, 1},
		{mostTainted + 1, true, 2},
		{most + 1, true, 3},
	} {
		devices := make([]resourceapi.Device, row.devices)
		for i := range devices {
			devices[i].Name = fmt.Sprintf("numa-%d", i)
		}
		if row.tainted {
			devices[row.devices-1].Taints = []resourceapi.DeviceTaint{{Key: deviceclasses.TaintFault, Value: "x", Effect: resourceapi.DeviceTaintEffectNoSchedule}}
		}
		pool := Resources(node, devices).Pools[node]
		if len(pool.Slices) != row.want {
			t.Errorf("%d devices, tainted %t, are in %d slices, want %d", row.devices, row.tainted, len(pool.Slices), row.want)
		}
		var names []string
		for _, slice := range pool.Slices {
			for _, device := range slice.Devices {
				names = append(names, device.Name)
			}
		}
		if got := slices.Concat(names); len(got) != row.devices || row.devices > 0 && got[len(got)-1] != fmt.Sprintf("numa-%d", row.devices-1) {
			t.Errorf("slices have devices %v", got)
		}
	}
}

// A taint changes nothing else, so that claims find the same devices.
func TestFaultOfAZoneIsATaint(t *testing.T) {
	whole := Devices(testMachine(), testConfig(), nil)
	tainted := Devices(testMachine(), testConfig(), zones.Faults{1: deviceclasses.FaultPartitionInvalid, 7: deviceclasses.FaultGone})
	for i := range tainted {
		want := whole[i]
		if tainted[i].Name == "numa-1" {
			want.Taints = []resourceapi.DeviceTaint{{Key: "dra.numa/fault", Value: "partition-invalid", Effect: resourceapi.DeviceTaintEffectNoSchedule}}
		}
		if !reflect.DeepEqual(tainted[i], want) {
			t.Errorf("device %+v, want %+v", tainted[i], want)
		}
	}
}

func TestReserved(t *testing.T) {
	const kubelet = "kind: KubeletConfiguration\nreservedSystemCPUs: 2-3\n"
	for _, row := range []struct{ list, kubelet, want, problem string }{
		{list: "4-5", kubelet: kubelet, want: "4-5"},
		{kubelet: kubelet, want: "2-3"},
		{kubelet: "kind: KubeletConfiguration\n", want: "0-1"},
		{want: "0-1"},
		{list: "6-11", want: "6-11"}, // siblings that are off stay reserved
		{kubelet: "reservedSystemCPUs: 1,9\n", want: "1,9"},
		{list: "8-9", problem: `reserved CPUs "8-9": none of them is online: name at least one of CPUs 0-7`},
		{list: "6-12", problem: `reserved CPUs "6-12": the machine has no CPUs 12, allowed are 0-11`},
		{kubelet: "reservedSystemCPUs: \"64\"\n", problem: `kubelet configuration reservedSystemCPUs "64": the machine has no CPUs 64, allowed are 0-11`},
	} {
		machine := testMachine()
		machine.Present = machine.Online.Union(cpuset.New(8, 9, 10, 11))
		got, err := Reserved(machine, row.list, []byte(row.kubelet))
		if row.problem != "" {
			if err == nil || err.Error() != row.problem {
				t.Errorf("Reserved(%q, %q) error %v, want %s", row.list, row.kubelet, err, row.problem)
			}
			continue
		}
		if err != nil || got.String() != row.want {
			t.Errorf("Reserved(%q, %q) = %s, %v, want %s", row.list, row.kubelet, got, err, row.want)
		}
	}
	for _, nonsense := range []string{"a", "3-1", ",", " "} {
		if got, err := Reserved(testMachine(), nonsense, nil); err == nil {
			t.Errorf("Reserved(%q) = %s", nonsense, got)
		}
	}
	if _, err := Reserved(numa.Machine{}, "", nil); err == nil {
		t.Error("a machine without CPUs has a reserved core")
	}
}
