package caches

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	"github.com/dra-driver-numa/dra-driver-numa/numa/ways"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

const (
	// all is the example of the predecessors' users: all pools, on 20 ways.
	all = "{os: {ways: 1}, infra: {ways: 19}, guaranteed: {ways: 10, defaultWays: 4}, " +
		"besteffort: {ways: 7, defaultMinWays: 1, defaultMaxWays: 3}, shared: {ways: 2, members: 10}}"
	ten = "{os: {ways: 1}, guaranteed: {ways: 10}}"
)

// twoCaches returns two sockets of 20 CPUs with a cache of 20 ways each, 16 classes, and
// bandwidth in steps of 10 %.
func twoCaches(t testing.TB) numa.Machine {
	t.Helper()
	machine, err := numa.Read(fake.Machine{
		Sockets: 2, CoresPerSocket: 20, MemoryBytes: 1 << 30,
		Resctrl: &fake.Resctrl{CLOSIDs: 16, Ways: 20, MinBandwidth: 10, BandwidthStep: 10},
	}.FS())
	if err != nil {
		t.Fatal(err)
	}
	return machine
}

func settings(t testing.TB, pools string, foreign ...Group) Settings {
	t.Helper()
	s := Settings{Pools: *object.Parse[deviceclasses.CachePools](t, pools), Foreign: foreign}
	if err := s.Pools.Validate(); err != nil {
		t.Fatalf("%s: %v", pools, err)
	}
	return s
}

func nodeWith(t testing.TB, machine numa.Machine, settings Settings) Node {
	t.Helper()
	node, err := Of(&machine, settings)
	if err != nil {
		t.Fatal(err)
	}
	return node
}

func TestDevicesGolden(t *testing.T) {
	node := nodeWith(t, twoCaches(t), settings(t, all))
	devices, warnings := node.Devices(nil)
	got, err := yaml.Marshal(devices)
	if err != nil || len(warnings)+len(node.Warnings) > 0 {
		t.Fatal(err, warnings, node.Warnings)
	}
	files.Golden(t, "testdata/devices.yaml", string(got))
	if got := fmt.Sprint(node.Masks); got != "{1 ffffe 7fe 3f800 c0000 0 []}" {
		t.Errorf("masks %s", got)
	}
	if node.Pools[0].Area.Growing || !node.Pools[1].Area.Growing || node.Pools[4].Area.Usable != 0x3f800 {
		t.Errorf("areas of pools: %+v", node.Pools)
	}
	if want := map[string]int{"numa-0": 0, "numa-1": 1}; !reflect.DeepEqual(node.Zones, want) {
		t.Errorf("zones lie in caches %v, want %v", node.Zones, want)
	}
}

// The example of the first paragraph about caches: 16 classes, of which the default
// group, infra and shared have one each.
func TestDeviceOfTheGuaranteedPool(t *testing.T) {
	node := nodeWith(t, twoCaches(t), settings(t, "{os: {ways: 1}, infra: {ways: 19}, guaranteed: {ways: 10, defaultWays: 4}, shared: {ways: 2, members: 1}}"))
	devices, _ := node.Devices(nil)
	want := object.Parse[resourceapi.Device](t, `
name: cache-0-guaranteed
allowMultipleAllocations: true
attributes:
  kind: {string: cache}
  l3: {int: 0}
  pool: {string: guaranteed}
  resource.kubernetes.io/numaNode: {int: 0}
  dra.net/numaNode: {int: 0}
  gpu.amd.com/numaNode: {int: 0}
capacity:
  ways: {value: 10, requestPolicy: {default: 4, validRange: {min: 1, step: 1}}}
  classes: {value: 13, requestPolicy: {default: 1, validValues: [1]}}
  bandwidthPercent: {value: 1300, requestPolicy: {default: 100, validRange: {min: 10, max: 100, step: 10}}}`)
	files.SameJSON(t, "device", devices[0], want)
}

// The names of the pools in a NodeConfig are those that errors and devices have.
func TestPoolsHaveOneSpelling(t *testing.T) {
	var names []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[deviceclasses.CachePools]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if of := field.Type; (of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice) && of.Elem().Kind() == reflect.Struct { // the others are settings of all pools
			names = append(names, name)
		}
	}
	if want := []string{ways.OS, ways.Reserved, ways.Groups, ways.Infra, ways.Guaranteed, ways.BestEffort, ways.Shared}; !slices.Equal(names, want) {
		t.Errorf("pools %q, want %q", names, want)
	}
}

