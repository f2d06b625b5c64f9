package shape

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
	"github.com/dra-driver-numa/dra-driver-numa/driver/dividing"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
)

// The names of what claims of this driver ask for, apart from zones.
const (
	MixZone      = "CPUs and memory"
	MixFirst     = "the second alternative"
	MixCache     = "and cache ways"
	MixNearby    = "and a GPU and a NIC"
	functionsOf  = 2 // GPUs of each NUMA node, and as many NICs
	waysOfClaims = 2
)

// Mixes are claims of this driver that ask for more and more, all on the same machine: it
// also publishes GPUs, NICs, and caches that can be divided. The first asks for CPUs and
// memory only.
func Mixes() (list []Shape, err error) {
	m, err := richMachine()
	if err != nil {
		return nil, err
	}
	selection, err := attached.NewSelection(deviceclasses.DeviceSelection{Include: []string{`device.attributes["dra.numa"].kind in ["gpu", "nic"]`}})
	if err != nil {
		return nil, err
	}
	devices := driver.Devices(m, driver.Config{Exclusivity: driver.ExclusivityKernel, Attached: selection, Caches: &dividing.Config{Pools: deviceclasses.CachePools{
		OS:         &deviceclasses.CacheWays{Ways: 2},
		Guaranteed: &deviceclasses.GuaranteedPool{ExclusivePool: deviceclasses.ExclusivePool{Ways: 8}},
	}}}, nil)
	zone := func(cpus int) resourceapi.DeviceRequest {
		return request(ZoneClass, capacity{cpu: cpus, memory: PodMemory})
	}
	cache := request("cache.dra.numa", capacity{})
	cache.Exactly.Capacity = &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{
		"ways": *resource.NewQuantity(waysOfClaims, resource.DecimalSI),
	}}
	var first resourceapi.DeviceRequest
	for i, exactly := range []*resourceapi.ExactDeviceRequest{zone(zoneCPUs(m) + PodCPUs).Exactly, zone(PodCPUs).Exactly} {
		first.FirstAvailable = append(first.FirstAvailable, resourceapi.DeviceSubRequest{
			Name: fmt.Sprintf("alternative-%d", i), DeviceClassName: exactly.DeviceClassName, AllocationMode: exactly.AllocationMode, Count: exactly.Count, Capacity: exactly.Capacity,
		})
	}
	for _, mix := range []struct {
		name, means string
		classes     []string
		claim       *resourceapi.DeviceClaim
	}{
		{MixZone, "One request, for CPUs and memory.", []string{ZoneClass}, claim(nil, zone(PodCPUs))},
		{MixFirst, "The same in `firstAvailable`, after more CPUs than a NUMA node has.", []string{ZoneClass}, claim(nil, first)},
		{MixCache, "A second request, for ways of the cache of these CPUs (`matchAttribute` for `dra.numa/l3`).", []string{ZoneClass, "cache.dra.numa"}, claim(ptr.To(deviceclasses.AttributeL3), zone(PodCPUs), cache)},
		{
			MixNearby, "Two more requests, and `matchAttribute` for the NUMA node of all three.",
			[]string{ZoneClass, "gpu.dra.numa", "nic.dra.numa"},
			claim(ptr.To(numaNode), zone(PodCPUs), request("gpu.dra.numa", capacity{}), request("nic.dra.numa", capacity{})),
		},
	} {
		classes, err := classesNamed(mix.classes...)
		if err != nil {
			return nil, err
		}
		list = append(list, Shape{Name: mix.name, Means: mix.means, Drivers: []Driver{{driver.Name, devices}}, Classes: classes, Claim: mix.claim, Variant: true})
	}
	return list, nil
}

// MixesPerNode is how many pods of each mix fit on a node.
const MixesPerNode = 4 * functionsOf

// richMachine has as many CPUs as [Machine], a cache for each NUMA node, GPUs and NICs.
func richMachine() (numa.Machine, error) {
	m := fake.Machine{
		Make: fake.AMD, Sockets: 2, ZonesPerSocket: 2, L3sPerSocket: 2, CoresPerSocket: 16, Threads: 2, MemoryBytes: 32 << 30,
		Resctrl: &fake.Resctrl{CLOSIDs: 16, Ways: 12, MinBandwidth: 10, BandwidthStep: 10},
	}
	for i := range MixesPerNode {
		zone := i / functionsOf
		m.PCI = append(m.PCI,
			fake.NVIDIA(fmt.Sprintf("0000:%02x:00.0", 0x11+0x10*i), zone, i),
			fake.ConnectX(fmt.Sprintf("0000:%02x:00.0", 0x19+0x10*i), zone, fmt.Sprintf("eth%d", i), i, 0))
	}
	return numa.Read(m.FS())
}
