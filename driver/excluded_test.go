package driver

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// zoneTexts returns the CPUs, memory and hugepages 2Mi of each published zone.
func zoneTexts(devices []resourceapi.Device) (texts []string) {
	for _, device := range devices {
		text := device.Name
		for _, name := range []resourceapi.QualifiedName{"cpu", "memory", "hugepages2Mi"} {
			if capacity, published := device.Capacity[name]; published {
				text += " " + capacity.Value.String()
			} else {
				text += " -"
			}
		}
		texts = append(texts, text)
	}
	return texts
}

// The machine of this test has 1 GiB on each NUMA node, of which 16 MiB are hugepages on 0 and 1,
// and reserved CPUs on 0. NUMA node 2 has no CPUs.
func TestNoClaimGetsWhatTheNodeConfigExcludes(t *testing.T) {
	for name, row := range map[string]struct {
		settings deviceclasses.NodeSettings
		want     string // of the zones, or an error
	}{
		"nothing": {deviceclasses.NodeSettings{}, "numa-0 2 1003Mi 16Mi; numa-1 4 1003Mi 16Mi; numa-2 - 1Gi -"},
		"memory by NUMA node": {
			deviceclasses.NodeSettings{ReservedNodeMemory: []deviceclasses.MemoryReservation{{NUMANodes: "1-2", Amount: "512Mi"}, {NUMANodes: "2", Amount: "256Mi"}}},
			"numa-0 2 1003Mi 16Mi; numa-1 4 491Mi 16Mi; numa-2 - 256Mi -",
		},
		"zones":           {deviceclasses.NodeSettings{Exclude: &deviceclasses.Exclusion{Zones: []string{"numa-1", "numa-2"}}}, "numa-0 2 1003Mi 16Mi"},
		"memory of nodes": {deviceclasses.NodeSettings{Exclude: &deviceclasses.Exclusion{MemoryOf: "1-2"}}, "numa-0 2 1003Mi 16Mi; numa-1 4 - -"},
		"a size of pages": {deviceclasses.NodeSettings{Exclude: &deviceclasses.Exclusion{Hugepages: []string{"2048Ki"}}}, "numa-0 2 1003Mi -; numa-1 4 1003Mi -; numa-2 - 1Gi -"},
		"both, one zone":  {deviceclasses.NodeSettings{ZoneBy: "machine", Exclude: &deviceclasses.Exclusion{MemoryOf: "1", Hugepages: []string{"1Gi"}}}, "machine 6 1003Mi 16Mi; numa-2 - 1Gi -"},
		"a zone that there is not": {
			deviceclasses.NodeSettings{Exclude: &deviceclasses.Exclusion{Zones: []string{"numa-1", "numa1"}}},
			`zones[1]: the machine has no zone "numa1", allowed are numa-0, numa-1, numa-2`,
		},
		"no such NUMA node": {deviceclasses.NodeSettings{Exclude: &deviceclasses.Exclusion{MemoryOf: "2-3"}}, "memoryOf: the machine has no NUMA node 3, allowed are 0-2"},
		"no such page":      {deviceclasses.NodeSettings{Exclude: &deviceclasses.Exclusion{Hugepages: []string{"4Mi"}}}, "hugepages[0]: the kernel has no hugepages of 4Mi, allowed are 2Mi, 1Gi"},
		"no such node that keeps memory": {
			deviceclasses.NodeSettings{ReservedNodeMemory: []deviceclasses.MemoryReservation{{NUMANodes: "7", Amount: "1Gi"}}},
			"[0].numaNodes: the machine has no NUMA node 7, allowed are 0-2",
		},
	} {
		machine, config := testMachine(), testConfig()
		config.ZoneBy, config.ExcludedZones = row.settings.ZoneBy, row.settings.Exclude.ZoneNames()
		memory, err := ReservedNodeMemory(machine, row.settings.ReservedNodeMemory)
		if err == nil {
			config.ReservedMemory, err = ExcludedMemory(machine, row.settings.Exclude)
		}
		if err == nil {
			err = CheckExcludedZones(machine, config.ZoneBy, config.ExcludedZones)
		}
		config.ReservedMemory = append(config.ReservedMemory, memory...)
		got := strings.Join(zoneTexts(Devices(machine, config, nil)), "; ")
		if err != nil {
			got = err.Error()
		} else if err := CheckReservedPages(machine, config.ReservedMemory); err != nil {
			t.Errorf("%s: a pool is too small: %v", name, err)
		}
		if got != row.want {
			t.Errorf("%s:\n%s, want\n%s", name, got, row.want)
		}
	}
}

// A claim that has what is excluded keeps it, and the rest is nobody's.
func TestExcludedZoneIsNotFree(t *testing.T) {
	disk := newDisk(t)
	mustPrepare(t, disk.open(), claim("a", consuming(result("r", "numa-1", 2), "memory=1Mi")))
	config := testConfig()
	config.ExcludedZones = []string{"numa-1"}
	driver := disk.openWith(config)
	if uids := driver.Grants(); len(uids) != 1 {
		t.Errorf("claims after the zone was excluded: %v", uids)
	}
	mustPrepare(t, driver, claim("a", consuming(result("r", "numa-1", 2), "memory=1Mi"))) // its pod starts again
	if names := zoneTexts(driver.Publish(func(types.UID, ledger.Share) string { return "" }, cpuset.Set{}).Devices); slices.ContainsFunc(names, func(text string) bool { return strings.HasPrefix(text, "numa-1 ") }) {
		t.Errorf("published are %v", names)
	}
	for _, zone := range driver.Figures().Zones {
		if zone.Device != "numa-1" {
			continue
		}
		if got, want := fmt.Sprint(zone.CPUs), fmt.Sprint(Amounts{Claimed: 2, Reserved: 2}); got != want {
			t.Errorf("CPUs of the zone: %s, want %s", got, want)
		}
		for _, memory := range zone.Memory {
			if memory.Shared != 0 || memory.Size == "" && memory.Claimed != 1<<20 {
				t.Errorf("memory of the zone: %+v", memory)
			}
		}
	}
}

// One entry that excludes all of a NUMA node does not add up to more than a number can hold.
func TestEverythingIsTheMostThatIsReserved(t *testing.T) {
	reserved := zones.Reservations{{Bytes: zones.Everything}, {Bytes: zones.Everything}, {Bytes: 1 << 62}}
	if got := reserved.Bytes(0, ""); got != zones.Everything {
		t.Errorf("reserved are %d bytes", got)
	}
}
