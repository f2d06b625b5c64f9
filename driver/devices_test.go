package driver

import (
	"bytes"
	"flag"
	"os"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestDevicesGolden(t *testing.T) {
	config := testConfig()
	config.ReservedMemoryBytes = 100<<20 + 1
	got, err := yaml.Marshal(Devices(testMachine(), config))
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/devices.yaml"
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("devices\n%s\nwant\n%s", got, want)
	}
}

// The API server refuses a policy whose step is above the capacity, and the
// scheduler hands out whole steps only.
func TestCapacitiesAreWholeSteps(t *testing.T) {
	config := testConfig()
	config.Reserved = cpuset.New(0, 4, 5, 6) // a core broken in each zone
	for _, device := range Devices(testMachine(), config) {
		for name, capacity := range device.Capacity {
			step := capacity.RequestPolicy.ValidRange.Step.Value()
			if value := capacity.Value.Value(); value < step || value%step != 0 {
				t.Errorf("%s %s: %d in steps of %d", device.Name, name, value, step)
			}
		}
		_, hasCPU := device.Capacity[capacityCPU]
		if want := device.Name == "numa-0"; hasCPU != want {
			t.Errorf("%s has cpu capacity: %t, want %t", device.Name, hasCPU, want)
		}
	}
}

// Memory of a GPU is given out with the GPU; as a zone it would take ordinary
// memory requests.
func TestMemoryOfAGPUIsNoDevice(t *testing.T) {
	machine := testMachine()
	before := len(Devices(machine, testConfig()))
	machine.Zones[2].Kind = numa.GPUZone
	if after := Devices(machine, testConfig()); len(after) != before-1 || after[len(after)-1].Name != "numa-1" {
		t.Errorf("%d devices, then %d of which the last is %s; want one less, without numa-2", before, len(after), after[len(after)-1].Name)
	}
}

func TestResourcesFillWholeSlices(t *testing.T) {
	for devices, want := range map[int]int{0: 1, 1: 1, resourceapi.ResourceSliceMaxDevices: 1, resourceapi.ResourceSliceMaxDevices + 1: 2} {
		pool := Resources(node, make([]resourceapi.Device, devices)).Pools[node]
		if len(pool.Slices) != want {
			t.Errorf("%d devices are in %d slices, want %d", devices, len(pool.Slices), want)
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
		{list: "6-9", problem: `reserved CPUs "6-9": 8-9 not online, allowed are 0-7`},
		{kubelet: "reservedSystemCPUs: \"64\"\n", problem: `kubelet configuration reservedSystemCPUs "64": 64 not online, allowed are 0-7`},
	} {
		got, err := Reserved(testMachine(), row.list, []byte(row.kubelet))
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
