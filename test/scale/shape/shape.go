// Package shape has the ways in which the same machine can be published, and the claims
// that ask each for the same CPUs. It computes objects, and talks to no API server.
package shape

import (
	"fmt"
	"maps"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
)

// What each pod asks for, in whichever shape, unless the shape has other CPUs.
const (
	PodCPUs   = 4
	PodMemory = "1Gi"
)

// The names of the shapes that others are compared with.
const (
	Plain    = "plain pods"
	Cheapest = "cheapest claim"
	Selected = "cheapest claim, selected"
	Ours     = "this driver"
	GPU      = "a GPU"
	Beside   = "a GPU beside this driver"
	Split    = "CPUs and memory apart"
	PerCPU   = "one device per CPU"
)

// Shape is one way to publish a machine.
type Shape struct {
	Name    string
	Means   string // what its devices and claims are, in one sentence
	Drivers []Driver
	Classes []resourceapi.DeviceClass
	Claim   *resourceapi.DeviceClaim // of each pod; nil: pods have only requests
	TooMuch *resourceapi.DeviceClaim // a claim like it that no NUMA node can satisfy; nil: there is none
	Variant bool                     // this driver, with fewer attributes
	OneSize bool                     // runs with one number of nodes only
	CPUs    int                      // that each pod asks for, instead of PodCPUs; 0: there are none
}

// Driver is one of the drivers of a shape, with its devices of every node.
type Driver struct {
	Name    string
	Devices []resourceapi.Device
}

// Machine is that of every node: 64 CPUs and 128 GiB in 4 NUMA nodes, 16 pods in all.
func Machine() (numa.Machine, error) { return MachineWithout("") }

// MachineWithout is that machine while some CPUs are offline: a list as the kernel writes
// it.
func MachineWithout(cpus string) (numa.Machine, error) {
	return numa.Read(fake.Machine{
		Make: fake.AMD, Sockets: 2, ZonesPerSocket: 2, L3sPerSocket: 4, CoresPerSocket: 16, Threads: 2, MemoryBytes: 32 << 30, Offline: cpus,
	}.FS())
}

// All returns the shapes of the machine in the order in which they run.
func All(m numa.Machine) ([]Shape, error) {
	ours, err := driversOwn(m)
	if err != nil {
		return nil, err
	}
	gpus := GPUs("gpu.scale.test")
	return []Shape{
		{Name: Plain, Means: "The pods have no claims. The machine is not published."},
		cheapest(m),
		selected(m),
		ours,
		split(m),
		perCPU(m),
		gpus,
		beside(gpus, ours),
	}, nil
}

// WithCPUs is the driver's own shape with pods that ask for so many CPUs.
func WithCPUs(m numa.Machine, cpus int) (Shape, error) {
	s, err := driversOwn(m)
	s.CPUs, s.Claim = cpus, claim(nil, request(ZoneClass, capacity{cpu: cpus, memory: PodMemory}))
	return s, err
}

// WithAttributes returns the driver's own shape with only the first attributes of each
// zone, in the order of deviceclasses.ZoneAttributes. The first is the kind, which its class selects.
func WithAttributes(m numa.Machine, count int) (Shape, error) {
	s, err := driversOwn(m)
	if err != nil {
		return Shape{}, err
	}
	s.Name, s.Variant = AttributesName(count), true
	s.Means = fmt.Sprintf("As this driver, but with only so many attributes of a zone: the first %d.", count)
	for _, device := range s.Drivers[0].Devices {
		left := count
		for _, attribute := range deviceclasses.ZoneAttributes() {
			if _, ok := device.Attributes[attribute.Name]; ok && left > 0 {
				left--
			} else {
				delete(device.Attributes, attribute.Name)
			}
		}
	}
	return s, nil
}