func TestMachinesWithoutResctrlHaveNoCaches(t *testing.T) {
	seen := 0
	for _, preset := range fake.Presets() {
		machine := sample.Machine(t, preset.Name)
		_, err := Of(&machine, settings(t, ten))
		if (machine.Resctrl == nil) != errors.Is(err, ErrNotSupported) {
			t.Errorf("%s: %v", preset.Name, err)
		}
		if machine.Resctrl == nil {
			seen++
		}
	}
	machine := twoCaches(t)
	machine.Resctrl.Caches = nil
	if _, err := Of(&machine, settings(t, ten)); !errors.Is(err, ErrNotSupported) || seen == 0 {
		t.Errorf("with bandwidth only: %v; %d machines without resctrl", err, seen)
	}
}

func TestCachesAreForZonesThatLieInOneCache(t *testing.T) {
	for _, row := range []struct{ preset, by, want string }{
		{"intel-2s", "", "map[numa-0:0 numa-1:1] 0 1"},
		{"intel-2s", "l3", "map[l3-0:0 l3-1:1] 0 1"},
		{"intel-2s", "machine", "zone machine has CPUs of 2 level-3 caches: want each zone in one level-3 cache; set zoneBy to l3"},
		{"intel-2s-snc2", "", "map[numa-0:0 numa-1:0 numa-2:1 numa-3:1] - -"},
		{"intel-2s-snc2", "l3", "map[numa-0:0 numa-1:0 numa-2:1 numa-3:1] - -"},
		{"intel-2s-snc2", "socket", "map[socket-0:0 socket-1:1] - -"},
		{"cxl-expander", "", "map[numa-0:0 numa-1:1] 0 1"},
		{"epyc-2s-nps1", "", "zone numa-0 has CPUs of 8 level-3 caches: want each zone in one level-3 cache; set zoneBy to l3"},
		{"epyc-2s-nps4", "", "zone numa-0 has CPUs of 2 level-3 caches: want each zone in one level-3 cache; set zoneBy to l3"},
	} {
		machine := sample.Machine(t, row.preset)
		s := settings(t, ten)
		s.ZoneBy = row.by
		node, err := Of(&machine, s)
		got := fmt.Sprint(node.Zones)
		for _, pool := range node.Pools {
			if pool.Node == nil {
				got += " -"
			} else {
				got += fmt.Sprint(" ", *pool.Node)
			}
		}
		if err != nil {
			got = err.Error()
		}
		if got != row.want {
			t.Errorf("%s by %q: %s, want %s", row.preset, row.by, got, row.want)
		}
	}
	machine := sample.Machine(t, "epyc-2s-nps1")
	s := settings(t, ten)
	s.ZoneBy = deviceclasses.ZoneByL3
	if node := nodeWith(t, machine, s); len(node.Pools) != 16 || *node.Pools[15].Node != 1 || node.Zones["l3-15"] != 15 {
		t.Errorf("16 caches: %d pools, zones %v", len(node.Pools), node.Zones)
	}
	machine.L3s = machine.L3s[1:]
	if _, err := Of(&machine, s); err == nil || err.Error() != "zone numa-0 has CPUs 0-3,64-67, which have no level-3 cache: want each zone in one level-3 cache" {
		t.Errorf("CPUs without a cache: %v", err)
	}
}

// Isolated CPUs are where the boot parameter has them: their zone may lie in several caches.
func TestIsolatedCPUsOfSeveralCachesHaveNone(t *testing.T) {
	machine := sample.Machine(t, "epyc-2s-nps1")
	machine.Isolated = new(cpuset.New(1, 9, 17)) // of the first three caches of NUMA node 0
	s := settings(t, ten)
	s.ZoneBy = deviceclasses.ZoneByL3
	node := nodeWith(t, machine, s)
	if cache, lies := node.Zones["isolated-0"]; lies {
		t.Errorf("the isolated CPUs are in cache %d", cache)
	}
	if len(node.Pools) != 16 || node.Zones["l3-2"] != 2 {
		t.Errorf("%d pools, zones %v", len(node.Pools), node.Zones)
	}
}

