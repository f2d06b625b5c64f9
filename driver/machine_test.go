package driver

import (
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
	"github.com/dra-driver-numa/dra-driver-numa/driver/binding"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/tuning"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/sysfs"
)

const node = "node-1"

// testMachine has two zones of 4 CPUs, in cores of 2 threads: (0,1) (2,3) … Zone 2 has
// memory only.
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
		Exclusivity: ExclusivityKernel, Hook: cdi.Hook{Path: "/plugins/dra.numa/bin/numa-pin", Dir: "/plugins/dra.numa/bin", LiftQuota: true},
	}
}

// disk is what survives a crash.
type disk struct {
	t            testing.TB
	machine      numa.Machine
	state, specs *os.Root

	// For a machine with PCI functions, all of which are published.
	root     string      // its files
	kernel   *sysfs.Host // replaces root if drivers can be bound
	selected attached.Selection
}

func newDisk(t testing.TB) disk {
	t.Helper()
	return diskIn(t, t.TempDir())
}

func diskIn(t testing.TB, dir string) disk {
	t.Helper()
	open := func() *os.Root {
		own, err := os.MkdirTemp(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		return files.Open(t, own)
	}
	return disk{t: t, machine: testMachine(), state: open(), specs: open()}
}

// tryRead returns a driver that has not recovered.
func (d disk) tryRead(config Config) (*Driver, error) {
	d.t.Helper()
	if d.root != "" {
		config.Machine, config.Attached = os.DirFS(d.root), d.selected
	}
	if d.kernel != nil {
		config.Machine, config.Attached = d.kernel, d.selected
		config.Drivers, config.ClaimsBind = binding.New(d.kernel, d.kernel.Write), true
	}
	return Open(d.machine, config, d.state, d.specs)
}

// tryOpen returns a driver that knows nothing but its files.
func (d disk) tryOpen(config Config) (*Driver, error) {
	d.t.Helper()
	driver, err := d.tryRead(config)
	if err != nil {
		return nil, err
	}
	_, err = driver.Recover(nil, nil)
	return driver, err
}

// recover returns a driver that has recovered with the answers of API server and
// kernel, and its report.
func (d disk) recover(claims map[types.UID]*resourceapi.ResourceClaim, held ...Held) (*Driver, Report) {
	d.t.Helper()
	driver, err := d.tryRead(testConfig())
	if err != nil {
		d.t.Fatal(err)
	}
	report, err := driver.Recover(claims, held)
	if err != nil {
		d.t.Fatal(err)
	}
	return driver, report
}

func (d disk) open() *Driver { d.t.Helper(); return d.openWith(testConfig()) }

// openAfterBoot is open after the machine was booted again.
func (d disk) openAfterBoot() *Driver {
	d.t.Helper()
	config := testConfig()
	config.BootID = "boot-2"
	return d.openWith(config)
}

func (d disk) openWith(config Config) *Driver {
	d.t.Helper()
	driver, err := d.tryOpen(config)
	if err != nil {
		d.t.Fatal(err)
	}
	return driver
}

// files returns the content of every file by name; "dir" for a directory.
func (d disk) files() map[string]string {
	d.t.Helper()
	all := make(map[string]string)
	for _, dir := range []*os.Root{d.state, d.specs} {
		entries, err := fs.ReadDir(dir.FS(), ".")
		if err != nil {
			d.t.Fatal(err)
		}
		for _, entry := range entries {
			if entry.IsDir() {
				all[entry.Name()] = "dir"
				continue
			}
			data, err := dir.ReadFile(entry.Name())
			if err != nil {
				d.t.Fatal(err)
			}
			all[entry.Name()] = string(data)
		}
	}
	return all
}

// write makes a file with this name in the directory where it belongs.
func (d disk) write(name, content string) {
	d.t.Helper()
	if err := d.dirOf(name).WriteFile(name, []byte(content), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

// remove removes a file, or a directory with everything in it.
func (d disk) remove(name string) {
	d.t.Helper()
	if err := d.dirOf(name).RemoveAll(name); err != nil {
		d.t.Fatal(err)
	}
}

func (d disk) dirOf(name string) *os.Root {
	if strings.HasPrefix(name, ledger.CheckpointName) || strings.HasPrefix(name, tuning.FirstName) {
		return d.state
	}
	return d.specs
}

func specName(uid types.UID) string { return "dra.numa-claim_" + string(uid) + ".json" }

// result is one allocation result of a claim.
func result(request, device string, cpus int64) resourceapi.DeviceRequestAllocationResult {
	return resourceapi.DeviceRequestAllocationResult{
		Request: request, Driver: Name, Pool: node, Device: device,
		ShareID: ptr.To(types.UID("share-" + request)),
		ConsumedCapacity: map[resourceapi.QualifiedName]resource.Quantity{
			deviceclasses.CapacityCPU: *resource.NewQuantity(cpus, resource.DecimalSI),
		},
	}
}

// consuming is the result with amounts of other capacities, such as memory=1Gi.
func consuming(result resourceapi.DeviceRequestAllocationResult, amounts ...string) resourceapi.DeviceRequestAllocationResult {
	for _, amount := range amounts {
		capacity, quantity, _ := strings.Cut(amount, "=")
		result.ConsumedCapacity[resourceapi.QualifiedName(capacity)] = resource.MustParse(quantity)
	}
	return result
}

// counted is the result with memory of the zone.
func counted(result resourceapi.DeviceRequestAllocationResult) resourceapi.DeviceRequestAllocationResult {
	return consuming(result, "memory=1Gi")
}

func claim(name string, results ...resourceapi.DeviceRequestAllocationResult) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name)},
		Status: resourceapi.ResourceClaimStatus{Allocation: &resourceapi.AllocationResult{
			Devices: resourceapi.DeviceAllocationResult{Results: results},
		}},
	}
}

// grantOf returns what the claim holds; an empty grant if it is not on record.
func grantOf(driver *Driver, uid types.UID) ledger.Grant {
	grant, _ := driver.grants.Find(uid)
	return grant
}

func withoutNodes(g ledger.Grant) ledger.Grant {
	g.Shares = slices.Clone(g.Shares)
	for i := range g.Shares {
		if f := g.Shares[i].Function(); f != nil {
			next := *f
			next.Nodes, next.Former, next.Lost = nil, nil, false
			g.Shares[i].Kind = &next
		}
	}
	return g
}
