package driver

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/pick"
)

// without returns the machine with these CPUs offline. Cores and caches without CPUs
// are gone.
func without(machine numa.Machine, offline cpuset.Set) numa.Machine {
	machine.Online = machine.Online.Difference(offline)
	var cores []numa.Core
	for _, core := range machine.Cores {
		if core.CPUs = core.CPUs.Difference(offline); !core.CPUs.IsEmpty() {
			cores = append(cores, core)
		}
	}
	caches := func(all []numa.Cache) (online []numa.Cache) {
		for _, cache := range all {
			if cache.CPUs = cache.CPUs.Difference(offline); !cache.CPUs.IsEmpty() {
				online = append(online, cache)
			}
		}
		return online
	}
	machine.Cores, machine.L2s, machine.L3s = cores, caches(machine.L2s), caches(machine.L3s)
	var zones []numa.Zone
	for _, zone := range machine.Zones {
		zone.CPUs = zone.CPUs.Difference(offline)
		zones = append(zones, zone)
	}
	machine.Zones = zones
	return machine
}

func TestGrantKeepsCPUsThatGoOffline(t *testing.T) {
	disk := newDisk(t)
	driver := disk.open()
	wanted := claim("a", result("r", "numa-1", 2))
	mustPrepare(t, driver, wanted) // 4-5
	files := disk.files()
	smaller := without(testMachine(), cpuset.New(5, 7))
	driver.SetMachine(smaller)
	if !reflect.DeepEqual(driver.Machine(), smaller) {
		t.Errorf("machine %+v", driver.Machine())
	}
	if free := driver.planner().free(); free != cpuset.New(2, 3, 6) {
		t.Errorf("free are %s, want 2-3,6", free)
	}
	mustPrepare(t, driver, wanted)
	assertFiles(t, disk.files(), files)
	if _, _, err := driver.Prepare(claim("b", result("r", "numa-1", 2)), nil); err == nil {
		t.Error("a CPU that is offline was given away")
	}
	disk.machine = smaller
	if driver = disk.open(); grantOf(driver, "uid-a").CPUs() != cpuset.New(4, 5) {
		t.Errorf("after a restart grants are %v", driver.grants)
	}
	driver.SetMachine(testMachine())
	if free := driver.planner().free(); free != cpuset.New(2, 3, 6, 7) {
		t.Errorf("free are %s, want 2-3,6-7", free)
	}
	assertConsistent(t, disk, driver)
}

// A machine that gets more CPUs while the daemon runs has more to give.
func TestCPUsThatComeOnlineAreGivenOut(t *testing.T) {
	disk := newDisk(t)
	disk.machine = without(testMachine(), cpuset.New(6, 7))
	driver := disk.open()
	wanted := claim("a", result("r", "numa-1", 4))
	if _, _, err := driver.Prepare(wanted, nil); err == nil {
		t.Fatal("4 CPUs of 2")
	}
	driver.SetMachine(testMachine())
	mustPrepare(t, driver, wanted)
	if got := grantOf(driver, "uid-a").CPUs(); got != cpuset.New(4, 5, 6, 7) {
		t.Errorf("cpus %s, want 4-7", got)
	}
}

// The whole NUMA node may disappear. A kubelet that restarts prepares its claims again.
func TestClaimOfAZoneThatIsGoneIsPreparedAgain(t *testing.T) {
	disk := newDisk(t)
	driver := disk.open()
	wanted := claim("a", result("r", "numa-1", 2))
	mustPrepare(t, driver, wanted)
	files := disk.files()
	smaller := without(testMachine(), cpuset.New(4, 5, 6, 7))
	smaller.Zones = smaller.Zones[:1]
	driver.SetMachine(smaller)
	devices := mustPrepare(t, driver, wanted)
	if len(devices) != 1 || devices[0].Share.CPUs() != cpuset.New(4, 5) || devices[0].Attributes["dra.numa/cpus"].StringValue == nil {
		t.Errorf("devices %+v", devices)
	}
	assertFiles(t, disk.files(), files)
	if _, _, err := driver.Prepare(claim("b", result("r", "numa-1", 2)), nil); err == nil {
		t.Error("another claim got a zone that is gone")
	}
	if _, report := disk.recover(claims{"uid-a": wanted}); lines(report) != "kept claim default/a with cpus 4-5" {
		t.Errorf("report %s", lines(report))
	}
	if err := driver.Unprepare("uid-a"); err != nil {
		t.Fatal(err)
	}
	assertConsistent(t, disk, driver)
}

