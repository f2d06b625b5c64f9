package caches

import (
	"fmt"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// resultOf is an allocation result of a device with amounts such as "ways=4 classes=1".
func resultOf(device, amounts string) resourceapi.DeviceRequestAllocationResult {
	result := resourceapi.DeviceRequestAllocationResult{Device: device, ConsumedCapacity: map[resourceapi.QualifiedName]resource.Quantity{}}
	for _, part := range strings.Fields(amounts) {
		name, amount, _ := strings.Cut(part, "=")
		result.ConsumedCapacity[resourceapi.QualifiedName(name)] = resource.MustParse(amount)
	}
	return result
}

func TestAllocationsAreRead(t *testing.T) {
	const maxWays = ": from the ways that the claim always has to those of the pool besteffort"
	for _, row := range []struct {
		device, amounts string
		maxWays         int
		want            string // the ask, or the error
	}{
		{"cache-1-guaranteed", "ways=4 classes=1 bandwidthPercent=100", 0, "{cache-1-guaranteed 1 guaranteed 4 4 0}"},
		{"cache-0-guaranteed", "ways=4 classes=1 bandwidthPercent=40", 0, "{cache-0-guaranteed 0 guaranteed 4 4 40}"},
		{"cache-0-guaranteed", "ways=4 classes=1 bandwidthPercent=41", 0, "{cache-0-guaranteed 0 guaranteed 4 4 50}"},
		{"cache-0-guaranteed", "dra.numa/ways=10 dra.numa/classes=1 dra.numa/bandwidthPercent=10", 0, "{cache-0-guaranteed 0 guaranteed 10 10 10}"},
		{"cache-0-guaranteed", "ways=4 classes=1", 0, "{cache-0-guaranteed 0 guaranteed 4 4 0}"},
		{"cache-0-guaranteed", "ways=4 classes=1 example.com/ways=99", 0, "{cache-0-guaranteed 0 guaranteed 4 4 0}"},
		{"cache-0-besteffort", "ways=1 classes=1", 0, "{cache-0-besteffort 0 besteffort 1 3 0}"},
		{"cache-0-besteffort", "ways=2 classes=1", 5, "{cache-0-besteffort 0 besteffort 2 5 0}"},
		{"cache-0-besteffort", "ways=7 classes=1", 7, "{cache-0-besteffort 0 besteffort 7 7 0}"},
		{"cache-0-shared", "members=1", 0, "{cache-0-shared 0 shared 0 0 0}"},

		{"cache-2-guaranteed", "ways=4", 0, "no such device, this node has cache-0-guaranteed, cache-0-besteffort, cache-0-shared, cache-1-guaranteed, cache-1-besteffort, cache-1-shared"},
		{"cache-0-guaranteed", "", 0, "consumedCapacity ways: it is missing, allowed are 1 to 10"},
		{"cache-0-guaranteed", "ways=4", 0, "consumedCapacity classes: it is missing, allowed are 1 to 1"},
		{"cache-0-guaranteed", "ways=11 classes=1", 0, `consumedCapacity ways "11": allowed are 1 to 10`},
		{"cache-0-guaranteed", "ways=0 classes=1", 0, `consumedCapacity ways "0": allowed are 1 to 10`},
		{"cache-0-guaranteed", "ways=-1 classes=1", 0, `consumedCapacity ways "-1": allowed are 1 to 10`},
		{"cache-0-guaranteed", "ways=" + object.EndlessAmount + " classes=1", 0, `consumedCapacity ways "` + object.EndlessAmount + `": allowed are 1 to 10`},
		{"cache-0-guaranteed", "ways=4 classes=2", 0, `consumedCapacity classes "2": allowed are 1 to 1`},
		{"cache-0-guaranteed", "ways=4 classes=1 bandwidthPercent=110", 0, `consumedCapacity bandwidthPercent "110": allowed are 1 to 100`},
		{"cache-0-guaranteed", "ways=4 classes=1 bandwidthMBps=1", 0, "consumedCapacity bandwidthMBps: cache-0-guaranteed has ways, classes, bandwidthPercent"},
		{"cache-0-guaranteed", "ways=4 classes=1 dra.numa/cpu=1", 0, "consumedCapacity dra.numa/cpu: cache-0-guaranteed has ways, classes, bandwidthPercent"},
		{"cache-0-guaranteed", "ways=4 classes=1 dra.numa/ways=4", 0, "consumedCapacity ways: it is there with and without dra.numa/"},
		{"cache-0-guaranteed", "ways=4 classes=1", 4, "maxWays: 4, allowed is none in the pool guaranteed"},
		{"cache-0-shared", "members=1", 4, "maxWays: 4, allowed is none in the pool shared"},
		{"cache-0-shared", "members=2", 0, `consumedCapacity members "2": allowed are 1 to 1`},
		{"cache-0-shared", "members=1 ways=1", 0, "consumedCapacity ways: cache-0-shared has members"},
		{"cache-0-besteffort", "ways=4 classes=1", 0, "maxWays: the default of the pool besteffort is 3 and the claim has at least 4 ways, allowed are 4 to 7"},
		{"cache-0-besteffort", "ways=4 classes=1", 3, "maxWays: 3, allowed are 4 to 7" + maxWays},
		{"cache-0-besteffort", "ways=1 classes=1", 8, "maxWays: 8, allowed are 1 to 7" + maxWays},
	} {
		node := nodeWith(t, twoCaches(t), settings(t, all))
		ask, err := node.Ask(resultOf(row.device, row.amounts), deviceclasses.CacheConfig{MaxWays: row.maxWays})
		got := fmt.Sprint(ask)
		if err != nil {
			got = err.Error()
		}
		if got != row.want {
			t.Errorf("%s of %s, maxWays %d:\n%s, want\n%s", row.amounts, row.device, row.maxWays, got, row.want)
		}
	}
	if _, err := (&Node{}).Ask(resultOf("cache-0-guaranteed", ""), deviceclasses.CacheConfig{}); err == nil || err.Error() != "no such device, this node has no caches" {
		t.Errorf("a node without caches: %v", err)
	}
}

func TestBandwidthIsReadInTheUnitOfTheNode(t *testing.T) {
	for name, row := range map[string]struct {
		change  func(*numa.Machine, *Settings)
		amounts string
		want    int // 0 for no limit
	}{
		"MBps":               {func(_ *numa.Machine, s *Settings) { s.Options = countsMBps }, "bandwidthMBps=20000", 20000},
		"no limit":           {func(_ *numa.Machine, s *Settings) { s.Options = countsMBps }, "bandwidthMBps=4294967295", 0},
		"1/8 GB/s":           {func(m *numa.Machine, _ *Settings) { m.Resctrl.Bandwidths[0] = amd }, "bandwidthMBps=20001", 20125},
		"no limit, 1/8 GB/s": {func(m *numa.Machine, _ *Settings) { m.Resctrl.Bandwidths[0] = amd }, "bandwidthMBps=256k", 0},
	} {
		machine, settings := twoCaches(t), settings(t, ten)
		row.change(&machine, &settings)
		node := nodeWith(t, machine, settings)
		ask, err := node.Ask(resultOf("cache-0-guaranteed", "ways=1 classes=1 "+row.amounts), deviceclasses.CacheConfig{})
		if err != nil || ask.Bandwidth != row.want {
			t.Errorf("%s: %+v, %v; want %d", name, ask, err, row.want)
		}
	}
}

func TestNamesOfDevicesAreRead(t *testing.T) {
	for name, want := range map[string]string{
		"cache-0-guaranteed": "0 guaranteed true", "cache-7340032-besteffort": "7340032 besteffort true", "cache-1-shared": "1 shared true",
		"cache-0-os": "0  false", "cache-0-": "0  false", "cache-0": "0  false", "cache--1-shared": "0  false", "cache-01-shared": "0  false",
		"cache-x-shared": "0  false", "numa-0": "0  false", "nic-0-shared": "0  false", "": "0  false", "cache-+1-shared": "0  false",
	} {
		cache, pool, ok := Parse(name)
		if got := fmt.Sprintf("%d %s %t", cache, pool, ok); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}
