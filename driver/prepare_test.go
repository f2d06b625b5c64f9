package driver

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

func TestPrepareTwiceReturnsSameDevices(t *testing.T) {
	disk := newDisk(t)
	wanted := claim("a", result("cpus", "numa-1", 2), result("memory", "numa-2", 0))
	driver := disk.open()
	first := mustPrepare(t, driver, wanted)
	files := disk.files()
	again := mustPrepare(t, disk.open(), wanted) // after a restart
	if !reflect.DeepEqual(first, again) {
		t.Errorf("second prepare %+v, first %+v", again, first)
	}
	assertFiles(t, disk.files(), files)
	want := PreparedDevice{
		Request: "cpus", Pool: node, Device: "numa-1", ShareID: ptr.To(types.UID("share-cpus")),
		CDIDeviceIDs: []string{"dra.numa/claim=uid-a_cpus_numa-1"},
		Share:        &grantOf(driver, "uid-a").Shares[0],
		Attributes:   driver.planner().attributes(grantOf(driver, "uid-a").Shares[0]),
	}
	if !reflect.DeepEqual(first[0], want) {
		t.Errorf("device %+v, want %+v", first[0], want)
	}
}

func TestClaimsGetDisjointWholeCoresOfTheirZone(t *testing.T) {
	driver := newDisk(t).open()
	mustPrepare(t, driver, claim("a", result("r", "numa-1", 2)))
	mustPrepare(t, driver, claim("b", result("r", "numa-0", 2)))
	mustPrepare(t, driver, claim("c", result("r", "numa-1", 2)))
	assertDisjoint(t, driver)
	zones := testMachine().Zones
	for uid, zone := range map[types.UID]int{"uid-a": 1, "uid-b": 0, "uid-c": 1} {
		cpus := grantOf(driver, uid).CPUs()
		if first, _ := cpus.First(); cpus.Size() != 2 || first%2 != 0 || !cpus.IsSubsetOf(zones[zone].CPUs) {
			t.Errorf("claim %s has cpus %s, want one core of zone %d", uid, cpus, zone)
		}
	}
	if got := grantOf(driver, "uid-b").CPUs(); got != cpuset.New(2, 3) {
		t.Errorf("claim b has cpus %s, want 2-3: 0-1 are reserved", got)
	}
	if err := driver.Unprepare("uid-a"); err != nil {
		t.Fatal(err)
	}
	mustPrepare(t, driver, claim("d", result("r", "numa-1", 2)))
	if _, _, err := driver.Prepare(claim("e", result("r", "numa-1", 2)), nil); err == nil {
		t.Error("a full zone gave more CPUs")
	}
}

func TestClaimAllocatedAnewIsPlannedAnew(t *testing.T) {
	driver := newDisk(t).open()
	mustPrepare(t, driver, claim("a", result("r", "numa-1", 4)))
	mustPrepare(t, driver, claim("a", result("r", "numa-0", 2)))
	if got := grantOf(driver, "uid-a").CPUs(); got != cpuset.New(2, 3) {
		t.Errorf("cpus %s, want 2-3", got)
	}
}

func TestUnprepareOfUnknownClaimIsDone(t *testing.T) {
	driver := newDisk(t).open()
	if err := driver.Unprepare("uid-never"); err != nil {
		t.Error(err)
	}
	if err := driver.Unprepare("../checkpoint"); err == nil {
		t.Error("a path was taken for a uid")
	}
}

func TestAdminAccessHoldsNothing(t *testing.T) {
	disk := newDisk(t)
	driver := disk.open()
	want := disk.files()
	admin := result("watch", "numa-1", 4)
	admin.AdminAccess, admin.ConsumedCapacity = ptr.To(true), nil
	devices := mustPrepare(t, driver, claim("a", admin))
	if len(devices) != 1 || len(devices[0].CDIDeviceIDs) != 0 {
		t.Errorf("devices %+v, want one without CDI device", devices)
	}
	assertFiles(t, disk.files(), want)
}

func TestRebootForgetsOnlyWhatTheMachineLost(t *testing.T) {
	disk := newDisk(t)
	driver := disk.open()
	mustPrepare(t, driver, claim("a", result("r", "numa-0", 2)))
	mustPrepare(t, driver, claim("b", result("r", "numa-1", 2)))
	config := testConfig()
	config.Reserved = grantOf(driver, "uid-b").CPUs()
	same, err := disk.tryOpen(config)
	if err != nil || len(same.grants) != 2 {
		t.Fatalf("same boot: grants %v, %v, want both: their containers run", same.grants, err)
	}
	config.BootID = "boot-2"
	rebooted := disk.openWith(config)
	if _, kept := rebooted.grants.Find("uid-a"); !kept || len(rebooted.grants) != 1 {
		t.Errorf("grants %v, want that of claim a only", rebooted.grants)
	}
	if _, left := disk.files()["dra.numa-claim_uid-b.json"]; left {
		t.Error("the CDI spec of the forgotten claim is still there")
	}
}