// Run it with -race.
func TestEverythingAtOnce(t *testing.T) {
	disk := newDisk(t)
	driver := disk.open()
	var running sync.WaitGroup
	for i := range 4 {
		running.Go(func() {
			wanted := claim(fmt.Sprintf("c-%d", i), result("r", fmt.Sprintf("numa-%d", i%2), 1))
			for range 20 {
				// A CPU may be offline at that moment.
				if _, _, err := driver.Prepare(wanted, []*corev1.Pod{podOf("main:c-0,c-1,c-2,c-3")}); err != nil && !errors.Is(err, pick.ErrNotEnough) {
					t.Error(err)
				}
				driver.Pinned([]string{"dra.numa/claim=uid-c-0_r_numa-0"})
				driver.SharedPool()
				if err := driver.Unprepare(wanted.UID); err != nil {
					t.Error(err)
				}
			}
		})
	}
	running.Go(func() {
		for i := range 50 {
			driver.SetMachine(without(testMachine(), cpuset.New(2+i%6)))
			if _, err := driver.Observe([]Held{{Cgroup: "c", CPUs: cpuset.New(3)}}); err != nil {
				t.Error(err)
			}
			if driver.Machine().Online.Size() != 7 || len(driver.Grants()) > 4 {
				t.Errorf("machine with cpus %s, grants %v", driver.Machine().Online, driver.Grants())
			}
		}
	})
	running.Wait()
	assertConsistent(t, disk, driver)
	if len(driver.grants) > 0 {
		t.Errorf("grants %v are left", driver.grants)
	}
}

func TestPinnedIsTheUnionOfTheDevices(t *testing.T) {
	driver := newDisk(t).open()
	a := configured(claim("a", counted(result("r", "numa-0", 2)), counted(result("m", "numa-2", 0))), fromClaim(`"memoryPolicy": "bind"`))
	b := configured(claim("b", counted(result("r", "numa-1", 2))), fromClaim(`"mixed": true`))
	c := claim("c", result("r", "numa-1", 2)) // nobody counted memory for it
	d := configured(claim("d", counted(result("r", "numa-2", 0))), fromClaim(`"memoryPolicy": "preferred"`))
	for _, claim := range []*resourceapi.ResourceClaim{a, b, c, d} {
		mustPrepare(t, driver, claim)
	}
	set := cpuset.New
	for name, row := range map[string]struct {
		ids  []string
		want Pinned
		env  string
	}{
		"nothing":   {nil, Pinned{}, ""},
		"of others": {[]string{"gpu.example.com/gpu=0", "dra.numa/claim=uid-z_r_numa-0"}, Pinned{}, ""},
		"one": {[]string{"dra.numa/claim=uid-b_r_numa-1"}, Pinned{
			CPUs: set(4, 5), Mems: set(1), PolicyMems: set(1), Mixed: true, Claims: []string{"default/b"},
		}, "DRA_NUMA_CPUS=4-5 DRA_NUMA_MEMS=1 DRA_NUMA_SHARED_CPUS=0-1,6-7"},
		"memory": {[]string{"dra.numa/claim=uid-a_m_numa-2"}, Pinned{
			Mems: set(2), PolicyMems: set(2), MemoryPolicy: "bind", Claims: []string{"default/a"},
		}, "DRA_NUMA_CPUS= DRA_NUMA_MEMS=2"},
		"both of a claim": {[]string{"dra.numa/claim=uid-a_m_numa-2", "dra.numa/claim=uid-a_r_numa-0"}, Pinned{
			CPUs: set(2, 3), Mems: set(0, 2), PolicyMems: set(0, 2), MemoryPolicy: "bind", Claims: []string{"default/a"},
		}, "DRA_NUMA_CPUS=2-3 DRA_NUMA_MEMS=0,2"},
		"of two claims": {[]string{"x/y=z", "dra.numa/claim=uid-c_r_numa-1", "dra.numa/claim=uid-a_r_numa-0"}, Pinned{
			CPUs: set(2, 3, 6, 7), Mems: set(0), PolicyMems: set(0), MemoryPolicy: "bind", Claims: []string{"default/a", "default/c"},
		}, "DRA_NUMA_CPUS=2-3,6-7 DRA_NUMA_MEMS=0"},
		"mixed, and CPUs": {[]string{"dra.numa/claim=uid-b_r_numa-1", "dra.numa/claim=uid-a_r_numa-0"}, Pinned{
			CPUs: set(2, 3), Mems: set(0, 1), PolicyMems: set(0, 1), MemoryPolicy: "bind", Claims: []string{"default/a", "default/b"},
		}, "DRA_NUMA_CPUS=2-3 DRA_NUMA_MEMS=0-1"},
		"mixed, and CPUs of a claim after it": {[]string{"dra.numa/claim=uid-b_r_numa-1", "dra.numa/claim=uid-c_r_numa-1"}, Pinned{
			CPUs: set(6, 7), Mems: set(1), PolicyMems: set(1), Claims: []string{"default/b", "default/c"},
		}, "DRA_NUMA_CPUS=6-7 DRA_NUMA_MEMS=1"},
		"mixed, and memory": {[]string{"dra.numa/claim=uid-b_r_numa-1", "dra.numa/claim=uid-a_m_numa-2"}, Pinned{
			CPUs: set(4, 5), Mems: set(1, 2), PolicyMems: set(1, 2), Mixed: true, MemoryPolicy: "bind", Claims: []string{"default/a", "default/b"},
		}, "DRA_NUMA_CPUS=4-5 DRA_NUMA_MEMS=1-2 DRA_NUMA_SHARED_CPUS=0-1,6-7"},
		"CPUs only": {[]string{"dra.numa/claim=uid-c_r_numa-1"}, Pinned{
			CPUs: set(6, 7), PolicyMems: set(1), Claims: []string{"default/c"},
		}, "DRA_NUMA_CPUS=6-7 DRA_NUMA_MEMS="},
		"CPUs only, and memory elsewhere": {[]string{"dra.numa/claim=uid-c_r_numa-1", "dra.numa/claim=uid-a_m_numa-2"}, Pinned{
			CPUs: set(6, 7), Mems: set(2), PolicyMems: set(2), MemoryPolicy: "bind", Claims: []string{"default/a", "default/c"},
		}, "DRA_NUMA_CPUS=6-7 DRA_NUMA_MEMS=2"},
		"preferred memory": {[]string{"dra.numa/claim=uid-d_r_numa-2"}, Pinned{
			PolicyMems: set(2), MemoryPolicy: "preferred", Claims: []string{"default/d"},
		}, "DRA_NUMA_CPUS= DRA_NUMA_MEMS="},
	} {
		got, ok := driver.Pinned(row.ids)
		if env := strings.Join(got.Environment(), " "); env != row.env {
			t.Errorf("%s: environment %s, want %s", name, env, row.env)
		}
		got.Shares = nil
		if !reflect.DeepEqual(got, row.want) || ok != (len(row.want.Claims) > 0) {
			t.Errorf("%s: %+v, %t, want %+v", name, got, ok, row.want)
		}
	}
}