func TestPoolsThatDoNotFitAreRefusedWithTheNumbers(t *testing.T) {
	for _, row := range []struct {
		pools  string
		change func(*numa.Resctrl)
		want   string
	}{
		{"{os: {ways: 1}, guaranteed: {ways: 20}}", nil, "divide the 20 ways of L3: os 1 + guaranteed 20 = 21 ways: the cache has 20"},
		{
			"{os: {ways: 2}, guaranteed: {ways: 4, defaultWays: 1}}", func(r *numa.Resctrl) { r.Caches[0].MinBits = 2 },
			"cache.guaranteed.defaultWays: 1, allowed are 2 or more, because a mask has at least as many ways (min_cbm_bits)",
		},
		{
			"{os: {ways: 2}, guaranteed: {ways: 4, validWays: [1, 2]}}", func(r *numa.Resctrl) { r.Caches[0].MinBits = 2 },
			"cache.guaranteed.validWays[0]: 1, allowed are 2 or more, because a mask has at least as many ways (min_cbm_bits)",
		},
		{
			"{os: {ways: 2}, besteffort: {ways: 4, defaultMinWays: 1, defaultMaxWays: 2}}", func(r *numa.Resctrl) { r.Caches[0].MinBits = 2 },
			"cache.besteffort.defaultMinWays: 1, allowed are 2 or more, because a mask has at least as many ways (min_cbm_bits)",
		},
		{
			"{os: {ways: 1}, guaranteed: {ways: 4, defaultBandwidthMBps: 5}}", nil,
			"cache.guaranteed.defaultBandwidthMBps: 5, but this node counts percent, allowed is defaultBandwidthPercent",
		},
		{"{os: {ways: 1}, guaranteed: {ways: 4, defaultBandwidthMBps: 5, defaultBandwidthPercent: 50}}", nil, ""},
		{
			"{os: {ways: 1}, besteffort: {ways: 4, defaultBandwidthPercent: 5}}", func(r *numa.Resctrl) { r.Bandwidths[0] = amd },
			"cache.besteffort.defaultBandwidthPercent: 5, but this node counts MBps, allowed is defaultBandwidthMBps",
		},
		{
			"{os: {ways: 1}, guaranteed: {ways: 4, defaultBandwidthPercent: 5}}", func(r *numa.Resctrl) { r.Bandwidths = nil },
			"cache.guaranteed.defaultBandwidthPercent: 5, but the kernel of this node does not limit bandwidth",
		},
		{
			"{os: {ways: 1}, infra: {ways: 4}, guaranteed: {ways: 4, classes: 10}, besteffort: {ways: 4, classes: 5}}", nil,
			"the pools of caches need 15 classes: 14 of 16 are left without the default group, infra",
		},
		{
			"{os: {ways: 1}, guaranteed: {ways: 4}, shared: {ways: 1, members: 1}}", func(r *numa.Resctrl) { r.Bandwidths[0].CLOSIDs = 2 },
			"the pools of caches need 1 classes: 0 of 2 are left without the default group, shared",
		},
		{
			"{os: {ways: 1}, groups: [{name: a, cpus: '0', ways: 1}, {name: b, cpus: '1', ways: 1}], guaranteed: {ways: 4, classes: 14}}", nil,
			"the pools of caches need 14 classes: 13 of 16 are left without the default group, groups[0], groups[1]",
		},
		{
			"{os: {ways: 1}, groups: [{name: a, cpus: '0', ways: 1}], infra: {ways: 4}}", func(r *numa.Resctrl) { r.Bandwidths[0].CLOSIDs = 2 },
			"the default group, groups[0], infra need 3 classes: the kernel has 2",
		},
		{
			"{os: {ways: 1}, groups: [{name: a, cpus: '0', ways: 4, bandwidthMBps: 5}]}", nil,
			"cache.groups[0].bandwidthMBps: 5, but this node counts percent, allowed is bandwidthPercent",
		},
		{"{os: {ways: 1}, reserved: {ways: 2}, groups: [{name: a, cpus: 0-1, ways: 4}]}", nil, `cache.reserved: no CPU is left for it: infra and groups have all reserved CPUs, "0-1"`},
		{
			"{os: {ways: 1, bandwidthMBps: 5}, guaranteed: {ways: 4}}", nil,
			"cache.os.bandwidthMBps: 5, but this node counts percent, allowed is bandwidthPercent",
		},
		{
			"{os: {ways: 1}, infra: {ways: 4, bandwidthPercent: 50}}", func(r *numa.Resctrl) { r.Bandwidths = nil },
			"cache.infra.bandwidthPercent: 50, but the kernel of this node does not limit bandwidth",
		},
		{"{os: {ways: 1}, reserved: {ways: 2}}", nil, `cache.reserved: no CPU is left for it: infra and groups have all reserved CPUs, ""`},
		{"{os: {ways: 1}, groups: [{name: a, cpus: 0-2, ways: 4}]}", nil, `cache.groups[0].cpus: 2 are not reserved, so claims may get them: allowed are some of "0-1"`},
		{"{os: {ways: 1}, groups: [{name: a, cpus: '0', ways: 4}], guaranteed: {ways: 16}}", nil, "divide the 20 ways of L3: os 1 + groups[0] 4 + guaranteed 16 = 21 ways: the cache has 20"},
		{
			"{os: {ways: 2}, groups: [{name: a, cpus: '0', ways: 2}, {name: b, cpus: '1', ways: 1}]}", func(r *numa.Resctrl) { r.Caches[0].MinBits = 2 },
			"divide the 20 ways of L3: groups[1] 1: a mask has at least 2 ways (min_cbm_bits)",
		},
		{"{os: {ways: 1}, infra: {ways: 4, cpus: 0-3}}", nil, `cache.infra.cpus: 2-3 are not reserved, so claims may get them: allowed are some of "0-1"`},
		{
			ten, func(r *numa.Resctrl) { r.Caches = append(r.Caches, numa.CacheAllocation{Name: "L3DATA", Mask: 1}) },
			"cbm_mask of L3 is fffff, of L3DATA 1: want the same",
		},
	} {
		machine := twoCaches(t)
		if row.change != nil {
			row.change(machine.Resctrl)
		}
		s := settings(t, row.pools)
		if s.Pools.Infra != nil || s.Pools.Groups != nil {
			s.Reserved = cpuset.New(0, 1)
		}
		_, err := Of(&machine, s)
		if got := fmt.Sprint(err); (err != nil || row.want != "") && got != row.want {
			t.Errorf("%s: error %v, want %s", row.pools, err, row.want)
		}
	}
}

