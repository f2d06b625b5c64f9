package occupied

import (
	"fmt"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/caches"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	"github.com/dra-driver-numa/dra-driver-numa/numa/ways"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// AllPools divides a cache of 20 ways as a NodeConfig does.
const AllPools = `
os: {ways: 1}
infra: {ways: 19}
guaranteed: {ways: 10, defaultWays: 4}
besteffort: {ways: 7, defaultMinWays: 2, defaultMaxWays: 5}
shared: {ways: 2, members: 10}`

// AddDivided adds a node with two NUMA nodes of 20 CPUs each, whose level-3 caches have 20
// ways and are divided into pools. Zones and caches are those that the driver publishes. It
// returns the caches.
func (c *Cluster) AddDivided(name, pools string) caches.Node {
	c.tb.Helper()
	machine, err := numa.Read(fake.Machine{
		Sockets: 2, CoresPerSocket: 20, MemoryBytes: 1 << 30,
		Resctrl: &fake.Resctrl{CLOSIDs: 16, Ways: 20, MinBandwidth: 10, BandwidthStep: 10},
	}.FS())
	if err != nil {
		c.tb.Fatal(err)
	}
	node, err := caches.Of(&machine, caches.Settings{Pools: *object.Parse[deviceclasses.CachePools](c.tb, pools)})
	if err != nil {
		c.tb.Fatal(err)
	}
	devices := zones.Devices(&machine, zones.Settings{}, nil, nil)
	for i := range devices {
		if cache, lies := node.Zones[devices[i].Name]; lies {
			devices[i].Attributes[deviceclasses.AttributeL3] = resourceapi.DeviceAttribute{IntValue: ptr.To(int64(cache))}
		}
	}
	offered, warnings := node.Devices(nil)
	if len(warnings) > 0 {
		c.tb.Fatal(warnings)
	}
	c.AddNode(name)
	c.AddSlice(name, driver.Name, append(devices, offered...)...)
	return node
}

// Divided has worker-1, whose caches are divided and have claims in each pool, and
// worker-2 without such caches.
func Divided(tb testing.TB) *Cluster {
	c := New(tb)
	const node = "worker-1"
	c.AddDivided(node, AllPools)
	c.AddMachine("worker-2", "rig", nil)
	next := 0
	// claim adds a claim of two CPUs and a part of the cache next to them.
	claim := func(name string, l3 int, amounts string, status *deviceclasses.CacheStatus, pool string) {
		zone := Share{Request: "cpus", Node: node, Device: fmt.Sprintf("numa-%d", l3), Amounts: "cpu=2"}
		cache := Share{Request: "cache", Node: node, Device: fmt.Sprintf("cache-%d-%s", l3, pool), Amounts: amounts, Cache: status}
		if status != nil {
			first := l3*20 + next*2 + 1
			zone.CPUs, zone.Mems = ptr.To(fmt.Sprintf("%d-%d", first, first+1)), fmt.Sprint(l3)
			status.Pool, status.L3, status.Group, status.Request = pool, l3, fmt.Sprintf("dra-numa.%d", next+2), "cpus" // 0 and 1 are of pools
			if next++; pool == ways.Shared {
				status.Group = "dra-numa.1" // all members have the same
			}
		}
		c.AddClaim("prod/"+name, zone, cache)
		c.AddPod("prod/"+name, node, name)
	}
	claim("gold-a", 0, "ways=4,classes=1,bandwidthPercent=40", &deviceclasses.CacheStatus{Ways: 4, BandwidthPercent: 40}, ways.Guaranteed)
	claim("gold-b", 0, "ways=2,classes=1,bandwidthPercent=100", nil, ways.Guaranteed)
	claim("gold-c", 1, "ways=10,classes=1,bandwidthPercent=100", &deviceclasses.CacheStatus{Ways: 10}, ways.Guaranteed)
	claim("silver", 0, "ways=2,classes=1,bandwidthPercent=50", &deviceclasses.CacheStatus{Ways: 2, MaxWays: 5, BandwidthPercent: 50}, ways.BestEffort)
	for i := range 3 {
		claim(fmt.Sprintf("bronze-%d", i), 0, "members=1", &deviceclasses.CacheStatus{}, ways.Shared)
	}
	return c
}
