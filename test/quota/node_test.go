package quota

import (
	"fmt"
	"slices"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// Drivers beside this one.
const (
	cpuDriver = "dra.cpu"
	gpuDriver = "gpu.example.com"
)

// node is what a node publishes.
type node struct {
	name      string
	slices    []*resourceapi.ResourceSlice
	devices   []device
	hugepages []resourceapi.QualifiedName
	selectors []string // about its devices
}

// device is a device of a driver.
type device struct {
	driver string
	resourceapi.Device
}

// kind is the kind of a device; "" if it has none.
func (d device) kind() string {
	return ptr.Deref(deviceclasses.Attribute(d.Attributes, deviceclasses.AttributeKind).StringValue, "")
}

func (d device) isZone() bool {
	return d.driver == deviceclasses.DriverName && deviceclasses.IsZoneKind(d.kind())
}

// nodes are generated machines with zones of several kinds, beside devices of other
// drivers.
func nodes(t *testing.T, r random) (list []*node) {
	t.Helper()
	selection, err := attached.NewSelection(deviceclasses.DeviceSelection{Include: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ machine, zoneBy string }{
		{"rig", ""},
		{"intel-2s", ""},
		{"intel-2s-snc2", deviceclasses.ZoneByL3},
		{"epyc-2s-nps4", ""},
		{"epyc-2s-nps1", deviceclasses.ZoneBySocket},
		{"epyc-mi300x", ""},
		{"hybrid-laptop", ""},
		{"cxl-expander", ""},
		{"no-numa", ""},
		{"sparse-nodes", deviceclasses.ZoneByMachine},
	} {
		n := &node{name: fmt.Sprintf("%s-%s", row.machine, row.zoneBy)}
		config := driver.Config{NodeName: n.name, Exclusivity: driver.ExclusivityKernel, ZoneBy: row.zoneBy, Attached: selection}
		ours := driver.Devices(sample.Machine(t, row.machine), config, nil)
		if r.chance(50) {
			ours = append(ours, *object.Parse[[]resourceapi.Device](t, files.Read(t, "../../driver/caches/testdata/devices.yaml"))...)
		}
		for _, slice := range driver.Resources(n.name, ours).Pools[n.name].Slices {
			n.publish(deviceclasses.DriverName, slice.Devices, slice.SharedCounters)
		}
		if r.chance(80) {
			n.publish(cpuDriver, foreignCPUs(), nil)
		}
		if r.chance(80) {
			n.publish(gpuDriver, foreignGPUs(), nil)
		}
		n.countSlices()
		if r.chance(30) {
			n.slices = object.WithDomain(n.slices)
		}
		for range 80 {
			n.selectors = append(n.selectors, n.selector(r))
		}
		list = append(list, n)
	}
	return list
}

func (n *node) publish(driver string, devices []resourceapi.Device, counters []resourceapi.CounterSet) {
	n.slices = append(n.slices, &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", n.name, len(n.slices))},
		Spec: resourceapi.ResourceSliceSpec{
			Driver: driver, NodeName: &n.name, Devices: devices, SharedCounters: counters,
			Pool: resourceapi.ResourcePool{Name: n.name, Generation: 1},
		},
	})
	for _, one := range devices {
		next := device{driver, one}
		n.devices = append(n.devices, next)
		for name := range one.Capacity {
			if name != deviceclasses.CapacityCPU && name != deviceclasses.CapacityMemory && next.isZone() && !slices.Contains(n.hugepages, name) {
				n.hugepages = append(n.hugepages, name)
			}
		}
	}
	slices.Sort(n.hugepages)
}

// countSlices says in each slice how many there are of its driver.
func (n *node) countSlices() {
	count := map[string]int64{}
	for _, slice := range n.slices {
		count[slice.Spec.Driver]++
	}
	for _, slice := range n.slices {
		slice.Spec.Pool.ResourceSliceCount = count[slice.Spec.Driver]
	}
}

// foreignCPUs are devices that look like zones.
func foreignCPUs() (devices []resourceapi.Device) {
	for i := range int64(2) {
		devices = append(devices, resourceapi.Device{
			Name: fmt.Sprintf("cpus-%d", i), AllowMultipleAllocations: ptr.To(true),
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				"kind": {StringValue: ptr.To(deviceclasses.KindZone)}, "threadsPerCore": {IntValue: ptr.To(int64(2))},
				deviceclasses.AttributeNUMANode: {IntValue: &i},
			},
			Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{
				"cpu":    {Value: quantity("64"), RequestPolicy: policy("1")},
				"memory": {Value: quantity("64Gi"), RequestPolicy: policy("1Mi")},
			},
		})
	}
	return devices
}

func policy(step string) *resourceapi.CapacityRequestPolicy {
	return &resourceapi.CapacityRequestPolicy{
		Default:    ptr.To(quantity("0")),
		ValidRange: &resourceapi.CapacityRequestPolicyRange{Min: ptr.To(quantity("0")), Step: ptr.To(quantity(step))},
	}
}

func foreignGPUs() (devices []resourceapi.Device) {
	for i := range int64(4) {
		devices = append(devices, resourceapi.Device{
			Name: fmt.Sprintf("gpu-%d", i),
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				"kind": {StringValue: ptr.To("gpu")}, "model": {StringValue: ptr.To("H100")},
				deviceclasses.AttributeNUMANode: {IntValue: &i},
			},
			Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: quantity("80Gi")}},
		})
	}
	return devices
}
