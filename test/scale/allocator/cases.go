package main

import (
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/shape"
)

// Case is a claim that the allocator allocates again and again on a node.
// test/upstream/testdata/cases_test.go reads it as JSON.
type Case struct {
	Name      string
	Title     string // in the tables
	Slices    []*resourceapi.ResourceSlice
	Classes   []resourceapi.DeviceClass
	Held      []shape.Held
	Elsewhere int // shares of zones that are allocated on other nodes
	Claim     *resourceapi.DeviceClaim
	Want      string // the last device that the claim gets; "": none
}

// The cases that goals name.
const (
	gpu             = "gpu"
	ours            = "ours"
	gpuFilled       = "gpu-75"
	oursFilled      = "ours-75"
	oursFew         = "ours-5000"
	oursMany        = "ours-50000"
	besideZones     = "gpu-beside-zones"
	besideFunctions = "gpu-beside-functions"
	besidePerCPU    = "gpu-beside-per-cpu"
)

// The allocator tries the devices of a driver before those of drivers whose names sort after
// its own.
const (
	gpusFirst = "a.gpu.test"
	gpusLast  = "z.gpu.test"
	node      = "node" // of testdata
	functions = 8
)

// builder makes the cases of one machine.
type builder struct {
	machine numa.Machine
	shapes  map[string]shape.Shape
	cases   []Case
}

// allCases returns the cases in the order in which they run.
func allCases() ([]Case, error) {
	b := builder{shapes: map[string]shape.Shape{}}
	var err error
	if b.machine, err = shape.Machine(); err != nil {
		return nil, err
	}
	all, err := shape.All(b.machine)
	if err != nil {
		return nil, err
	}
	mixes, err := shape.Mixes()
	if err != nil {
		return nil, err
	}
	for _, s := range slices.Concat(all, mixes) {
		b.shapes[s.Name] = s
	}
	cards, err := withFunctions()
	if err != nil {
		return nil, err
	}
	b.addShapes()
	b.addFilled()
	b.addElsewhere()
	b.addBeside(cards)
	return b.cases, nil
}

// add appends a case of a shape, and returns it for what differs.
func (b *builder) add(name, title, shapeName, want string) *Case {
	s := b.shapes[shapeName]
	b.cases = append(b.cases, Case{Name: name, Title: title, Slices: s.Slices(node), Classes: s.Classes, Claim: s.Claim, Want: want})
	return &b.cases[len(b.cases)-1]
}

// addGPU appends a case of a claim of a GPU beside what other drivers publish.
func (b *builder) addGPU(name, title, gpuDriver string, beside []*resourceapi.ResourceSlice, want string) *Case {
	gpus := shape.GPUs(gpuDriver)
	b.cases = append(b.cases, Case{Name: name, Title: title, Slices: slices.Concat(beside, gpus.Slices(node)), Classes: gpus.Classes, Claim: gpus.Claim, Want: want})
	return &b.cases[len(b.cases)-1]
}

func (b *builder) addShapes() {
	b.addGPU(gpu, "a GPU", gpusLast, nil, "gpu-0")
	b.add(ours, "**this driver**: CPUs and memory of a zone", shape.Ours, "numa-0")
	for groups := 1; groups <= deviceclasses.MaxGroups; groups += deviceclasses.MaxGroups - 1 {
		grouped := b.add(fmt.Sprintf("groups-%d", groups), fmt.Sprintf("this driver, nodes with groups: %d", groups), shape.Ours, "numa-0")
		grouped.Slices = b.shapes[shape.Ours].WithGroups(groups).Slices(node)
	}
	b.add("cheapest", shape.Cheapest, shape.Cheapest, "device-0")
	b.add("cheapest-selected", shape.Selected, shape.Selected, "device-0")
	b.add("split", shape.Split, shape.Split, "numa-0")
	b.add("per-cpu", shape.PerCPU, shape.PerCPU, b.cpu(0, shape.PodCPUs-1))
	b.add("second-alternative", "this driver, the second alternative", shape.MixFirst, "numa-0")
	b.add("cache-ways", "this driver, CPUs and cache ways", shape.MixCache, "cache-0-guaranteed")
	b.add("gpu-and-nic", "this driver, CPUs, a GPU and a NIC", shape.MixNearby, "nic-0000-19-00-0")
}

// cpu is the name of a device of the shape with one device per CPU.
func (b *builder) cpu(zone, index int) string {
	var ids []int
	for id := range b.machine.Zones[zone].CPUs.All() {
		ids = append(ids, id)
	}
	return fmt.Sprintf("cpu-%d", ids[index])
}