// amd is the bandwidth of AMD's processors, as the kernel describes it.
var amd = numa.BandwidthAllocation{Name: "MB", CLOSIDs: 16, Granularity: 1}

func TestClassesAreDividedOverThePools(t *testing.T) {
	const both = "{os: {ways: 1}, guaranteed: {ways: 10}, besteffort: {ways: 7}}"
	for _, row := range []struct {
		pools   string
		change  func(*numa.Resctrl)
		foreign int
		want    map[string]int
	}{
		{ten, nil, 0, map[string]int{"guaranteed": 15}},
		{all, nil, 0, map[string]int{"guaranteed": 8, "besteffort": 5}},
		{both, nil, 0, map[string]int{"guaranteed": 9, "besteffort": 6}},
		{both, nil, 3, map[string]int{"guaranteed": 6, "besteffort": 6}},
		{both, nil, 20, map[string]int{"guaranteed": 0, "besteffort": 0}},
		{"{os: {ways: 1}, guaranteed: {ways: 18}, besteffort: {ways: 1}}", func(r *numa.Resctrl) { r.Caches[0].CLOSIDs = 4 }, 0, map[string]int{"guaranteed": 2, "besteffort": 1}},
		{"{os: {ways: 1}, guaranteed: {ways: 10, classes: 4}, besteffort: {ways: 7}}", nil, 0, map[string]int{"guaranteed": 4, "besteffort": 11}},
		{"{os: {ways: 1}, guaranteed: {ways: 10, classes: 4}, besteffort: {ways: 7, classes: 2}}", nil, 2, map[string]int{"guaranteed": 4, "besteffort": 2}},
		{"{os: {ways: 1}, infra: {ways: 2}, shared: {ways: 2, members: 4}}", nil, 0, map[string]int{}},
		{"{os: {ways: 1}, groups: [{name: a, cpus: 0-1, ways: 2}, {name: b, cpus: 2-3, ways: 1}], guaranteed: {ways: 10}}", nil, 0, map[string]int{"guaranteed": 13}},
		// The resource with the fewest classes counts.
		{ten, func(r *numa.Resctrl) { r.Bandwidths[0].CLOSIDs = 8 }, 0, map[string]int{"guaranteed": 7}},
		{ten, func(r *numa.Resctrl) { r.Caches = append(r.Caches, numa.CacheAllocation{Name: "L2", CLOSIDs: 4}) }, 0, map[string]int{"guaranteed": 3}},
		{ten, func(r *numa.Resctrl) { r.Monitors = []numa.Monitoring{{Name: "L3_MON", RMIDs: 6}} }, 0, map[string]int{"guaranteed": 5}},
	} {
		machine := twoCaches(t)
		if row.change != nil {
			row.change(machine.Resctrl)
		}
		got, err := classesOf(machine.Resctrl, settings(t, row.pools).Pools, row.foreign)
		if err != nil || !reflect.DeepEqual(got, row.want) {
			t.Errorf("%s with %d other groups: %v, %v; want %v", row.pools, row.foreign, got, err, row.want)
		}
	}
}