// The CPUs of a level-3 cache have no memory: another request of the claim has it.
func TestBindIsAboutTheMemoryOfTheClaim(t *testing.T) {
	driver := newDisk(t).open()
	bind := fromClaim(`"memoryPolicy": "bind"`)
	mustPrepare(t, driver, configured(claim("a", result("cache", "numa-0", 2), counted(result("memory", "numa-2", 0))), bind))
	for ids, want := range map[string]string{"cache": "", "cache memory": "2"} {
		var devices []string
		for request := range strings.FieldsSeq(ids) {
			devices = append(devices, "dra.numa/claim=uid-a_"+request+"_"+map[string]string{"cache": "numa-0", "memory": "numa-2"}[request])
		}
		if got, _ := driver.Pinned(devices); got.PolicyMems.String() != want || got.Mems.String() != want {
			t.Errorf("%s: bound to %q, policy %s about %q, want %q", ids, got.Mems, got.MemoryPolicy, got.PolicyMems, want)
		}
	}
	_, _, err := driver.Prepare(configured(claim("b", result("r", "numa-1", 2)), bind), nil)
	if !errors.Is(err, errBindsNothing) {
		t.Errorf("error %v, want that there is nothing to bind", err)
	}
}

// The kernel refuses a policy about NUMA nodes of which none has memory, and the container
// would not start.
func TestPolicyIsAboutNodesWithMemory(t *testing.T) {
	driver := newDisk(t).open()
	mustPrepare(t, driver, configured(claim("a", result("r", "numa-1", 2)), fromClaim(`"memoryPolicy": "interleave"`)))
	machine := driver.Machine()
	machine.Zones = slices.Clone(machine.Zones)
	for _, row := range []struct {
		bytes *uint64
		want  string
	}{{nil, "1"}, {new(uint64(0)), ""}, {new(uint64(1 << 30)), "1"}} {
		machine.Zones[1].MemoryBytes = row.bytes
		driver.SetMachine(machine)
		if got, _ := driver.Pinned([]string{"dra.numa/claim=uid-a_r_numa-1"}); got.PolicyMems.String() != row.want {
			t.Errorf("the policy is about NUMA nodes %q, want %q", got.PolicyMems, row.want)
		}
	}
}