func TestPrepareRefuses(t *testing.T) {
	disk := newDisk(t)
	driver := disk.open()
	want := disk.files()
	change := func(f func(*resourceapi.ResourceClaim)) *resourceapi.ResourceClaim {
		c := claim("a", result("r", "numa-1", 2))
		f(c)
		return c
	}
	only := func(c *resourceapi.ResourceClaim) *resourceapi.DeviceRequestAllocationResult {
		return &c.Status.Allocation.Devices.Results[0]
	}
	for name, row := range map[string]struct {
		claim *resourceapi.ResourceClaim
		want  string
	}{
		"not allocated":       {change(func(c *resourceapi.ResourceClaim) { c.Status.Allocation = nil }), "not allocated"},
		"no consumedCapacity": {change(func(c *resourceapi.ResourceClaim) { only(c).ConsumedCapacity = nil }), "DRAConsumableCapacity"},
		"unknown device":      {change(func(c *resourceapi.ResourceClaim) { only(c).Device = "numa-7" }), "this node has numa-0, numa-1, numa-2"},
		"other pool":          {change(func(c *resourceapi.ResourceClaim) { only(c).Pool = "node-2" }), `pool "node-2"`},
		"other driver":        {change(func(c *resourceapi.ResourceClaim) { only(c).Driver = "dra.net" }), "none of driver dra.numa"},
		"too many CPUs": {change(func(c *resourceapi.ResourceClaim) {
			only(c).ConsumedCapacity[deviceclasses.CapacityCPU] = resource.MustParse("1e18")
		}), "allowed are 0 to 8192"},
		"no number of CPUs": {change(func(c *resourceapi.ResourceClaim) {
			only(c).ConsumedCapacity[deviceclasses.CapacityCPU] = resource.MustParse(object.EndlessAmount)
		}), "allowed are 0 to 8192"},
		"bad request":   {change(func(c *resourceapi.ResourceClaim) { only(c).Request = "a b" }), `request "a b"`},
		"bad namespace": {change(func(c *resourceapi.ResourceClaim) { c.Namespace = "--cpus=0" }), `claim namespace "--cpus=0"`},
		"parameters": {change(func(c *resourceapi.ResourceClaim) {
			c.Status.Allocation.Devices.Config = []resourceapi.DeviceAllocationConfiguration{{
				DeviceConfiguration: resourceapi.DeviceConfiguration{Opaque: &resourceapi.OpaqueDeviceConfiguration{
					Driver: Name, Parameters: runtime.RawExtension{Raw: []byte(`{"kind":"Pod"}`)},
				}},
			}}
		}), "status.allocation.devices.config[0].opaque.parameters: kind: \"Pod\", allowed are ZoneConfig, DeviceConfig, CacheConfig, PerformanceConfig"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := driver.Prepare(row.claim, nil)
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("error %v, want %q", err, row.want)
			}
			if name == "no consumedCapacity" && !errors.Is(err, ErrNoConsumedCapacity) {
				t.Errorf("error %v is not ErrNoConsumedCapacity", err)
			}
			assertFiles(t, disk.files(), want)
		})
	}
}

// From Kubernetes 1.38 on, results may spell capacities with the driver's domain.
func TestPrepareReadsBothSpellingsOfCapacities(t *testing.T) {
	type amounts = map[resourceapi.QualifiedName]resource.Quantity
	shares := make([]ledger.Share, 0, 2)
	for _, prefix := range []resourceapi.QualifiedName{"", Name + "/"} {
		driver := newDisk(t).open()
		wanted := claim("a", result("r", "numa-0", 2))
		wanted.Status.Allocation.Devices.Results[0].ConsumedCapacity = amounts{
			prefix + "cpu": resource.MustParse("2"), prefix + "memory": resource.MustParse("1Gi"), prefix + "hugepages2Mi": resource.MustParse("4Mi"),
		}
		mustPrepare(t, driver, wanted)
		shares = append(shares, grantOf(driver, "uid-a").Shares[0])
	}
	if !shares[0].Equal(shares[1]) || shares[0].CPUs().Size() != 2 || shares[0].Zone().MemoryBytes != 1<<30 || shares[0].Zone().HugepageBytes["2Mi"] != 4<<20 {
		t.Errorf("shares %+v and %+v, want the same of 2 CPUs, 1 GiB and 2 hugepages", shares[0].Kind, shares[1].Kind)
	}
}