// WithGroups is the shape on nodes whose NodeConfig has so many groups.
func (s Shape) WithGroups(count int) Shape {
	s.Drivers = slices.Clone(s.Drivers)
	s.Drivers[0].Devices = slices.Clone(s.Drivers[0].Devices)
	for i := range s.Drivers[0].Devices {
		zone := &s.Drivers[0].Devices[i]
		zone.Capacity = maps.Clone(zone.Capacity)
		for group := range count {
			zone.Capacity[deviceclasses.GroupCapacity(fmt.Sprintf("g%d", group))] = resourceapi.DeviceCapacity{
				Value: *resource.NewQuantity(1, resource.DecimalSI), RequestPolicy: zone.Capacity[deviceclasses.CapacityCPU].RequestPolicy,
			}
		}
	}
	return s
}

// AttributesName is the name of the shape that WithAttributes returns.
func AttributesName(count int) string { return fmt.Sprintf("this driver, attributes: %d", count) }

// AttributeCount is how many attributes a zone of the shape has.
func (s Shape) AttributeCount() int { return len(s.Drivers[0].Devices[0].Attributes) }

// driversOwn is what this driver publishes of the machine.
func driversOwn(m numa.Machine) (Shape, error) {
	classes, err := classesNamed(ZoneClass)
	if err != nil {
		return Shape{}, err
	}
	return Shape{
		Name:    Ours,
		Means:   "One device per NUMA node, with CPUs and memory as capacities, as this driver publishes it.",
		Drivers: []Driver{{driver.Name, driver.Devices(m, driver.Config{Exclusivity: driver.ExclusivityKernel}, nil)}},
		Classes: classes,
		Claim:   claim(nil, request(ZoneClass, capacity{cpu: PodCPUs, memory: PodMemory})),
		TooMuch: claim(nil, request(ZoneClass, capacity{cpu: zoneCPUs(m) + PodCPUs, memory: PodMemory})),
	}, nil
}

// classesNamed returns DeviceClasses of the chart.
func classesNamed(names ...string) ([]resourceapi.DeviceClass, error) {
	classes, err := deviceclasses.All()
	return slices.DeleteFunc(classes, func(c resourceapi.DeviceClass) bool { return !slices.Contains(names, c.Name) }), err
}

// ZoneClass is the DeviceClass of zones.
const ZoneClass = "zone.dra.numa"

// cheapest has as many devices as pods fit on the node. They have nothing that could be
// evaluated, and neither has their class.
func cheapest(m numa.Machine) Shape {
	const name = "cheapest.scale.test"
	var devices []resourceapi.Device
	for i := range m.Online.Size() / PodCPUs {
		devices = append(devices, resourceapi.Device{Name: fmt.Sprintf("device-%d", i)})
	}
	return Shape{
		Name:    Cheapest,
		Means:   "A claim of one exclusive device without attributes or capacities, of a class without selectors: what any claim costs at least.",
		Drivers: []Driver{{name, devices}},
		Classes: []resourceapi.DeviceClass{{ObjectMeta: metav1.ObjectMeta{Name: name}}},
		Claim:   claim(nil, request(name, capacity{})),
	}
}

// selected is what the cheapest claim of a class costs that does not take devices of all
// drivers.
func selected(m numa.Machine) Shape {
	s := cheapest(m)
	s.Name = Selected
	s.Means = "The same, but the class selects the devices of its driver, as classes of drivers do."
	s.Classes = []resourceapi.DeviceClass{classOf(s.Drivers[0].Name)}
	return s
}

const numaNode = deviceclasses.AttributeNUMANode

// split is a driver of CPUs and one of memory. Their devices have no other attribute than
// that of the constraint, which is less than such drivers have.
func split(m numa.Machine) Shape {
	const cpus, memory = "cpu.scale.test", "memory.scale.test"
	s := Shape{
		Name: Split,
		Means: "A driver of CPUs and a driver of memory have one device per NUMA node each. A claim has two requests, and " +
			"`matchAttribute` for the NUMA node. The NUMA node is their only attribute.",
		Drivers: []Driver{{Name: cpus}, {Name: memory}},
		Classes: []resourceapi.DeviceClass{classOf(cpus), classOf(memory)},
		Claim:   claim(ptr.To(numaNode), request(cpus, capacity{cpu: PodCPUs}), request(memory, capacity{memory: PodMemory})),
		TooMuch: claim(ptr.To(numaNode), request(cpus, capacity{cpu: zoneCPUs(m) + PodCPUs}), request(memory, capacity{memory: PodMemory})),
	}
	for _, zone := range m.Zones {
		s.Drivers[0].Devices = append(s.Drivers[0].Devices, shared(zone.ID, "cpu", *resource.NewQuantity(int64(zone.CPUs.Size()), resource.DecimalSI)))
		s.Drivers[1].Devices = append(s.Drivers[1].Devices, shared(zone.ID, "memory", *resource.NewQuantity(int64(*zone.MemoryBytes), resource.BinarySI)))
	}
	return s
}

