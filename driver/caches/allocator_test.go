package caches

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/ways"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

const here = "node"

// scheduler allocates zones and caches of one node, as the Kubernetes 1.37 scheduler does
// with default feature gates.
type scheduler struct {
	t       testing.TB
	node    Node
	slice   *resourceapi.ResourceSlice
	classes inventory.Classes
	held    allocation.State
}

func newScheduler(t testing.TB, machine numa.Machine, settings Settings) *scheduler {
	t.Helper()
	s := &scheduler{t: t, node: nodeWith(t, machine, settings), classes: object.Classes(t), held: allocation.NewState()}
	devices := zones.Devices(&machine, zones.Settings{ZoneBy: settings.ZoneBy}, nil, nil)
	for i := range devices {
		if cache, lies := s.node.Zones[devices[i].Name]; lies {
			devices[i].Attributes[deviceclasses.AttributeL3] = resourceapi.DeviceAttribute{IntValue: ptr.To(int64(cache))}
		}
	}
	caches, _ := s.node.Devices(nil)
	s.slice = &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: here},
		Spec: resourceapi.ResourceSliceSpec{
			Driver: deviceclasses.DriverName, NodeName: ptr.To(here), Devices: slices.Concat(devices, caches),
			Pool: resourceapi.ResourcePool{Name: here, Generation: 1, ResourceSliceCount: 1},
		},
	}
	return s
}

