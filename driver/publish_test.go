package driver

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// sound is a node on which every cgroup is as it should be.
func sound(types.UID, ledger.Share) string { return "" }

func TestAFunctionThatIsGoneIsAProblemOfItsClaim(t *testing.T) {
	machine := testMachine()
	machine.PCI = []numa.PCIFunction{{Address: "0000:3b:00.0", Kind: numa.NVMeFunction}}
	sample, err := ledger.DecodeCheckpoint([]byte(files.Read(t, "ledger/testdata/checkpoint.json")))
	if err != nil {
		t.Fatal(err)
	}
	problems, tainted := problemsOf(&machine, sample.Grants[2:], nil, sound)
	for device, address := range map[string]string{"nvme-0000-3b-00-0": "", "nic-0000-5e-00-2": "0000:5e:00.2", "gpu-0000-17-00-0": "0000:17:00.0"} {
		var want []string
		if address != "" {
			want = []string{"claim default/c: PCI function " + address + " is gone"}
		}
		if !slices.Equal(problems[device], want) {
			t.Errorf("problems of %s are %q, want %q", device, problems[device], want)
		}
	}
	if len(tainted) > 0 {
		t.Errorf("faults of zones %v, want none", tainted)
	}
}

// Devices are built again only if what they are built from has changed.
func TestPublishRenewsWhatHasChanged(t *testing.T) {
	driver := newDisk(t).open()
	mustPrepare(t, driver, claim("a", result("r", "numa-1", 2)))
	renewed := func(what string, want bool, publication Publication) {
		t.Helper()
		if publication.Renewed != want || len(publication.Devices) == 0 {
			t.Errorf("%s: renewed %t with %d devices, want %t", what, publication.Renewed, len(publication.Devices), want)
		}
	}
	faults := func(claimUID types.UID, _ ledger.Share) string {
		return map[types.UID]string{"uid-a": "root invalid"}[claimUID]
	}
	renewed("first", true, driver.Publish(sound, cpuset.Set{}))
	renewed("nothing new", false, driver.Publish(sound, cpuset.Set{}))
	renewed("a partition is lost", true, driver.Publish(faults, cpuset.Set{}))
	renewed("it is still lost", false, driver.Publish(faults, cpuset.Set{}))
	renewed("it is back", true, driver.Publish(sound, cpuset.Set{}))
	driver.SetMachine(driver.Machine())
	renewed("the machine was read again, and is the same", false, driver.Publish(sound, cpuset.Set{}))
}

func TestBlockedCPUsDoNotCount(t *testing.T) {
	driver := newDisk(t).open()
	cpus := func(publication Publication, device string) (count int64, taint string) {
		t.Helper()
		for _, d := range publication.Devices {
			if d.Name == device {
				for _, tainted := range d.Taints {
					taint = tainted.Value
				}
				capacity := d.Capacity[deviceclasses.CapacityCPU]
				return capacity.Value.Value(), taint
			}
		}
		t.Fatalf("%s is not published", device)
		return 0, ""
	}
	before, _ := cpus(driver.Publish(sound, cpuset.Set{}), "numa-1")
	first := driver.Publish(sound, cpuset.New(4, 5))
	if now, taint := cpus(first, "numa-1"); !first.Renewed || now != before-2 || taint != "" {
		t.Errorf("numa-1 has %d cpus and taint %q, want %d and none", now, taint, before-2)
	}
	if driver.Publish(sound, cpuset.New(4, 5)).Renewed {
		t.Error("the same CPUs are published again")
	}
	all := driver.Publish(sound, cpuset.New(4, 5, 6, 7))
	if now, taint := cpus(all, "numa-1"); now != 0 || taint != deviceclasses.FaultBlocked {
		t.Errorf("numa-1 has %d cpus and taint %q, want none and %q", now, taint, deviceclasses.FaultBlocked)
	}
	if _, taint := cpus(all, "numa-0"); taint != "" {
		t.Errorf("numa-0 has taint %q", taint)
	}
	if now, taint := cpus(driver.Publish(sound, cpuset.Set{}), "numa-1"); now != before || taint != "" {
		t.Errorf("later numa-1 has %d cpus and taint %q, want %d and none", now, taint, before)
	}
}