// countsMBps are the mount options with which the kernel counts MBps.
var countsMBps = []string{"rw", "mba_MBps"}

func TestBandwidthIsRoundedAsTheKernelDoes(t *testing.T) {
	kernel := func(least, step int) *numa.Resctrl {
		return &numa.Resctrl{Bandwidths: []numa.BandwidthAllocation{{Name: "MB", MinBandwidth: least, Granularity: step, Linear: true}}}
	}
	for _, row := range []struct {
		resctrl *numa.Resctrl
		options []string
		want    string      // capacity, minimum, maximum, step
		rounded map[int]int // amounts
		written map[int]int // in schemata
	}{
		{kernel(10, 10), nil, "bandwidthPercent 10 100 10", map[int]int{5: 10, 10: 10, 35: 40, 50: 50, 55: 60, 100: 100}, map[int]int{60: 60}},
		{kernel(1, 1), nil, "bandwidthPercent 1 100 1", map[int]int{1: 1, 55: 55, 100: 100}, nil},
		{kernel(0, 0), nil, "bandwidthPercent 1 100 1", map[int]int{55: 55}, nil},
		{kernel(3, 3), nil, "bandwidthPercent 3 100 1", map[int]int{1: 3, 55: 57, 100: 100}, nil}, // 100 is no step from 3
		{kernel(5, 3), nil, "bandwidthPercent 5 100 1", map[int]int{5: 6, 99: 99}, nil},
		{kernel(120, 10), nil, "bandwidthPercent 100 100 10", map[int]int{5: 100}, nil},
		{kernel(10, 10), countsMBps, "bandwidthMBps 1 4294967295 1", map[int]int{5: 5, 20001: 20001}, map[int]int{20001: 20001, 4294967295: 4294967295}},
		{&numa.Resctrl{Bandwidths: []numa.BandwidthAllocation{amd}}, nil, "bandwidthMBps 125 256000 125", map[int]int{1: 125, 126: 250, 20000: 20000}, map[int]int{250: 2, 256000: 2048}},
	} {
		b := bandwidthOf(row.resctrl, row.options)
		if got := fmt.Sprintf("%s %d %d %d", b.Capacity, b.Min, b.Max, b.Step); got != row.want {
			t.Errorf("%+v: %s, want %s", row.resctrl.Bandwidths, got, row.want)
		}
		for amount, want := range row.rounded {
			if got := b.Round(amount); got != want {
				t.Errorf("%s: %d is rounded to %d, want %d", row.want, amount, got, want)
			}
		}
		for amount, want := range row.written {
			if got := b.Schemata(amount); got != want {
				t.Errorf("%s: %d is written as %d, want %d", row.want, amount, got, want)
			}
		}
	}
	if b := bandwidthOf(&numa.Resctrl{Bandwidths: []numa.BandwidthAllocation{{Name: "SMBA"}}}, countsMBps); b != nil {
		t.Errorf("bandwidth of CXL memory alone: %+v", b)
	}
}

func TestCodeAndDataGetTheSameWays(t *testing.T) {
	machine := twoCaches(t)
	code := machine.Resctrl.Caches[0]
	code.Name, code.CLOSIDs, code.ShareableMask = "L3CODE", 8, 0xc0000
	data := code
	data.Name, data.MinBits = "L3DATA", 2
	machine.Resctrl.Caches = []numa.CacheAllocation{code, data}
	node := nodeWith(t, machine, settings(t, "{os: {ways: 2}, guaranteed: {ways: 16}}"))
	if !slices.Equal(node.Resources, []string{"L3CODE", "L3DATA"}) || node.Pools[0].Classes != 7 || node.Pools[0].amounts.ways != 2 {
		t.Errorf("%v: %+v", node.Resources, node.Pools)
	}
}