// addFilled appends nodes three of whose four NUMA nodes are full, and full ones.
func (b *builder) addFilled() {
	gpus := shape.GPUs(gpusLast)
	b.addGPU(gpuFilled, "a GPU, 75 % full", gpusLast, nil, "gpu-6").Held = b.held(gpus, 3)
	filled := b.add(oursFilled, "**this driver**, 75 % full, full zones last", shape.Ours, "numa-3")
	filled.Held, filled.Slices = b.held(b.shapes[shape.Ours], 3), b.shapes[shape.Ours].Filled(&b.machine, 3).Slices(node)
	for _, c := range []struct{ name, title, shape, want string }{
		{"ours-75-first", "this driver, 75 % full, full zones first", shape.Ours, "numa-3"},
		{"split-75", shape.Split + ", 75 % full", shape.Split, "numa-3"},
		{"per-cpu-75", shape.PerCPU + ", 75 % full", shape.PerCPU, b.cpu(3, shape.PodCPUs-1)},
	} {
		b.add(c.name, c.title, c.shape, c.want).Held = b.held(b.shapes[c.shape], 3)
	}
	b.addGPU("gpu-full", "a GPU, full: the node is refused", gpusLast, nil, "").Held = b.held(gpus, 4)
	b.add("ours-full", "this driver, full: the node is refused", shape.Ours, "").Held = b.held(b.shapes[shape.Ours], 4)
}

// held are claims of all CPUs of the first NUMA nodes.
func (b *builder) held(s shape.Shape, zones int) (list []shape.Held) {
	for zone := range zones {
		list = append(list, s.Holds(b.machine, zone, 0)...)
	}
	return list
}

func (b *builder) addElsewhere() {
	for _, c := range []struct {
		name   string
		shares int
	}{{oursFew, 5_000}, {oursMany, 50_000}} {
		b.add(c.name, fmt.Sprintf("**this driver**, %s shares elsewhere", thousands(c.shares)), shape.Ours, "numa-0").Elsewhere = c.shares
		b.addGPU(fmt.Sprintf("gpu-%d", c.shares), fmt.Sprintf("a GPU, %s shares elsewhere", thousands(c.shares)), gpusLast, nil, "gpu-0").Elsewhere = c.shares
	}
}

func thousands(n int) string { return fmt.Sprintf("%d,%03d", n/1000, n%1000) }

// addBeside appends what drivers on the same node cost each other.
func (b *builder) addBeside(cards shape.Shape) {
	for _, other := range []struct {
		name, first, title string
		slices             []*resourceapi.ResourceSlice
	}{
		{besideZones, "gpu-before-zones", "**4 zones of this driver**", b.shapes[shape.Ours].Slices(node)},
		{besideFunctions, "gpu-before-functions", fmt.Sprintf("**4 zones and %d functions of this driver**", functions), cards.Slices(node)},
		{besidePerCPU, "gpu-before-per-cpu", "64 CPUs, a device each", b.shapes[shape.PerCPU].Slices(node)},
	} {
		b.addGPU(other.name, "a GPU after "+other.title, gpusLast, other.slices, "gpu-0")
		b.addGPU(other.first, "a GPU before "+other.title, gpusFirst, other.slices, "gpu-0")
	}
	for _, both := range []struct {
		name, title string
		other       shape.Shape
	}{
		{"ours-before-gpus", "this driver before 8 GPUs", shape.GPUs(gpusLast)},
		{"ours-after-gpus", "this driver after 8 GPUs", shape.GPUs(gpusFirst)},
		{"ours-before-per-cpu", "this driver before 64 CPUs, a device each", b.shapes[shape.PerCPU]},
	} {
		c := b.add(both.name, both.title, shape.Ours, "numa-0")
		c.Slices = slices.Concat(c.Slices, both.other.Slices(node))
	}
}

// withFunctions is this driver on a machine with NICs, two for each NUMA node.
func withFunctions() (shape.Shape, error) {
	m := fake.Machine{
		Make: fake.AMD, Sockets: 2, ZonesPerSocket: 2, L3sPerSocket: 4, CoresPerSocket: 16, Threads: 2, MemoryBytes: 32 << 30,
	}
	for i := range functions {
		m.PCI = append(m.PCI, fake.ConnectX(fmt.Sprintf("0000:%02x:00.0", 0x11+0x10*i), i/2, fmt.Sprintf("eth%d", i), i, 0))
	}
	machine, err := numa.Read(m.FS())
	if err != nil {
		return shape.Shape{}, err
	}
	selection, err := attached.NewSelection(deviceclasses.DeviceSelection{Include: []string{`device.attributes["dra.numa"].kind == "nic"`}})
	if err != nil {
		return shape.Shape{}, err
	}
	devices := driver.Devices(machine, driver.Config{Exclusivity: driver.ExclusivityKernel, Attached: selection}, nil)
	if want := len(machine.Zones) + functions; len(devices) != want {
		return shape.Shape{}, fmt.Errorf("a node with %d functions has %d devices, want %d", functions, len(devices), want)
	}
	return shape.Shape{Drivers: []shape.Driver{{Name: driver.Name, Devices: devices}}}, nil
}