// A cache without CPUs is not published, so the zone with the memory of its NUMA node
// has the taint.
func TestBlockedCachesLeaveATaint(t *testing.T) {
	driver, err := newDisk(t).tryOpen(zonedBy(deviceclasses.ZoneByL3))
	if err != nil {
		t.Fatal(err)
	}
	describe := func(blocked cpuset.Set) (lines []string) {
		for _, device := range driver.Publish(sound, blocked).Devices {
			line := summary(device)
			for _, taint := range device.Taints {
				line += " " + taint.Value
			}
			lines = append(lines, line)
		}
		return lines
	}
	for _, row := range []struct {
		blocked cpuset.Set
		want    []string
	}{
		{cpuset.New(4, 5), []string{"l3-1: numaNode=1 socket=1 l3=1 cpu=2", "numa-1: numaNode=1 socket=1 memory=1003Mi hugepages2Mi=16Mi"}},
		{cpuset.New(4, 5, 6, 7), []string{"numa-1: numaNode=1 socket=1 memory=1003Mi hugepages2Mi=16Mi " + deviceclasses.FaultBlocked}},
	} {
		want := slices.Concat([]string{"l3-0: numaNode=0 socket=0 l3=0 cpu=2", "numa-0: numaNode=0 socket=0 memory=1003Mi hugepages2Mi=16Mi"}, row.want, []string{"numa-2: numaNode=2 memory=1Gi"})
		if got := describe(row.blocked); !slices.Equal(got, want) {
			t.Errorf("blocked %s:\n%s\nwant\n%s", row.blocked, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestBlockedCPUsAreThoseOfNoGrant(t *testing.T) {
	driver := newDisk(t).open()
	mustPrepare(t, driver, claim("a", result("r", "numa-0", 2)))
	if _, err := driver.Observe([]Held{{Cgroup: "a", CPUs: cpuset.New(2, 3)}, {Cgroup: "other", CPUs: cpuset.New(6)}}); err != nil {
		t.Fatal(err)
	}
	if got := driver.Blocked(); got != cpuset.New(6) {
		t.Errorf("blocked are %s, want 6", got)
	}
}

// The scheduler takes the first zone with room, and evaluates selectors before it looks for room.
// Each write wakes every pending pod, so an order is new only if another zone comes first for
// some claim, or if another thing is written.
func TestZonesFollowTheirOrder(t *testing.T) {
	lost := func(types.UID, ledger.Share) string { return "root invalid" }
	for order, want := range map[string]struct{ empty, equal string }{ // zone 0 has 2 free CPUs, zone 1 has 4, and zone 2 has none at all
		"":                            {"0 1 2", "0 1 2"},
		deviceclasses.ZoneOrderStatic: {"0 1 2", "0 1 2"},
		deviceclasses.ZoneOrderPack:   {"0 1 2", "0 1 2"},
		deviceclasses.ZoneOrderSpread: {"1 0 2", "0 1 2"},
	} {
		t.Run("zoneOrder="+order, func(t *testing.T) {
			config := testConfig()
			config.ZoneOrder = order
			driver := newDisk(t).openWith(config)
			is := func(when, want string, fault func(types.UID, ledger.Share) string) {
				t.Helper()
				var ids []string
				for _, device := range driver.Publish(fault, cpuset.Set{}).Devices {
					ids = append(ids, strings.TrimPrefix(device.Name, "numa-"))
				}
				if got := strings.Join(ids, " "); got != want {
					t.Errorf("%s: the order of zones is %s, want %s", when, got, want)
				}
			}
			is("empty", want.empty, sound)
			mustPrepare(t, driver, claim("a", result("r", "numa-1", 2)))
			is("as much is free", want.equal, sound)
			mustPrepare(t, driver, claim("b", result("r", "numa-1", 2)))
			is("the second zone is full", "0 1 2", sound)
			driver.SetMachine(driver.Machine())
			is("the machine is read again, and is the same", "0 1 2", sound)
			is("another thing changes", "0 2 1", lost)
			is("and back", "0 2 1", sound)
			mustPrepare(t, driver, claim("c", result("r", "numa-0", 2)))
			is("both are full", "2 0 1", sound)
			for _, uid := range []types.UID{"uid-a", "uid-b"} {
				if err := driver.Unprepare(uid); err != nil {
					t.Fatal(err)
				}
			}
			is("one is free again", "1 2 0", sound)
		})
	}
}

// A device that a claim cannot have may stay the first one: isolated CPUs, or a zone with less
// left than the claim wants.
func TestTheOrderChangesBehindAFirstDeviceThatClaimsCannotHave(t *testing.T) {
	type step struct {
		device string // of which a claim takes so many CPUs
		cpus   int64
		want   string
	}
	for order, row := range map[string]struct {
		isolated int // cores of each zone
		steps    []step
	}{
		deviceclasses.ZoneOrderPack: {0, []step{ // 16 CPUs each, of which 2 of numa-0 are reserved
			{"numa-2", 2, "numa-0 numa-1 numa-2 numa-3"}, // claims of up to 14 get numa-0, larger ones numa-1
			{"numa-0", 12, "numa-0 numa-2 numa-1 numa-3"},
			{"numa-1", 16, "numa-0 numa-2 numa-1 numa-3"}, // it is full, and that gives no claim another zone
			{"numa-3", 6, "numa-0 numa-3 numa-2 numa-1"},
		}},
		deviceclasses.ZoneOrderSpread: {5, []step{ // 10 isolated ones each, and 6 others
			{"numa-0", 2, "isolated-0 isolated-1 isolated-2 isolated-3 numa-1 numa-2 numa-3 numa-0"},
			{"numa-1", 2, "isolated-0 isolated-1 isolated-2 isolated-3 numa-2 numa-3 numa-1 numa-0"},
			{"isolated-0", 2, "isolated-1 isolated-2 isolated-3 isolated-0 numa-2 numa-3 numa-1 numa-0"},
			{"numa-1", 4, "isolated-1 isolated-2 isolated-3 isolated-0 numa-2 numa-3 numa-1 numa-0"},
			{"isolated-3", 2, "isolated-1 isolated-2 isolated-3 isolated-0 numa-2 numa-3 numa-1 numa-0"},
		}},
	} {
		disk := newDisk(t)
		disk.machine = sample.Read(t, fake.Machine{Make: fake.AMD, Sockets: 4, L3sPerSocket: 1, CoresPerSocket: 8, Threads: 2, MemoryBytes: 1 << 30})
		isolated := cpuset.Set{}
		for _, core := range disk.machine.Cores {
			if *core.ID >= 8-row.isolated {
				isolated = isolated.Union(core.CPUs)
			}
		}
		disk.machine.Isolated = &isolated
		config := testConfig()
		config.ZoneOrder = order
		driver := disk.openWith(config)
		driver.Publish(sound, cpuset.Set{})
		for i, s := range row.steps {
			mustPrepare(t, driver, claim(string(rune('a'+i)), result("r", s.device, s.cpus)))
			var names []string
			for _, device := range driver.Publish(sound, cpuset.Set{}).Devices {
				names = append(names, device.Name)
			}
			if got := strings.Join(names, " "); got != s.want {
				t.Errorf("%s, step %d: %s, want %s", order, i, got, s.want)
			}
		}
	}
}