// perCPU has no other attribute than that of the constraint either.
func perCPU(m numa.Machine) Shape {
	const name = "percpu.scale.test"
	some, tooMany := request(name, capacity{}), request(name, capacity{})
	some.Exactly.Count, tooMany.Exactly.Count = PodCPUs, int64(zoneCPUs(m)+PodCPUs)
	s := Shape{
		Name:    PerCPU,
		Means:   fmt.Sprintf("Each CPU is a device. A claim is of %d devices, and has `matchAttribute` for the NUMA node, their only attribute.", PodCPUs),
		Drivers: []Driver{{Name: name}},
		Classes: []resourceapi.DeviceClass{classOf(name)},
		Claim:   claim(ptr.To(numaNode), some),
		TooMuch: claim(ptr.To(numaNode), tooMany),
	}
	for _, zone := range m.Zones {
		for id := range zone.CPUs.All() {
			s.Drivers[0].Devices = append(s.Drivers[0].Devices, resourceapi.Device{Name: fmt.Sprintf("cpu-%d", id), Attributes: onZone(zone.ID)})
		}
	}
	return s
}

// zoneCPUs is how many CPUs each NUMA node has.
func zoneCPUs(m numa.Machine) int { return m.Zones[0].CPUs.Size() }

// shared is a device of a NUMA node with one capacity that claims share.
func shared(zone int, name resourceapi.QualifiedName, amount resource.Quantity) resourceapi.Device {
	return resourceapi.Device{
		Name: fmt.Sprintf("numa-%d", zone), AllowMultipleAllocations: ptr.To(true), Attributes: onZone(zone),
		Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{name: {Value: amount}},
	}
}

func onZone(id int) map[resourceapi.QualifiedName]resourceapi.DeviceAttribute {
	return map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{numaNode: {IntValue: ptr.To(int64(id))}}
}

// classOf selects all devices of the driver with this name, and has the same name.
func classOf(driver string) resourceapi.DeviceClass {
	return resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: resourceapi.DeviceClassSpec{
		Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)}}},
	}}
}

// capacity is what a request asks of a shared device; what is zero is not asked.
type capacity struct {
	cpu    int
	memory string
}

func request(class string, c capacity) resourceapi.DeviceRequest {
	exactly := &resourceapi.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1}
	wanted := map[resourceapi.QualifiedName]resource.Quantity{}
	if c.cpu > 0 {
		wanted["cpu"] = *resource.NewQuantity(int64(c.cpu), resource.DecimalSI)
	}
	if c.memory != "" {
		wanted["memory"] = resource.MustParse(c.memory)
	}
	if len(wanted) > 0 {
		exactly.Capacity = &resourceapi.CapacityRequirements{Requests: wanted}
	}
	return resourceapi.DeviceRequest{Exactly: exactly}
}

// claim names the requests. If match is not nil, their devices have the same value of it.
func claim(match *resourceapi.QualifiedName, requests ...resourceapi.DeviceRequest) *resourceapi.DeviceClaim {
	c := &resourceapi.DeviceClaim{Requests: requests}
	for i := range c.Requests {
		c.Requests[i].Name = fmt.Sprintf("request-%d", i)
	}
	if match != nil {
		c.Constraints = []resourceapi.DeviceConstraint{{MatchAttribute: ptr.To(deviceclasses.FullName(*match))}}
	}
	return c
}
