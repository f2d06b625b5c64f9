package kubeletplugin

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// startServing answers as the kubelet's calls are answered, with the guards of a
// publisher that is ready.
func startServing(t *testing.T) *claimServer {
	t.Helper()
	c := newCluster()
	p := startReady(t, c)
	d := recoveredDriver(t)
	return &claimServer{
		Plugin: &Plugin{driver: d, statuses: openStatuses(t, nil), leftovers: newLeftovers(c, d)},
		client: c, guards: p.guards, fatal: func(err error) { t.Errorf("fatal: %v", err) },
		releases: newReleases(),
	}
}

func testConfig() driver.Config {
	return driver.Config{NodeName: node, BootID: testBoot, Exclusivity: driver.ExclusivityKernel}
}

// recoveredDriver has the test machine, and no grants.
func recoveredDriver(t *testing.T) *driver.Driver {
	t.Helper()
	return recoveredWith(t, testConfig())
}

func recoveredWith(t *testing.T, config driver.Config) *driver.Driver {
	t.Helper()
	d, err := driver.Open(testMachine(), config, files.OpenTemp(t), files.OpenTemp(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Recover(nil, nil); err != nil {
		t.Fatal(err)
	}
	return d
}

// allocated is a claim of two CPUs of the only zone.
func allocated(name string, uid types.UID) *resourceapi.ResourceClaim {
	claim := claim(name, uid)
	claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{{
			Request: "zone", Driver: driver.Name, Pool: node, Device: "numa-0",
			ShareID:          new(uid),
			ConsumedCapacity: map[resourceapi.QualifiedName]resource.Quantity{"cpu": resource.MustParse("2")},
		}},
	}}
	return claim
}

// Containers of a new claim would start with a cpuset that somebody rewrites;
// one that is prepared may run, and the kubelet may ask for it again.
func TestGuardRefusesNewClaimsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServing(t)
		prepare := func(claim *resourceapi.ResourceClaim) kubeletplugin.PrepareResult {
			results, err := s.PrepareResourceClaims(t.Context(), []*resourceapi.ResourceClaim{claim})
			if err != nil {
				t.Fatal(err)
			}
			return results[claim.UID]
		}
		before, after := allocated("before", "uid-1"), allocated("after", "uid-2")
		if err := prepare(before).Err; err != nil {
			t.Fatal(err)
		}
		write(t, s.guards.kubeletRoot, "cpu_manager_state", cpuStatic) // seen at once, not at the next look
		if result := prepare(before); result.Err != nil || len(result.Devices) != 1 {
			t.Errorf("a prepared claim again: %+v", result)
		}
		want := `prepare claim default/after: kubelet's CPU manager policy is "static"`
		if err := prepare(after).Err; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("a new claim: error %v, want %q", err, want)
		}
		anew := allocated("before", "uid-1")
		anew.Status.Allocation.Devices.Results[0].ShareID = new(types.UID("share-2"))
		if err := prepare(anew).Err; err == nil || !strings.Contains(err.Error(), "CPU manager policy") {
			t.Errorf("a claim that was allocated anew: error %v, want that of the guard", err)
		}
		if grant, _ := s.driver.Grant(before.UID); len(grant.Shares) != 1 || grant.Shares[0].ShareID != "uid-1" {
			t.Errorf("after it, the claim holds %+v, want what it held", grant)
		}
		released, err := s.UnprepareResourceClaims(t.Context(), []kubeletplugin.NamespacedObject{{UID: before.UID}})
		if err != nil || released[before.UID] != nil {
			t.Errorf("release: %v, %v", released, err)
		}
		write(t, s.guards.kubeletRoot, "cpu_manager_state", cpuNone)
		if err := prepare(after).Err; err != nil {
			t.Errorf("a new claim after it: %v", err)
		}
	})
}

// What another driver publishes is not known before the first list.
func TestNewClaimsWaitForTheFirstList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startServing(t)
		s.guards = &guards{slices: newNodeSlices(newCluster(), node)}
		if _, _, err := s.prepare(t.Context(), allocated("early", "uid-1")); !errors.Is(err, errNotListed) {
			t.Errorf("error %v, want %v", err, errNotListed)
		}
	})
}

// What claims hold under names of before is published again when they are gone.
func TestZonesComeBackWithTheClaimsOfFormerZones(t *testing.T) {
	config := testConfig()
	config.ZoneBy = deviceclasses.ZoneByMachine
	d := recoveredWith(t, config)
	p := &Plugin{driver: d, health: newHealth(), publisher: &publisher{renewed: make(chan struct{}, 1)}}
	cpus := func() int64 {
		t.Helper()
		p.show(nil)
		capacity := p.publisher.devices[0].Capacity["cpu"]
		return capacity.Value.Value()
	}
	before := cpus()
	held := allocated("old", "uid-1") // of numa-0
	if _, _, err := d.Prepare(held, nil); err != nil {
		t.Fatal(err)
	}
	if beside := cpus(); beside != before-2 || p.publisher.devices[0].Name != "machine" {
		t.Errorf("beside a claim of 2 CPUs %s has %d CPUs of %d", p.publisher.devices[0].Name, beside, before)
	}
	if err := d.Unprepare(held.UID); err != nil {
		t.Fatal(err)
	}
	if after := cpus(); after != before {
		t.Errorf("without claims there are %d CPUs of %d", after, before)
	}
}
