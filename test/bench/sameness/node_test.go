package sameness

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// gpu is an extended resource.
const gpu corev1.ResourceName = "example.com/gpu"

// gpuClass is the class of the same devices.
const (
	gpuClass  = "gpu.dra.numa"
	zoneClass = "zone.dra.numa"
)

// node is a machine of which the kubelet and this driver give parts to pods.
type node struct {
	name     string
	machine  numa.Machine
	threads  int        // of a core
	reserved cpuset.Set // CPUs that no pod gets
	zones    []zone     // by id
	pages    []uint64   // sizes of hugepages that each NUMA node has
	gpus     []int      // their NUMA nodes
	near     map[string]int
	slices   []*resourceapi.ResourceSlice
	driver   *driver.Driver
}

// zone is a NUMA node.
type zone struct {
	id       int
	device   string
	socket   int
	cpus     cpuset.Set        // that pods can have
	memory   uint64            // that pods can have, without hugepages
	withheld uint64            // memory that no pod can have
	pages    map[uint64]uint64 // bytes of hugepages by size
}

// usable reports whether the kubelet and the driver see the same in the machine: cores of one
// kind, and NUMA nodes that all have CPUs and memory. The Topology Manager takes
// eight of them, with ids below 64.
func usable(machine numa.Machine) bool {
	for i := range machine.Cores {
		if core := &machine.Cores[i]; core.CPUs.Size() != machine.Cores[0].CPUs.Size() || core.Socket == nil {
			return false
		}
	}
	return len(machine.Zones) > 1 && len(machine.Zones) <= 8 && !slices.ContainsFunc(machine.Zones, func(z numa.Zone) bool {
		return z.ID > 63 || z.CPUs.Size() < 2*machine.Cores[0].CPUs.Size() || z.MemoryBytes == nil || *z.MemoryBytes < 256<<20 || len(z.Sockets) != 1
	})
}

// newNode returns nil if the machine is not usable.
func newNode(t *testing.T, name string, root fs.FS) *node {
	t.Helper()
	machine, err := numa.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	if !usable(machine) {
		return nil
	}
	selection, err := attached.NewSelection(deviceclasses.DeviceSelection{Presets: []string{"gpu"}})
	if err != nil {
		t.Fatal(err)
	}
	n := &node{name: name, machine: machine, threads: machine.Cores[0].CPUs.Size(), reserved: machine.Cores[0].CPUs, near: map[string]int{}}
	config := driver.Config{NodeName: name, Exclusivity: driver.ExclusivityKernel, Reserved: n.reserved, ReservedMemory: zones.Reservations{{Bytes: 64 << 20}}, Attached: selection, Machine: root}
	if n.driver, err = driver.Open(machine, config, files.OpenTemp(t), files.OpenTemp(t)); err != nil {
		t.Fatal(err)
	}
	if _, err = n.driver.Recover(nil, nil); err != nil {
		t.Fatal(err)
	}
	devices := driver.Devices(machine, config, nil)
	n.publish(devices)
	for _, z := range driver.Zones(machine, config, cpuset.Set{}) {
		i := slices.IndexFunc(devices, func(d resourceapi.Device) bool { return d.Name == z.Device })
		n.addZone(z.Nodes[0], &devices[i], z.CPUs)
	}
	slices.SortFunc(n.zones, func(a, b zone) int { return cmp.Compare(a.id, b.id) })
	for size, bytes := range n.zones[0].pages {
		if bytes > 0 && !slices.ContainsFunc(n.zones, func(z zone) bool { return z.pages[size] == 0 }) {
			n.pages = append(n.pages, size)
		}
	}
	slices.Sort(n.pages)
	return n
}

func (n *node) publish(devices []resourceapi.Device) {
	list := driver.Resources(n.name, devices).Pools[n.name].Slices
	for i, slice := range list {
		n.slices = append(n.slices, &resourceapi.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", n.name, i)},
			Spec: resourceapi.ResourceSliceSpec{
				Driver: driver.Name, NodeName: &n.name, Devices: slice.Devices, SharedCounters: slice.SharedCounters,
				Pool: resourceapi.ResourcePool{Name: n.name, Generation: 1, ResourceSliceCount: int64(len(list))},
			},
		})
	}
	for i := range devices {
		if d := &devices[i]; ptr.Deref(deviceclasses.Attribute(d.Attributes, deviceclasses.AttributeKind).StringValue, "") == deviceclasses.KindGPU {
			id := int(ptr.Deref(d.Attributes[deviceclasses.AttributeNUMANode].IntValue, -1))
			n.near[d.Name], n.gpus = id, append(n.gpus, id)
		}
	}
}

// addZone gives the kubelet what the driver publishes of a NUMA node.
func (n *node) addZone(id int, published *resourceapi.Device, cpus cpuset.Set) {
	kernel, _ := n.machine.Zone(id)
	memory := published.Capacity[deviceclasses.CapacityMemory].Value
	z := zone{id: id, device: published.Name, socket: kernel.Sockets[0], cpus: cpus.Difference(n.reserved), memory: uint64(memory.Value()), pages: map[uint64]uint64{}}
	z.withheld = *kernel.MemoryBytes - z.memory
	for _, pool := range kernel.Hugepages {
		z.pages[pool.PageBytes] = pool.TotalPages * pool.PageBytes
		z.withheld -= pool.TotalPages * pool.PageBytes
	}
	n.zones = append(n.zones, z)
}

// held is what other pods have of a NUMA node.
type held struct {
	cpus   int // of whole cores
	memory uint64
}

// holder is the claim that has what other pods have; nil if they have nothing.
func (n *node) holder(list []held) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "held", UID: "held"}}
	allocation := &resourceapi.AllocationResult{}
	for i, h := range list {
		if h.cpus == 0 && h.memory == 0 {
			continue
		}
		name := fmt.Sprintf("r%d", i)
		amounts := map[resourceapi.QualifiedName]resource.Quantity{
			deviceclasses.CapacityCPU: *resource.NewQuantity(int64(h.cpus), resource.DecimalSI), deviceclasses.CapacityMemory: *resource.NewQuantity(int64(h.memory), resource.BinarySI),
		}
		claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, resourceapi.DeviceRequest{Name: name, Exactly: &resourceapi.ExactDeviceRequest{
			DeviceClassName: zoneClass, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1,
			Capacity: &resourceapi.CapacityRequirements{Requests: amounts},
		}})
		allocation.Devices.Results = append(allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
			Request: name, Driver: driver.Name, Pool: n.name, Device: n.zones[i].device, ShareID: ptr.To(types.UID(name)), ConsumedCapacity: amounts,
		})
	}
	if len(allocation.Devices.Results) == 0 {
		return nil
	}
	claim.Status.Allocation = allocation
	return claim
}

// nodesOf and socketsOf return where CPUs are.
func (n *node) nodesOf(cpus cpuset.Set) (nodes cpuset.Set) {
	for i := range n.machine.Cores {
		if core := &n.machine.Cores[i]; core.CPUs.Overlaps(cpus) {
			nodes.Insert(core.Zone)
		}
	}
	return nodes
}

func (n *node) socketsOf(nodes cpuset.Set) (sockets cpuset.Set) {
	for _, z := range n.zones {
		if nodes.Contains(z.id) {
			sockets.Insert(z.socket)
		}
	}
	return sockets
}

// whole reports whether the CPUs are whole cores.
func (n *node) whole(cpus cpuset.Set) bool {
	return !slices.ContainsFunc(n.machine.Cores, func(core numa.Core) bool { return core.CPUs.Overlaps(cpus) && !core.CPUs.IsSubsetOf(cpus) })
}
