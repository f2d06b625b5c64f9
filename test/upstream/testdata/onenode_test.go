package onenode

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"sigs.k8s.io/yaml"
)

// test/upstream/module.sh copies this folder, with the adapter for one version, into a package
// below structured in the module of Kubernetes. INPUT has the folders slices and classes.

const node, numaDriver, gpuDriver = "node", "dra.numa", "gpu.example.com"

// cpuTime is the time for which the process has run. Other programs do not make it longer.
func cpuTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &now); err != nil {
		panic(err)
	}
	return time.Duration(now.Nano())
}

// read parses the objects of the files that the pattern names.
func read[T any](b *testing.B, pattern string) (objects []*T) {
	b.Helper()
	names, err := filepath.Glob(filepath.Join(os.Getenv("INPUT"), pattern))
	if err != nil || len(names) == 0 {
		b.Fatalf("INPUT=%q has no %s (%v)", os.Getenv("INPUT"), pattern, err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			b.Fatal(err)
		}
		for _, document := range strings.Split(string(text), "\n---\n") {
			object := new(T)
			if err := yaml.Unmarshal([]byte(document), object); err != nil {
				b.Fatalf("%s: %v", name, err)
			}
			objects = append(objects, object)
		}
	}
	return objects
}

type lister map[string]*resourceapi.DeviceClass

func (l lister) Get(name string) (*resourceapi.DeviceClass, error) {
	if class, ok := l[name]; ok {
		return class, nil
	}
	return nil, fmt.Errorf("no DeviceClass %s", name)
}

func (l lister) List() (list []*resourceapi.DeviceClass, err error) {
	for _, class := range l {
		list = append(list, class)
	}
	return list, nil
}

// share is what a claim holds of a device that others may share. Without consumed, it holds
// all of the device.
type share struct {
	driver, pool, device string
	uid                  types.UID
	consumed             map[resourceapi.QualifiedName]resource.Quantity
}

// full is what leaves a zone without CPUs.
func full(slices []*resourceapi.ResourceSlice, zones ...int) (shares []share) {
	for _, zone := range zones {
		name := fmt.Sprint("numa-", zone)
		for _, slice := range slices {
			for _, device := range slice.Spec.Devices {
				if device.Name == name {
					shares = append(shares, share{numaDriver, node, name, types.UID(name), map[resourceapi.QualifiedName]resource.Quantity{
						"cpu": device.Capacity["cpu"].Value, "memory": resource.MustParse("0"),
					}})
				}
			}
		}
	}
	return shares
}

// elsewhere are shares of the zones of other nodes.
func elsewhere(count int) (shares []share) {
	for i := range count {
		shares = append(shares, share{numaDriver, fmt.Sprint("other-", i/20), fmt.Sprint("numa-", i%4), types.UID(fmt.Sprint("uid-", i)),
			map[resourceapi.QualifiedName]resource.Quantity{"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Gi")}})
	}
	return shares
}

// gpus is what a GPU driver publishes: 8 exclusive devices of 22 attributes and a capacity.
func gpus(driver string) *resourceapi.ResourceSlice {
	slice := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "gpus"}, Spec: resourceapi.ResourceSliceSpec{
		Driver: driver, NodeName: new(node), Pool: resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1},
	}}
	for i := range 8 {
		gpu := resourceapi.Device{Name: fmt.Sprint("gpu-", i), Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			"type":                            {StringValue: new("gpu")},
			"resource.kubernetes.io/pcieRoot": {StringValue: new(fmt.Sprint("pci0000:", i))},
		}, Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}}}
		for k := range 20 {
			gpu.Attributes[resourceapi.QualifiedName(fmt.Sprint("attribute", k))] = resourceapi.DeviceAttribute{StringValue: new(fmt.Sprint("value-", k))}
		}
		slice.Spec.Devices = append(slice.Spec.Devices, gpu)
	}
	return slice
}

// gpuClass selects the devices of that driver, and has its name.
func gpuClass(driver string) *resourceapi.DeviceClass {
	expression := fmt.Sprintf("device.driver == '%s' && device.attributes['%s'].type == 'gpu'", driver, driver)
	return &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: resourceapi.DeviceClassSpec{
		Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}},
	}}
}

// onlyKind is the slices without the attributes that no class looks up.
func onlyKind(slices []*resourceapi.ResourceSlice) (bare []*resourceapi.ResourceSlice) {
	for _, slice := range slices {
		slice = slice.DeepCopy()
		for i := range slice.Spec.Devices {
			attributes := slice.Spec.Devices[i].Attributes
			slice.Spec.Devices[i].Attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"kind": attributes["kind"]}
		}
		bare = append(bare, slice)
	}
	return bare
}

