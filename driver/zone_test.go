package driver

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/dividing"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// summary describes a device in one line.
func summary(device resourceapi.Device) string {
	line := device.Name + ":"
	for _, name := range []resourceapi.QualifiedName{deviceclasses.AttributeNUMANode, deviceclasses.AttributeSocket, deviceclasses.AttributeL3} {
		if value := device.Attributes[name].IntValue; value != nil {
			line += fmt.Sprintf(" %s=%d", name[strings.Index(string(name), "/")+1:], *value)
		}
	}
	for _, name := range []resourceapi.QualifiedName{deviceclasses.CapacityCPU, deviceclasses.CapacityMemory, "hugepages2Mi"} {
		if capacity, has := device.Capacity[name]; has {
			line += fmt.Sprintf(" %s=%s", name, capacity.Value.String())
		}
	}
	return line
}

func summaries(devices []resourceapi.Device) (lines []string) {
	for _, device := range devices {
		lines = append(lines, summary(device))
	}
	return lines
}

// zonedBy returns the configuration of a node with this zoneBy.
func zonedBy(by string) Config {
	config := testConfig()
	config.ZoneBy = by
	return config
}

func TestZonesAreWhatTheOperatorSays(t *testing.T) {
	const memoryOnly = "numa-2: numaNode=2 memory=1Gi"
	machine := testMachine()
	for by, want := range map[string][]string{
		"": {
			"numa-0: numaNode=0 socket=0 cpu=2 memory=1003Mi hugepages2Mi=16Mi",
			"numa-1: numaNode=1 socket=1 cpu=4 memory=1003Mi hugepages2Mi=16Mi", memoryOnly,
		},
		deviceclasses.ZoneBySocket: {
			"socket-0: numaNode=0 socket=0 cpu=2 memory=1003Mi hugepages2Mi=16Mi",
			"socket-1: numaNode=1 socket=1 cpu=4 memory=1003Mi hugepages2Mi=16Mi", memoryOnly,
		},
		deviceclasses.ZoneByMachine: {"machine: cpu=6 memory=2006Mi hugepages2Mi=32Mi", memoryOnly},
		deviceclasses.ZoneByL3: {
			"l3-0: numaNode=0 socket=0 l3=0 cpu=2", "numa-0: numaNode=0 socket=0 memory=1003Mi hugepages2Mi=16Mi",
			"l3-1: numaNode=1 socket=1 l3=1 cpu=4", "numa-1: numaNode=1 socket=1 memory=1003Mi hugepages2Mi=16Mi", memoryOnly,
		},
	} {
		if got := summaries(Devices(machine, zonedBy(by), nil)); !slices.Equal(got, want) {
			t.Errorf("zoneBy %q:\n%s\nwant\n%s", by, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if diff := cmp.Diff(Devices(machine, testConfig(), nil), Devices(machine, zonedBy(deviceclasses.ZoneByNUMA), nil)); diff != "" {
		t.Errorf("zoneBy numa is not the default:\n%s", diff)
	}
}

// The kernel gives the CPUs of isolcpus= only to claims that ask for such CPUs.
func TestIsolatedCPUsAreADeviceOfTheirOwn(t *testing.T) {
	machine := testMachine()
	machine.Isolated = new(cpuset.New(6, 7))
	const isolated = "isolated-1: numaNode=1 socket=1 cpu=2"
	for by, want := range map[string][]string{
		"": {
			"numa-0: numaNode=0 socket=0 cpu=2 memory=1003Mi hugepages2Mi=16Mi",
			"numa-1: numaNode=1 socket=1 cpu=2 memory=1003Mi hugepages2Mi=16Mi", "numa-2: numaNode=2 memory=1Gi", isolated,
		},
		deviceclasses.ZoneByMachine: {"machine: cpu=4 memory=2006Mi hugepages2Mi=32Mi", "numa-2: numaNode=2 memory=1Gi", isolated},
		deviceclasses.ZoneByL3: {
			"l3-0: numaNode=0 socket=0 l3=0 cpu=2", "numa-0: numaNode=0 socket=0 memory=1003Mi hugepages2Mi=16Mi",
			"l3-1: numaNode=1 socket=1 l3=1 cpu=2", "numa-1: numaNode=1 socket=1 memory=1003Mi hugepages2Mi=16Mi", "numa-2: numaNode=2 memory=1Gi", isolated,
		},
	} {
		if got := summaries(Devices(machine, zonedBy(by), nil)); !slices.Equal(got, want) {
			t.Errorf("zoneBy %q:\n%s\nwant\n%s", by, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	disk := newDisk(t)
	disk.machine = machine
	driver, err := disk.tryOpen(testConfig())
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		device, fields, cpus, partition string
	}{
		"plain":   {"numa-1", ``, "4-5", deviceclasses.PartitionRoot},
		"apart":   {"isolated-1", ``, "6-7", deviceclasses.PartitionIsolated},
		"refused": {"isolated-1", `"partition": "root"`, "6-7", deviceclasses.PartitionIsolated},
		"none":    {"isolated-1", `"partition": "none"`, "6-7", deviceclasses.PartitionNone},
	} {
		wanted := claim(name, result("r", row.device, 2))
		if row.fields != "" {
			configured(wanted, fromClaim(row.fields))
		}
		mustPrepare(t, driver, wanted)
		share := grantOf(driver, types.UID("uid-"+name)).Shares[0]
		if share.CPUs().String() != row.cpus || share.Zone().Partition != row.partition {
			t.Errorf("%s: cpus %s, partition %q, want %s, %q", name, share.CPUs(), share.Zone().Partition, row.cpus, row.partition)
		}
		if err := driver.Unprepare(wanted.UID); err != nil {
			t.Fatal(err)
		}
	}
}

// The node was booted again with isolcpus=. The kernel would refuse the old partition.
func TestIsolatedCPUsOfARecordedClaim(t *testing.T) {
	disk := newDisk(t)
	mustPrepare(t, disk.open(), claim("old", result("r", "numa-1", 2)))
	disk.machine.Isolated = new(cpuset.New(4, 5))
	driver := disk.openAfterBoot()
	wanted := claim("old", result("r", "numa-1", 2))
	mustPrepare(t, driver, wanted)
	if got := grantOf(driver, "uid-old").CPUs().String(); got != "6-7" {
		t.Errorf("cpus %s after the boot, want 6-7", got)
	}
}

// A zone of several NUMA nodes publishes only what is true of all of them.
func TestZoneOfDifferentNUMANodes(t *testing.T) {
	machine := testMachine()
	machine.Zones[1].CoreType = "efficient"
	machine.Zones[1].MemoryTier = new(6)
	device := Devices(machine, zonedBy(deviceclasses.ZoneByMachine), zones.Faults{1: "gone"})[0]
	if coreType := *device.Attributes[deviceclasses.AttributeCoreType].StringValue; coreType != "mixed" {
		t.Errorf("cores are %s, want mixed", coreType)
	}
	if tier := *device.Attributes[deviceclasses.AttributeMemoryTier].IntValue; tier != 6 {
		t.Errorf("memory tier %d, want the slower, 6", tier)
	}
	if len(device.Taints) != 1 {
		t.Errorf("taints %v of a zone with a fault in one NUMA node, want one", device.Taints)
	}
}

// On every generated machine, each zoneBy publishes the same CPUs, memory and
// hugepages, and no CPU twice.
func TestEveryZoneByPublishesTheSameMachine(t *testing.T) {
	for _, preset := range fake.Presets() {
		machine := sample.Machine(t, preset.Name)
		var want map[resourceapi.QualifiedName]int64
		for _, by := range deviceclasses.ZoneBys() {
			got := make(map[resourceapi.QualifiedName]int64)
			for _, device := range Devices(machine, Config{ZoneBy: by}, nil) {
				for name, capacity := range device.Capacity {
					got[name] += capacity.Value.Value()
				}
			}
			if want == nil {
				want = got
			}
			for name := range want {
				const slack = 64 << 20 // the sums of larger zones are rounded less
				if diff := got[name] - want[name]; diff < 0 || diff > slack || name == deviceclasses.CapacityCPU && diff != 0 {
					t.Errorf("%s by %s: %s %d, by NUMA node it is %d", preset.Name, by, name, got[name], want[name])
				}
			}
			zones := zones.Of(&machine, by)
			for i := range zones {
				for j := range i {
					if zones[i].CPUs.Overlaps(zones[j].CPUs) || zones[i].Device == zones[j].Device {
						t.Errorf("%s by %s: %v and %v", preset.Name, by, zones[i], zones[j])
					}
				}
			}
		}
	}
}

// epycBy returns the driver of a node with 2 sockets. Each has 4 NUMA nodes, and each
// NUMA node has 2 level-3 caches with 8 cores each.
func epycBy(t *testing.T, by string) *Driver {
	t.Helper()
	disk := newDisk(t)
	disk.machine = sample.Machine(t, "epyc-2s-nps4")
	driver, err := disk.tryOpen(zonedBy(by))
	if err != nil {
		t.Fatal(err)
	}
	return driver
}

func TestClaimsOfCoarseAndFineZones(t *testing.T) {
	for _, row := range []struct {
		by, device, fields string
		cpus               int64
		want, mems         string
	}{
		{"socket", "socket-1", ``, 4, "64-65,192-193", "4-7"},
		{"socket", "socket-1", ``, 32, "64-79,192-207", "4-7"}, // a whole NUMA node
		{"socket", "socket-1", ``, 48, "64-87,192-215", "4-7"},
		{"socket", "socket-1", ``, 128, "64-127,192-255", "4-7"},
		{"socket", "socket-1", `"placement": "distribute"`, 8, "64,80,96,112,192,208,224,240", "4-7"},
		{"socket", "socket-1", `"placement": "distribute", "l3": "require"`, 8, "64-67,192-195", "4-7"},
		{"socket", "socket-1", `"placement": "spread"`, 8, "64,80,96,112,192,208,224,240", "4-7"},
		{"machine", "machine", ``, 128, "16-79,144-207", "0-7"},
		{"l3", "l3-9", ``, 4, "72-73,200-201", "4"},
		{"l3", "l3-9", `"l3": "require"`, 16, "72-79,200-207", "4"},
		{"l3", "numa-4", ``, 0, "", "4"},
	} {
		driver := epycBy(t, row.by)
		wanted := claim("a", result("r", row.device, row.cpus))
		if row.fields != "" {
			configured(wanted, fromClaim(row.fields))
		}
		mustPrepare(t, driver, wanted)
		share := grantOf(driver, "uid-a").Shares[0]
		if share.CPUs().String() != row.want || share.Mems().String() != row.mems {
			t.Errorf("%s %s, %d CPUs: %s of NUMA nodes %s because %s, want %s of %s", row.device, row.fields, row.cpus, share.CPUs(), share.Mems(), share.Zone().Why, row.want, row.mems)
		}
		_, single := share.Attributes()["resource.kubernetes.io/numaNode"]
		if wants := !strings.Contains(row.mems, "-"); single != wants {
			t.Errorf("%s: the container is told one NUMA node: %t, want %t", row.device, single, wants)
		}
	}
}

// The scheduler sees that a zone has enough CPUs, but not in which NUMA nodes.
func TestDistributedCPUsGoWhereThereAreSome(t *testing.T) {
	driver := epycBy(t, deviceclasses.ZoneBySocket)
	mustPrepare(t, driver, claim("big", result("r", "socket-1", 120)))
	wanted := configured(claim("a", result("r", "socket-1", 8)), fromClaim(`"placement": "distribute"`))
	mustPrepare(t, driver, wanted)
	if got := grantOf(driver, "uid-a").CPUs(); got.Size() != 8 {
		t.Errorf("cpus %s, want all 8 that are left", got)
	}
}

// A NUMA node with less gives what it has, and the choice says so.
func TestDistributedCPUsAreAsEvenAsTheyCanBe(t *testing.T) {
	for _, row := range []struct {
		cpus int64
		want [4]int // of NUMA nodes 4 to 7, of which the first has 2 CPUs left
		why  string
	}{
		{8, [4]int{2, 2, 2, 2}, "4 whole cores in 4 L3s of 4 zones"},
		{40, [4]int{2, 14, 12, 12}, "20 whole cores in 4 L3s of 4 zones; zone 4 has no more"},
		{60, [4]int{2, 20, 20, 18}, "30 whole cores in 7 L3s of 4 zones; zone 4 has no more"},
		{98, [4]int{2, 32, 32, 32}, "49 whole cores in 7 L3s of 4 zones; zone 4 has no more"},
	} {
		driver := epycBy(t, deviceclasses.ZoneBySocket)
		mustPrepare(t, driver, claim("first", result("r", "socket-1", 30)))
		mustPrepare(t, driver, configured(claim("a", result("r", "socket-1", row.cpus)), fromClaim(`"placement": "distribute"`)))
		share := grantOf(driver, "uid-a").Shares[0]
		var got [4]int
		machine := driver.Machine()
		for i := range got {
			zone, _ := machine.Zone(4 + i)
			got[i] = share.CPUs().Intersection(zone.CPUs).Size()
		}
		if got != row.want || share.Zone().Why != row.why {
			t.Errorf("%d CPUs: %v of the NUMA nodes because %q, want %v because %q", row.cpus, got, share.Zone().Why, row.want, row.why)
		}
	}
}

// An operator may change zoneBy at any time. Claims keep what they hold, and new claims
// cannot be placed on it. When the old claims are gone, everything is published.
func TestZoneByIsChangedUnderClaims(t *testing.T) {
	for _, change := range []struct {
		from, device, to string
		beside, after    []string
	}{
		{
			"", "numa-1", deviceclasses.ZoneByMachine,
			[]string{"machine: cpu=4 memory=1994Mi hugepages2Mi=32Mi", "numa-2: numaNode=2 memory=1Gi"},
			[]string{"machine: cpu=6 memory=2006Mi hugepages2Mi=32Mi", "numa-2: numaNode=2 memory=1Gi"},
		},
		{
			deviceclasses.ZoneByMachine, "machine", "", // it is unknown in which NUMA node its memory is
			[]string{"numa-0: numaNode=0 socket=0 memory=991Mi hugepages2Mi=16Mi", "numa-1: numaNode=1 socket=1 cpu=4 memory=991Mi hugepages2Mi=16Mi", "numa-2: numaNode=2 memory=1Gi"},
			nil,
		},
		{
			"", "numa-1", deviceclasses.ZoneByL3,
			[]string{
				"l3-0: numaNode=0 socket=0 l3=0 cpu=2", "numa-0: numaNode=0 socket=0 memory=1003Mi hugepages2Mi=16Mi",
				"l3-1: numaNode=1 socket=1 l3=1 cpu=2", "numa-1: numaNode=1 socket=1 memory=1003Mi hugepages2Mi=16Mi", "numa-2: numaNode=2 memory=1Gi",
			},
			nil,
		},
	} {
		disk := newDisk(t)
		before, err := disk.tryOpen(zonedBy(change.from))
		if err != nil {
			t.Fatal(err)
		}
		old := claim("old", consuming(result("r", change.device, 2), "memory=12Mi"))
		mustPrepare(t, before, old)
		if strays := strays(before.layout.machine, zonedBy(change.from), before.Grants()); len(strays) > 0 {
			t.Errorf("by %q: strays %v without a change", change.from, strays)
		}

		driver, err := disk.tryOpen(zonedBy(change.to))
		if err != nil {
			t.Fatal(err)
		}
		published := func() []string {
			machine := driver.Machine()
			strays := strays(&machine, driver.config, driver.Grants())
			return summaries(devices(&machine, driver.config, &dividing.Caches{}, holdings{strays: strays}, nil))
		}
		if got := published(); !slices.Equal(got, change.beside) {
			t.Errorf("from %q to %q:\n%s\nwant\n%s", change.from, change.to, strings.Join(got, "\n"), strings.Join(change.beside, "\n"))
		}
		mustPrepare(t, driver, old) // as if the kubelet had restarted
		if got, want := grantOf(driver, "uid-old"), grantOf(before, "uid-old"); !got.Equal(want) {
			t.Errorf("the old claim has %+v, had %+v", got, want)
		}
		mustPrepare(t, driver, claim("late", result("r", change.device, 2))) // allocated before the change, prepared after it
		assertConsistent(t, disk, driver)
		for _, uid := range []types.UID{"uid-old", "uid-late"} {
			if err := driver.Unprepare(uid); err != nil {
				t.Fatal(err)
			}
		}
		if change.after == nil {
			change.after = summaries(Devices(driver.Machine(), driver.config, nil))
		}
		if got := published(); !slices.Equal(got, change.after) {
			t.Errorf("from %q to %q, without claims:\n%s\nwant\n%s", change.from, change.to, strings.Join(got, "\n"), strings.Join(change.after, "\n"))
		}
	}
}

// A hybrid processor: zones of each type of cores have CPUs, and that of the NUMA node memory.
func TestZonesOfCoreTypes(t *testing.T) {
	disk := newDisk(t)
	disk.machine = sample.Machine(t, "hybrid-laptop")
	config := zonedBy(deviceclasses.ZoneByCoreType)
	config.Reserved = cpuset.New(0, 1)
	driver := disk.openWith(config)
	var got []string
	for _, device := range Devices(disk.machine, config, nil) {
		cpus, memory := device.Capacity["cpu"], device.Capacity["memory"]
		got = append(got, fmt.Sprintf("%s %s cpu=%s memory=%t", device.Name, *device.Attributes["coreType"].StringValue, cpus.Value.String(), memory.Value.Sign() > 0))
	}
	want := []string{"performance-0 performance cpu=10 memory=false", "efficient-0 efficient cpu=8 memory=false", "numa-0 mixed cpu=0 memory=true"}
	if !slices.Equal(got, want) {
		t.Errorf("zones %q, want %q", got, want)
	}
	mustPrepare(t, driver, claim("a", result("r", "efficient-0", 4)))
	if cpus := grantOf(driver, "uid-a").CPUs().String(); cpus != "12-15" {
		t.Errorf("CPUs %s of the efficient cores, want 12-15", cpus)
	}
}

// A claim of a zone with both types prefers one, and its status says what it got.
func TestCoreTypeIsAPreference(t *testing.T) {
	for _, row := range []struct {
		fields    string
		cpus      int64
		want, why string
	}{
		{`"coreType": "efficient"`, 4, "12-15", "; on efficient cores"},
		{`"coreType": "performance"`, 4, "2-5", "; on performance cores"},
		{`"coreType": "efficient"`, 12, "", "; on performance and efficient cores"},
	} {
		disk := newDisk(t)
		disk.machine = sample.Machine(t, "hybrid-laptop")
		config := zonedBy("")
		config.Reserved = cpuset.New(0, 1)
		driver := disk.openWith(config)
		mustPrepare(t, driver, configured(claim("a", result("r", "numa-0", row.cpus)), fromClaim(row.fields)))
		zone := grantOf(driver, "uid-a").Shares[0].Zone()
		if got := zone.CPUs.String(); row.want != "" && got != row.want || int64(zone.CPUs.Size()) != row.cpus || !strings.HasSuffix(zone.Why, row.why) {
			t.Errorf("%s, %d CPUs: %s because %s, want %s and the ending %q", row.fields, row.cpus, got, zone.Why, row.want, row.why)
		}
	}
}
