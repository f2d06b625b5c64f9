package driver

import (
	"os"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

const node = "node-1"

// testMachine has two zones of 4 CPUs in cores of 2 threads, (0,1) (2,3) …, and
// zone 2 of memory only.
func testMachine() numa.Machine {
	machine := numa.Machine{Online: cpuset.New(0, 1, 2, 3, 4, 5, 6, 7)}
	for zone := range 2 {
		l3 := zone
		var cpus cpuset.Set
		for id := range 2 {
			first := 4*zone + 2*id
			siblings := cpuset.New(first, first+1)
			cpus = cpus.Union(siblings)
			machine.Cores = append(machine.Cores, numa.Core{Socket: new(zone), ID: new(id), Zone: zone, L3: &l3, CPUs: siblings})
		}
		machine.L3s = append(machine.L3s, numa.Cache{ID: l3, CPUs: cpus})
		machine.Zones = append(machine.Zones, numa.Zone{
			ID: zone, CPUs: cpus, Sockets: []int{zone},
			MemoryBytes: new(uint64(1 << 30)), Watermarks: &numa.Watermarks{HighBytes: 5 << 20}, CoreType: numa.StandardCores,
			Hugepages: []numa.Hugepages{{PageBytes: 2 << 20, TotalPages: 8}, {PageBytes: 1 << 30}},
		})
	}
	machine.Zones = append(machine.Zones, numa.Zone{ID: 2, MemoryBytes: new(uint64(1 << 30)), MemoryTier: ptr.To(22)})
	return machine
}

func testConfig() Config {
	return Config{
		NodeName: node, BootID: "boot-1", Reserved: cpuset.New(0, 1),
		Exclusivity: ExclusivityKernel, HookPath: "/plugins/dra.numa/bin/numa-pin",
	}
}

// disk is what survives a crash.
type disk struct {
	t            *testing.T
	state, specs string
}

func newDisk(t *testing.T) disk {
	t.Helper()
	return disk{t: t, state: t.TempDir(), specs: t.TempDir()}
}

func (d disk) root(path string) *os.Root {
	d.t.Helper()
	root, err := os.OpenRoot(path)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = root.Close() })
	return root
}

func (d disk) tryOpen(config Config) (*Driver, error) {
	d.t.Helper()
	return Open(testMachine(), config, d.root(d.state), d.root(d.specs))
}

func (d disk) open() *Driver {
	d.t.Helper()
	driver, err := d.tryOpen(testConfig())
	if err != nil {
		d.t.Fatal(err)
	}
	return driver
}

// files is every file and its content, by path.
func (d disk) files() map[string]string {
	d.t.Helper()
	all := make(map[string]string)
	for _, dir := range []string{d.state, d.specs} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			d.t.Fatal(err)
		}
		for _, entry := range entries {
			data, err := d.root(dir).ReadFile(entry.Name())
			if err != nil {
				d.t.Fatal(err)
			}
			all[entry.Name()] = string(data)
		}
	}
	return all
}

// result is one allocation result of a claim.
func result(request, device string, cpus int64) resourceapi.DeviceRequestAllocationResult {
	return resourceapi.DeviceRequestAllocationResult{
		Request: request, Driver: Name, Pool: node, Device: device,
		ShareID: ptr.To(types.UID("share-" + request)),
		ConsumedCapacity: map[resourceapi.QualifiedName]resource.Quantity{
			capacityCPU: *resource.NewQuantity(cpus, resource.DecimalSI),
		},
	}
}

func claim(name string, results ...resourceapi.DeviceRequestAllocationResult) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name)},
		Status: resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{
			Devices: resourceapi.DeviceAllocationResult{Results: results},
		}},
	}
}