// While several pods use a claim, the kernel keeps nobody off its CPUs.
func TestPoolOfADowngradedPartition(t *testing.T) {
	driver := newDisk(t).open()
	mustPrepare(t, driver, claim("a", result("r", "numa-0", 2))) // 2-3
	for _, step := range []struct {
		downgraded         cpuset.Set
		renewed, restricts bool
	}{
		{cpuset.Set{}, false, false},
		{cpuset.New(2, 3), true, true},
		{cpuset.New(2, 3), false, true},
		{cpuset.New(4), true, false}, // of a claim that is gone
		{cpuset.Set{}, true, false},
	} {
		renewed := driver.SetDowngraded(step.downgraded)
		if pool, restricts := driver.SharedPool(); renewed != step.renewed || restricts != step.restricts || pool.Overlaps(cpuset.New(2, 3)) {
			t.Errorf("downgraded %s: renewed %t, pool %s, restricts %t, want %+v", step.downgraded, renewed, pool, restricts, step)
		}
	}
}

func TestPool(t *testing.T) {
	two := func(config ...resourceapi.DeviceAllocationConfiguration) []*resourceapi.ResourceClaim {
		return []*resourceapi.ResourceClaim{configured(claim("a", result("r", "numa-0", 2)), config...)}
	}
	all, rest := cpuset.New(0, 1, 2, 3, 4, 5, 6, 7), cpuset.New(0, 1, 4, 5, 6, 7)
	for name, row := range map[string]struct {
		exclusivity Exclusivity
		claims      []*resourceapi.ResourceClaim
		pod         string
		pool        cpuset.Set
		restrict    bool
	}{
		"no claim":             {ExclusivityCooperative, nil, "", all, false},
		"memory only":          {ExclusivityCooperative, []*resourceapi.ResourceClaim{claim("a", result("r", "numa-2", 0))}, "", all, false},
		"kernel":               {ExclusivityKernel, two(), "", rest, false},
		"kernel, whole pod":    {ExclusivityKernel, two(), "main:a main:a", rest, false},
		"kernel, shared":       {ExclusivityKernel, two(), "main:a main:a main:", rest, true},
		"kernel, mixed":        {ExclusivityKernel, two(fromClaim(`"mixed": true`)), "", rest, true},
		"kernel, no partition": {ExclusivityKernel, two(fromClaim(`"partition": "none"`)), "", rest, true},
		"kernel, one of two":   {ExclusivityKernel, append(two(), configured(claim("b", result("r", "numa-1", 4)), fromClaim(`"mixed": true`))), "", cpuset.New(0, 1), true},
		"cooperative":          {ExclusivityCooperative, two(), "", rest, true},
	} {
		disk := newDisk(t)
		config := testConfig()
		config.Exclusivity = row.exclusivity
		driver, err := disk.tryOpen(config)
		if err != nil {
			t.Fatal(err)
		}
		for _, wanted := range row.claims {
			mustPrepare(t, driver, wanted, podOf(row.pod))
		}
		if pool, restrict := driver.SharedPool(); pool != row.pool || restrict != row.restrict {
			t.Errorf("%s: pool %s, restrict %t, want %s, %t", name, pool, restrict, row.pool, row.restrict)
		}
		driver.SetMachine(without(testMachine(), cpuset.New(0, 1, 4, 5, 6, 7)))
		if pool, restrict := driver.SharedPool(); len(row.claims) > 0 && row.pool != all && (!pool.IsEmpty() || restrict) {
			t.Errorf("%s: with nothing else online the pool is %s, restrict %t", name, pool, restrict)
		}
		for _, uid := range []types.UID{"uid-a", "uid-b"} {
			if err := driver.Unprepare(uid); err != nil {
				t.Fatal(err)
			}
		}
		if pool, restrict := driver.SharedPool(); pool != driver.Machine().Online || restrict {
			t.Errorf("%s: after all the pool is %s, restrict %t", name, pool, restrict)
		}
	}
}