// allocate returns what a claim gets, in the order of its requests; nothing if it gets
// none. What it gets is in use from then on.
func (s *scheduler) allocate(spec resourceapi.DeviceClaim) []resourceapi.DeviceRequestAllocationResult {
	s.t.Helper()
	features, published := allocation.DefaultFeatures(), allocation.NewSlices([]*resourceapi.ResourceSlice{s.slice})
	allocator, err := allocation.NewAllocator(s.t.Context(), features, s.held, s.classes, published, allocation.NewCache(10, features))
	if err != nil {
		s.t.Fatal(err)
	}
	results, err := allocator.Allocate(s.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: here}}, []*resourceapi.ResourceClaim{{
		ObjectMeta: metav1.ObjectMeta{Name: "claim", Namespace: "default"}, Spec: resourceapi.ResourceClaimSpec{Devices: spec},
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	if len(results) == 0 {
		return nil
	}
	for _, given := range results[0].Devices.Results {
		id := allocation.MakeDeviceID(given.Driver, given.Pool, given.Device)
		s.held.AddShare(allocation.NewShare(id, given.ShareID, given.ConsumedCapacity))
	}
	return results[0].Devices.Results
}

// pod allocates CPUs and part of a cache near each other. amounts are like "ways: 4". It
// returns what the claim has of the cache, as in "cache-0-guaranteed 4", or Pending.
func (s *scheduler) pod(class string, cpus int, amounts string, condition ...string) string {
	s.t.Helper()
	selector := ""
	if len(condition) > 0 {
		selector = fmt.Sprintf(`, selectors: [{cel: {expression: 'device.attributes["dra.numa"].l3 == %s'}}]`, condition[0])
	}
	got := s.allocate(*object.Parse[resourceapi.DeviceClaim](s.t, fmt.Sprintf(`
requests:
- {name: cpus, exactly: {deviceClassName: zone.dra.numa, allocationMode: ExactCount, count: 1, capacity: {requests: {cpu: %d}}}}
- {name: cache, exactly: {deviceClassName: %s, allocationMode: ExactCount, count: 1, capacity: {requests: {%s}}%s}}
constraints: [{requests: [cpus, cache], matchAttribute: dra.numa/l3}]`, cpus, class, amounts, selector)))
	if got == nil {
		return "Pending"
	}
	ask, err := s.node.Ask(got[1], deviceclasses.CacheConfig{})
	if err != nil {
		s.t.Errorf("%s: %v", got[1].Device, err)
	}
	if lies := s.node.Zones[got[0].Device]; lies != ask.Cache || ask.Device != got[1].Device {
		s.t.Errorf("%s in cache %d has ways of %+v", got[0].Device, lies, ask)
	}
	text := ask.Device
	switch ask.Pool {
	case ways.Guaranteed:
		text += fmt.Sprintf(" %d", ask.MinWays)
	case ways.BestEffort:
		text += fmt.Sprintf(" %d to %d", ask.MinWays, ask.MaxWays)
	}
	if ask.Bandwidth != 0 {
		text += fmt.Sprintf(", %d %%", ask.Bandwidth)
	}
	return text
}

// wantEach compares what one pod after the other gets.
func wantEach(t *testing.T, pod func() string, want ...string) {
	t.Helper()
	for i, want := range want {
		if got := pod(); got != want {
			t.Errorf("pod %d: %s, want %s", i+1, got, want)
		}
	}
}

func TestFivePodsOfFourWays(t *testing.T) {
	s := newScheduler(t, twoCaches(t), settings(t, ten))
	wantEach(t, func() string { return s.pod("cache.dra.numa", 3, "ways: 4") },
		"cache-0-guaranteed 4", "cache-0-guaranteed 4", "cache-1-guaranteed 4", "cache-1-guaranteed 4", "Pending")
}

func TestWaysAndCPUsHaveToBeOnOneSide(t *testing.T) {
	s := newScheduler(t, twoCaches(t), settings(t, ten))
	wantEach(t, func() string { return s.pod("cache.dra.numa", 1, "ways: 9", "0") }, "cache-0-guaranteed 9")
	wantEach(t, func() string { return s.pod("bronze.dra.numa", 1, "") }, "Pending") // there is no such pool
	if got := s.pod("cache.dra.numa", 17, "ways: 1", "1"); got != "cache-1-guaranteed 1" {
		t.Fatal(got)
	}
	// 1 way and 19 CPUs are left here, 9 ways and 3 CPUs there.
	wantEach(t, func() string { return s.pod("cache.dra.numa", 4, "ways: 2") }, "Pending")
	wantEach(t, func() string { return s.pod("cache.dra.numa", 3, "ways: 2") }, "cache-1-guaranteed 2")
}

func TestWaysAreRoundedUpToThoseOfThePolicy(t *testing.T) {
	s := newScheduler(t, twoCaches(t), settings(t, "{os: {ways: 1}, guaranteed: {ways: 10, validWays: [1, 2, 4]}}"))
	wantEach(t, func() string { return s.pod("gold.dra.numa", 1, "ways: 3") }, "cache-0-guaranteed 4")
	wantEach(t, func() string { return s.pod("gold.dra.numa", 1, "ways: 5") }, "Pending")
	wantEach(t, func() string { return s.pod("gold.dra.numa", 1, "") }, "cache-0-guaranteed 1")
}

func TestFourthClaimOfThreeClassesIsPending(t *testing.T) {
	s := newScheduler(t, twoCaches(t), settings(t, "{os: {ways: 1}, guaranteed: {ways: 10, classes: 3}}"))
	wantEach(t, func() string { return s.pod("gold.dra.numa", 1, "ways: 1", "0") },
		"cache-0-guaranteed 1", "cache-0-guaranteed 1", "cache-0-guaranteed 1", "Pending")
	wantEach(t, func() string { return s.pod("gold.dra.numa", 1, "ways: 1", "1") }, "cache-1-guaranteed 1") // a class has a mask for each cache
}

func TestBandwidthIsCheckedAndRoundedButNotSummed(t *testing.T) {
	s := newScheduler(t, twoCaches(t), settings(t, ten))
	for amount, want := range map[string]string{
		"50": ", 50 %", "55": ", 60 %", "5": ", 10 %", "100": "", "110": "Pending",
	} {
		if want != "Pending" {
			want = "cache-0-guaranteed 1" + want
		}
		wantEach(t, func() string { return s.pod("gold.dra.numa", 1, "ways: 1, bandwidthPercent: "+amount) }, want)
	}
	for range 6 {
		wantEach(t, func() string { return s.pod("gold.dra.numa", 1, "") }, "cache-0-guaranteed 1")
	}
	wantEach(t, func() string { return s.pod("gold.dra.numa", 1, "ways: 1, bandwidthMBps: 1000") }, "Pending")

	s = newScheduler(t, twoCaches(t), settings(t, "{os: {ways: 1}, guaranteed: {ways: 10, defaultBandwidthPercent: 35}}"))
	wantEach(t, func() string { return s.pod("gold.dra.numa", 1, "") }, "cache-0-guaranteed 1, 40 %")
	wantEach(t, func() string { return s.pod("gold.dra.numa", 1, "bandwidthPercent: 100") }, "cache-0-guaranteed 1")
}

func TestPoliciesHaveTheAmountsOfTheirPools(t *testing.T) {
	s := newScheduler(t, twoCaches(t), settings(t, all))
	wantEach(t, func() string { return s.pod("gold.dra.numa", 1, "") }, "cache-0-guaranteed 4")
	wantEach(t, func() string { return s.pod("silver.dra.numa", 1, "") }, "cache-0-besteffort 1 to 3")
	wantEach(t, func() string { return s.pod("bronze.dra.numa", 1, "") }, "cache-0-shared")
	wantEach(t, func() string { return s.pod("bronze.dra.numa", 1, "ways: 1") }, "Pending") // members have no ways to themselves
}

func TestMinimaOfBestEffortAreCounted(t *testing.T) {
	s := newScheduler(t, twoCaches(t), settings(t, "{os: {ways: 1}, besteffort: {ways: 7, defaultMinWays: 2, defaultMaxWays: 5}}"))
	const given = "cache-0-besteffort 2 to 5"
	wantEach(t, func() string { return s.pod("silver.dra.numa", 1, "", "0") }, given, given, given, "Pending")
}

func TestSharedPoolHasAQuotaOfMembers(t *testing.T) {
	s := newScheduler(t, twoCaches(t), settings(t, all))
	for i := range 11 {
		want := "cache-0-shared"
		if i == 10 {
			want = "Pending"
		}
		wantEach(t, func() string { return s.pod("bronze.dra.numa", 1, "", "0") }, want)
	}
}

func TestOnlyWaysThatOtherToolsLeaveAreGiven(t *testing.T) {
	s := newScheduler(t, twoCaches(t), settings(t, ten, Group{"COS1", map[int]ways.Mask{0: 0x1e0}}))
	wantEach(t, func() string { return s.pod("gold.dra.numa", 1, "ways: 5", "0") }, "Pending")
	wantEach(t, func() string { return s.pod("gold.dra.numa", 1, "ways: 4", "0") }, "cache-0-guaranteed 4")
	s = newScheduler(t, twoCaches(t), settings(t, "{os: {ways: 1}, guaranteed: {ways: 10, defaultWays: 5}}", Group{"COS1", map[int]ways.Mask{0: 0x1e0}}))
	wantEach(t, func() string { return s.pod("gold.dra.numa", 1, "", "0") }, "Pending")
	wantEach(t, func() string { return s.pod("gold.dra.numa", 1, "ways: 1", "0") }, "cache-0-guaranteed 1")
}

func TestTwoContainersOfOnePodHaveWaysByRequest(t *testing.T) {
	s := newScheduler(t, twoCaches(t), settings(t, ten))
	got := s.allocate(*object.Parse[resourceapi.DeviceClaim](t, `
requests:
- {name: cpus-a, exactly: {deviceClassName: zone.dra.numa, allocationMode: ExactCount, count: 1, capacity: {requests: {cpu: 2}}}}
- {name: cache-a, exactly: {deviceClassName: gold.dra.numa, allocationMode: ExactCount, count: 1, capacity: {requests: {ways: 2, bandwidthPercent: 40}}}}
- {name: cpus-b, exactly: {deviceClassName: zone.dra.numa, allocationMode: ExactCount, count: 1, capacity: {requests: {cpu: 2}}}}
- {name: cache-b, exactly: {deviceClassName: gold.dra.numa, allocationMode: ExactCount, count: 1, capacity: {requests: {ways: 2}}}}
constraints: [{matchAttribute: dra.numa/l3}]`))
	if len(got) != 4 {
		t.Fatalf("the pod has %d devices", len(got))
	}
	for i, want := range map[int]int{1: 40, 3: 0} {
		if ask, err := s.node.Ask(got[i], deviceclasses.CacheConfig{}); err != nil || ask.Bandwidth != want || ask.MaxWays != 2 {
			t.Errorf("%s: %+v, %v", got[i].Request, ask, err)
		}
	}
	config := deviceclasses.CacheConfig{CPUs: "cpus-b"}
	if zone, err := config.ZoneRequest([]string{got[0].Request, got[2].Request}); zone != "cpus-b" || err != nil {
		t.Errorf("the zone of cache-b is %q, %v", zone, err)
	}
}

// Whatever the API takes and the allocator gives is what the claim is read to ask for.
func TestEveryAmountThatIsGivenIsRead(t *testing.T) {
	for _, pools := range []string{
		ten, "{os: {ways: 1}, guaranteed: {ways: 1}}", "{os: {ways: 1}, guaranteed: {ways: 10, defaultWays: 4, validWays: [2, 4, 8]}}",
	} {
		for amount := range 12 {
			s := newScheduler(t, twoCaches(t), settings(t, pools))
			want := amount
			if valid := s.node.Pools[0].amounts.valid; valid != nil {
				if i := slices.IndexFunc(valid, func(ways int) bool { return ways >= amount }); i >= 0 {
					want = valid[i]
				}
			}
			text := fmt.Sprintf("cache-0-guaranteed %d", max(want, 1))
			if want > 10 || strings.Contains(pools, "ways: 1}}") && want > 1 || strings.Contains(pools, "valid") && want > 8 {
				text = "Pending"
			}
			wantEach(t, func() string { return s.pod("gold.dra.numa", 1, fmt.Sprint("ways: ", amount)) }, text)
		}
	}
}

func capacities(device resourceapi.Device) []resourceapi.QualifiedName {
	return slices.Sorted(maps.Keys(device.Capacity))
}