func TestWaysOfOtherToolsAreNotPublished(t *testing.T) {
	for name, row := range map[string]struct {
		pools    string
		groups   []Group
		ways     map[string]string // capacity by device
		warnings []string
	}{
		"the longest run that is left": {
			"{os: {ways: 1}, guaranteed: {ways: 10, defaultWays: 5}}",
			[]Group{{"COS1", map[int]ways.Mask{0: 0x1e0}}},
			map[string]string{"cache-0-guaranteed": "4 default 5 min 1", "cache-1-guaranteed": "10 default 5 min 1"},
			[]string{`each of these groups of other tools takes a class: "COS1"`, `groups of other tools take ways of cache-0-guaranteed, so that 4 of 10 are left for claims: "COS1"`},
		},
		"neither CPUs nor tasks": {
			ten,
			[]Group{{"COS1", nil}},
			map[string]string{"cache-0-guaranteed": "10 default 1 min 1", "cache-1-guaranteed": "10 default 1 min 1"},
			[]string{`each of these groups of other tools takes a class: "COS1"`},
		},
		"the ways of os": {
			ten,
			[]Group{{"COS1", map[int]ways.Mask{0: 1, 1: 1}}},
			map[string]string{"cache-0-guaranteed": "10 default 1 min 1", "cache-1-guaranteed": "10 default 1 min 1"},
			[]string{`each of these groups of other tools takes a class: "COS1"`},
		},
		"all ways": {
			ten,
			[]Group{{"a", map[int]ways.Mask{0: 0x3f}}, {"b", map[int]ways.Mask{0: 0xfffff}}},
			map[string]string{"cache-1-guaranteed": "10 default 1 min 1"},
			[]string{
				`each of these groups of other tools takes a class: "a", "b"`, `groups of other tools take ways of cache-0-guaranteed, so that 0 of 10 are left for claims: "a", "b"`,
				"cache-0-guaranteed is not published: 0 ways are left, and a claim that asks for no number needs 1",
			},
		},
		"one way is left": {
			ten,
			[]Group{{"a", map[int]ways.Mask{0: 0x3fe, 1: 0x3fe}}},
			map[string]string{"cache-0-guaranteed": "1 default 1 valid [1]", "cache-1-guaranteed": "1 default 1 valid [1]"},
			nil,
		},
		"the policy": {
			"{os: {ways: 1}, guaranteed: {ways: 10, defaultWays: 2, validWays: [1, 2, 4]}}",
			[]Group{{"a", map[int]ways.Mask{0: 0x7f0, 1: 0x7fc}}},
			map[string]string{"cache-0-guaranteed": "3 default 2 valid [1 2]"},
			nil,
		},
	} {
		node := nodeWith(t, twoCaches(t), settings(t, row.pools, row.groups...))
		devices, warnings := node.Devices(nil)
		got := map[string]string{}
		for _, device := range devices {
			got[device.Name] = policyText(device.Capacity[deviceclasses.CapacityWays])
		}
		if !reflect.DeepEqual(got, row.ways) {
			t.Errorf("%s: %v, want %v", name, got, row.ways)
		}
		if all := slices.Concat(node.Warnings, warnings); row.warnings != nil && !slices.Equal(all, row.warnings) {
			t.Errorf("%s: warnings %q, want %q", name, all, row.warnings)
		}
	}
}

// policyText returns a capacity in a line.
func policyText(of resourceapi.DeviceCapacity) string {
	policy := of.RequestPolicy
	text := fmt.Sprintf("%s default %s", of.Value.String(), policy.Default.String())
	if policy.ValidRange != nil {
		return text + " min " + policy.ValidRange.Min.String()
	}
	var valid []string
	for _, value := range policy.ValidValues {
		valid = append(valid, value.String())
	}
	return fmt.Sprintf("%s valid %v", text, valid)
}

func TestPoolWithoutClassesIsNotPublished(t *testing.T) {
	var groups []Group
	for i := range 14 {
		groups = append(groups, Group{Name: fmt.Sprintf("COS%d", i)})
	}
	node := nodeWith(t, twoCaches(t), settings(t, all, groups...))
	devices, warnings := node.Devices(nil)
	if len(devices) != 2 || devices[0].Name != "cache-0-shared" || len(warnings) != 4 ||
		warnings[0] != "cache-0-guaranteed is not published: no class is left: groups of other tools and of mixed claims have them" {
		t.Errorf("%d devices, warnings %q", len(devices), warnings)
	}
}
