package driver

import (
	"errors"
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

// A claim keeps what it has of a zone that was excluded after it was prepared, while its
// containers and the daemon start again, and until a pod that was deleted by force has ended.
func TestClaimOutlivesTheExclusionOfItsZone(t *testing.T) {
	wanted := reserved(claim("a", consuming(result("r", "numa-1", 2), "memory=1Mi", "hugepages2Mi=2Mi")), "pod-1")
	gone := claims{"uid-a": nil}
	cpus := cpuset.New(4, 5)
	type node struct {
		disk    disk
		config  Config
		running *Containers
		driver  *Driver
	}
	// restart starts the daemon with the zone excluded.
	restart := func(t *testing.T, n *node, says claims, want string) {
		t.Helper()
		var err error
		if n.driver, err = n.disk.tryRead(n.config); err != nil {
			t.Fatal(err)
		}
		report, err := n.driver.Recover(says, nil)
		if err != nil || lines(report) != want {
			t.Errorf("report %q, %v, want %q", lines(report), err, want)
		}
		assertConsistent(t, n.disk, n.driver)
	}
	observe := func(t *testing.T, n *node, want string, free bool) {
		t.Helper()
		report, err := n.driver.Observe(nil)
		if err != nil || lines(report) != want || cpus.IsSubsetOf(n.driver.planner().free()) != free {
			t.Errorf("report %q, %v, want %q; free are %s", lines(report), err, want, n.driver.planner().free())
		}
		assertConsistent(t, n.disk, n.driver)
	}
	const kept, waiting = "kept claim default/a with cpus 4-5", "waiting claim default/a with cpus 4-5: "
	for name, history := range map[string]func(t *testing.T, n *node, before map[string]string){
		"its container starts again": func(t *testing.T, n *node, before map[string]string) {
			for _, runs := range []bool{false, true} {
				n.running.Pods["pod-1"] = runs
				if devices := mustPrepare(t, n.driver, wanted); len(devices) != 1 || devices[0].Share.CPUs() != cpus {
					t.Errorf("prepared again: %+v", devices)
				}
				observe(t, n, "", false)
				assertFiles(t, n.disk.files(), before)
			}
		},
		"the daemon starts again": func(t *testing.T, n *node, before map[string]string) {
			for _, says := range []claims{{"uid-a": wanted}, {}} { // the second time without the API server
				restart(t, n, says, kept)
				assertFiles(t, n.disk.files(), before)
			}
			mustPrepare(t, n.driver, claim("b", result("r", "numa-0", 2)))
			if got := grantOf(n.driver, "uid-b").CPUs(); got != cpuset.New(2, 3) {
				t.Errorf("another claim has cpus %s", got)
			}
		},
		"its pod is deleted by force, and unprepared while it runs": func(t *testing.T, n *node, _ map[string]string) {
			var inUse *InUseError
			if err := n.driver.Unprepare("uid-a"); !errors.As(err, &inUse) {
				t.Fatalf("unprepare: %v", err)
			}
			if err := n.driver.Abandon("uid-a"); err != nil {
				t.Fatal(err)
			}
			observe(t, n, waiting+"the claim was unprepared, but containers of pod pod-1 run", false)
			restart(t, n, gone, waiting+"the claim was unprepared, but containers of pod pod-1 run")
			n.running.Pods = nil
			observe(t, n, "released claim default/a with cpus 4-5: the claim was unprepared", true)
		},
		"its pod is deleted by force, and never unprepared": func(t *testing.T, n *node, _ map[string]string) {
			restart(t, n, gone, waiting+"the claim is gone, but containers of pod pod-1 run")
			observe(t, n, waiting+"the claim is gone, but containers of pod pod-1 run", false)
			n.running.Pods = nil
			observe(t, n, "released claim default/a with cpus 4-5: the claim is gone", true)
			if err := n.driver.Unprepare("uid-a"); err != nil { // late
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := &node{disk: newDisk(t), running: &Containers{Pods: map[types.UID]bool{"pod-1": true}, AllPods: true}}
			n.config = watched(n.running)
			mustPrepare(t, n.disk.openWith(n.config), wanted)
			before := n.disk.files()
			n.config.ExcludedZones = []string{"numa-1"}
			restart(t, n, claims{"uid-a": wanted}, kept)
			history(t, n, before)
			if names := zoneTexts(n.driver.Publish(func(types.UID, ledger.Share) string { return "" }, cpuset.Set{}).Devices); slices.ContainsFunc(names, func(text string) bool { return strings.HasPrefix(text, "numa-1 ") }) {
				t.Errorf("published are %v", names)
			}
		})
	}
}

// A claim that was allocated hugepages of a size that is excluded before it is prepared waits:
// its pod may count on them. The reason names the cause.
func TestClaimsWaitForHugepagesThatAreExcluded(t *testing.T) {
	for name, exclude := range map[string]deviceclasses.Exclusion{
		"a size of hugepages": {Hugepages: []string{"2Mi"}}, "memory of its NUMA node": {MemoryOf: "1"},
	} {
		disk, config := newDisk(t), testConfig()
		config.Hugepages = func(cpuset.Set, map[string][]string) (Hugepages, error) {
			return Hugepages{Total: map[int]map[string]uint64{1: {"2Mi": 16 << 20}}, Free: map[int]map[string]uint64{1: {"2Mi": 16 << 20}}}, nil
		}
		mustPrepare(t, disk.openWith(config), withHugepages("a", "4Mi"))
		before := disk.files()
		excluded := config
		var err error
		if excluded.ReservedMemory, err = ExcludedMemory(disk.machine, &exclude); err != nil {
			t.Fatal(err)
		}
		driver := disk.openWith(excluded)
		mustPrepare(t, driver, withHugepages("a", "4Mi")) // its container may have them
		assertFiles(t, disk.files(), before)
		const want = "request r: hugepages 2Mi of NUMA node 1 are for no claim: the NodeConfig excludes them"
		if _, _, err := driver.Prepare(withHugepages("b", "4Mi"), nil); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
		assertFiles(t, disk.files(), before)
		mustPrepare(t, disk.openWith(config), withHugepages("b", "4Mi")) // they are excluded no more
	}
}

// A zone of several NUMA nodes has the hugepages of those that are not excluded.
func TestClaimsGetHugepagesBesideThoseThatAreExcluded(t *testing.T) {
	disk, config := newDisk(t), testConfig()
	config.ZoneBy = deviceclasses.ZoneByMachine
	config.Hugepages = func(cpuset.Set, map[string][]string) (Hugepages, error) {
		amounts := map[int]map[string]uint64{0: {"2Mi": 16 << 20}, 1: {"2Mi": 16 << 20}}
		return Hugepages{Total: amounts, Free: amounts}, nil
	}
	var err error
	if config.ReservedMemory, err = ExcludedMemory(disk.machine, &deviceclasses.Exclusion{MemoryOf: "1"}); err != nil {
		t.Fatal(err)
	}
	driver := disk.openWith(config)
	mustPrepare(t, driver, claim("a", consuming(result("r", "machine", 0), "hugepages2Mi=16Mi")))
	const want = "request r: NUMA node 0-1 has 32Mi of hugepages 2Mi free, the claim needs 2Mi"
	if _, _, err := driver.Prepare(claim("b", consuming(result("r", "machine", 0), "hugepages2Mi=2Mi")), nil); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// One entry that excludes all of a NUMA node does not add up to more than a number can hold.
func TestEverythingIsTheMostThatIsReserved(t *testing.T) {
	reserved := zones.Reservations{{Bytes: zones.Everything}, {Bytes: zones.Everything}, {Bytes: 1 << 62}}
	if got := reserved.Bytes(0, ""); got != zones.Everything {
		t.Errorf("reserved are %d bytes", got)
	}
}