func BenchmarkOneNode(b *testing.B) {
	zones, devices := read[resourceapi.ResourceSlice](b, "slices/zones.yaml"), read[resourceapi.ResourceSlice](b, "slices/devices.yaml")
	classes := lister{gpuDriver: gpuClass(gpuDriver)}
	for _, class := range read[resourceapi.DeviceClass](b, "classes/*.yaml") {
		classes[class.Name] = class
	}
	const zone = `{deviceClassName: zone.dra.numa, allocationMode: ExactCount, count: 1, capacity: {requests: {cpu: "2", memory: 64Mi}}}`
	const oneZone = `{requests: [{name: cpus, exactly: ` + zone + `}]}`
	const near = `constraints: [{matchAttribute: resource.kubernetes.io/numaNode}]`
	beside := append([]*resourceapi.ResourceSlice{gpus(gpuDriver)}, zones...)
	besideFunctions := append([]*resourceapi.ResourceSlice{gpus(gpuDriver)}, devices...)
	for _, row := range []struct {
		name   string
		slices []*resourceapi.ResourceSlice
		held   []share
		claim  string
		want   string // the last device
	}{
		{"one-zone", zones, nil, oneZone, "numa-0"},
		{"one-zone-only-kind", onlyKind(zones), nil, oneZone, "numa-0"},
		{"zones-0-to-2-full", zones, full(zones, 0, 1, 2), oneZone, "numa-3"},
		{"node-refuses", zones, full(zones, 0, 1, 2, 3), oneZone, ""},
		{"second-alternative", devices, nil, `{requests: [{name: cpus, firstAvailable: [
			{name: many, deviceClassName: zone.dra.numa, allocationMode: ExactCount, count: 1, capacity: {requests: {cpu: "400"}}},
			{name: few, deviceClassName: zone.dra.numa, allocationMode: ExactCount, count: 1, capacity: {requests: {cpu: "8"}}}]}]}`, "numa-0"},
		{"cache-ways", devices, nil, `{requests: [{name: cpus, exactly: ` + zone + `},
			{name: cache, exactly: {deviceClassName: cache.dra.numa, allocationMode: ExactCount, count: 1, capacity: {requests: {ways: "2"}}}}],
			constraints: [{matchAttribute: dra.numa/l3}]}`, "cache-0-guaranteed"},
		{"zone-and-function", devices, nil, `{requests: [{name: cpus, exactly: ` + zone + `},
			{name: card, exactly: {deviceClassName: nic.dra.numa, allocationMode: ExactCount, count: 1}}], ` + near + `}`, "nic-0000-18-00-0"},
		{"functions-before-a-full-zone", devices, full(devices, 0), `{requests: [
			{name: cards, exactly: {deviceClassName: nic.dra.numa, allocationMode: ExactCount, count: 3}},
			{name: cpus, exactly: ` + zone + `}], ` + near + `}`, "numa-1"},
		{"gpu-alone", []*resourceapi.ResourceSlice{gpus(gpuDriver)}, nil, `{requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com, allocationMode: ExactCount, count: 1}}]}`, "gpu-0"},
		{"gpu-beside-zones", beside, nil, `{requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com, allocationMode: ExactCount, count: 1}}]}`, "gpu-0"},
		{"gpu-beside-functions", besideFunctions, nil, `{requests: [{name: gpu, exactly: {deviceClassName: gpu.example.com, allocationMode: ExactCount, count: 1}}]}`, "gpu-0"},
		{"zone-beside-gpus", beside, nil, oneZone, "numa-0"},
		{"unused-zone-5000-shares", zones, elsewhere(5_000), oneZone, "numa-0"},
		{"unused-zone-50000-shares", zones, elsewhere(50_000), oneZone, "numa-0"},
	} {
		b.Run(row.name, func(b *testing.B) {
			var claim resourceapi.DeviceClaim
			if err := yaml.Unmarshal([]byte(row.claim), &claim); err != nil {
				b.Fatal(err)
			}
			measure(b, classes, row.slices, row.held, claim, row.want)
		})
	}
}

// measure allocates the claim again and again. The last device that it gets is wanted, "" if
// it gets none.
func measure(b *testing.B, classes lister, slices []*resourceapi.ResourceSlice, held []share, devices resourceapi.DeviceClaim, want string) {
	b.Helper()
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim", Namespace: "default"}, Spec: resourceapi.ResourceClaimSpec{Devices: devices}}
	here := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	features := structured.Features{
		AdminAccess: true, ConsumableCapacity: true, DeviceBindingAndStatus: true, DeviceTaints: true,
		FractionalCapacityRange: true, PartitionableDevices: true, PrioritizedList: true,
	}
	cache := cel.NewCache(10, cel.Features{EnableConsumableCapacity: true})
	allocator := newAllocator(b, features, held, classes, slices, cache)
	allocate := func() {
		results, err := allocator.Allocate(context.Background(), here, []*resourceapi.ResourceClaim{claim})
		if err != nil {
			b.Fatal(err)
		}
		given := ""
		if len(results) > 0 {
			all := results[0].Devices.Results
			given = all[len(all)-1].Device
		}
		if given != want {
			text, _ := json.Marshal(results)
			b.Fatalf("want %q, got %s", want, text)
		}
	}
	// What is measured collects no garbage, and takes no memory that the kernel has to clear first:
	// both depend on how much the process has had before. So these calls get the memory that the
	// others use again. They also compile the selectors.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for range max(200, b.N) {
		allocate()
	}
	runtime.GC()
	b.ReportAllocs()
	b.ResetTimer()
	began := cpuTime()
	for range b.N {
		allocate()
	}
	b.ReportMetric(float64((cpuTime()-began).Nanoseconds())/float64(b.N), "cpu-ns/op")
}
