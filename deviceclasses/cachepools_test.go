package deviceclasses

import (
	"fmt"
	"testing"

	"sigs.k8s.io/yaml"
)

// poolsOf reads the pools as a NodeConfig would.
func poolsOf(t *testing.T, text string) (pools CachePools) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), &pools); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return pools
}

func TestPoolsOfCaches(t *testing.T) {
	for _, row := range []struct{ text, want string }{
		{"{os: {ways: 1}, infra: {ways: 19}, guaranteed: {ways: 10, defaultWays: 4}, besteffort: {ways: 7, defaultMinWays: 1, defaultMaxWays: 3}, shared: {ways: 2, members: 10}}", ""},
		{"{os: {ways: 1}, guaranteed: {ways: 63}}", ""},
		{"{os: {ways: 1}, infra: {ways: 63}}", ""},
		{"{monitor: true}", ""},
		{"{monitor: false, os: {ways: 1}, infra: {ways: 63}}", ""},
		{"{monitor: false}", "cache.os: it is missing, want {ways: <number>} with 1 to 64 ways"},
		{"{monitor: true, guaranteed: {ways: 4}}", "cache.os: it is missing, want {ways: <number>} with 1 to 64 ways"},
		{"{}", "cache.os: it is missing, want {ways: <number>} with 1 to 64 ways"},
		{"{guaranteed: {ways: 4}}", "cache.os: it is missing, want {ways: <number>} with 1 to 64 ways"},
		{"{os: {ways: 1}}", "cache: os is the only pool, want one or more of reserved, groups, infra, guaranteed, besteffort, shared"},
		{"{os: {}, guaranteed: {ways: 4}}", "cache.os.ways: 0, allowed are 1 to 64"},
		{"{os: {ways: 65}, guaranteed: {ways: 4}}", "cache.os.ways: 65, allowed are 1 to 64"},
		{"{os: {ways: -1}, infra: {ways: 4}}", "cache.os.ways: -1, allowed are 1 to 64"},
		{"{os: {ways: 2}, infra: {ways: 63}}", "cache.infra.ways: 63, allowed are 1 to 62"},
		{"{os: {ways: 64}, infra: {ways: 1}}", "cache.infra.ways: 1, allowed is none"},
		{"{os: {ways: 4}, guaranteed: {ways: 30}, besteffort: {ways: 20}, shared: {ways: 11, members: 1}}", "cache: os 4 + guaranteed 30 + besteffort 20 + shared 11 are 65 ways, allowed are 64 or fewer"},
		{"{os: {ways: 1}, reserved: {ways: 2}}", ""},
		{"{os: {ways: 1, bandwidthPercent: 50, bandwidthMBps: 20000}, infra: {ways: 19, cpus: 0-1, bandwidthPercent: 20}, restore: true}", ""},
		{"{os: {ways: 1, bandwidthPercent: 110}, infra: {ways: 19}}", "cache.os.bandwidthPercent: 110, allowed are 1 to 100"},
		{"{os: {ways: 1}, infra: {ways: 19, bandwidthMBps: -1}}", "cache.infra.bandwidthMBps: -1, allowed are 1 to 4294967295"},
		{"{os: {ways: 1}, infra: {ways: 19, cpus: 1-}}", `cache.infra.cpus: cpulist "1-": id "" is not a decimal number`},
		{"{os: {ways: 1}, reserved: {}, infra: {ways: 3}}", "cache.reserved.ways: 0, allowed are 1 to 63"},
		{"{os: {ways: 1}, reserved: {ways: 2}, infra: {ways: 62}}", "cache.infra.ways: 62, allowed are 1 to 61"},
		{"{os: {ways: 4}, reserved: {ways: 1}, guaranteed: {ways: 60}}", "cache: os 4 + reserved 1 + guaranteed 60 are 65 ways, allowed are 64 or fewer"},
		{"{os: {ways: 1}, reserved: {ways: 2}, groups: [{name: dpdk, cpus: 1-2, ways: 3, bandwidthPercent: 50}, {name: db-2, cpus: 5, ways: 1}], infra: {ways: 57, cpus: 0}}", ""},
		{"{os: {ways: 1}, groups: [{name: a, cpus: 1, ways: 63}]}", ""},
		{"{groups: [{name: a, cpus: 1, ways: 3}]}", "cache.os: it is missing, want {ways: <number>} with 1 to 64 ways"},
		{"{os: {ways: 1}, groups: []}", "cache: os is the only pool, want one or more of reserved, groups, infra, guaranteed, besteffort, shared"},
		{"{os: {ways: 1}, groups: [{cpus: 1, ways: 1}]}", `cache.groups[0].name: "", want at most 32 small letters, digits and dashes, a letter first, such as dpdk`},
		{"{os: {ways: 1}, groups: [{name: '7', cpus: 1, ways: 1}]}", `cache.groups[0].name: "7", want at most 32 small letters, digits and dashes, a letter first, such as dpdk`},
		{"{os: {ways: 1}, groups: [{name: a/b, cpus: 1, ways: 1}]}", `cache.groups[0].name: "a/b", want at most 32 small letters, digits and dashes, a letter first, such as dpdk`},
		{"{os: {ways: 1}, groups: [{name: a, cpus: 1, ways: 1}, {name: a, cpus: 2, ways: 1}]}", `cache.groups[1].name: groups[0] has "a", too`},
		{"{os: {ways: 1}, groups: [{name: a, ways: 1}]}", `cache.groups[0].cpus: "" has no CPU, want a list such as 2-3`},
		{"{os: {ways: 1}, groups: [{name: a, cpus: x, ways: 1}]}", `cache.groups[0].cpus: cpulist "x": id "x" is not a decimal number`},
		{"{os: {ways: 1}, groups: [{name: a, cpus: 0-3, ways: 1}, {name: b, cpus: 2-4, ways: 1}]}", "cache.groups[1].cpus: 2-3 are CPUs of groups[0], too"},
		{"{os: {ways: 1}, infra: {ways: 1, cpus: 1-2}, groups: [{name: a, cpus: 0-1, ways: 1}]}", "cache.groups[0].cpus: 1 are CPUs of infra, too"},
		{"{os: {ways: 1}, groups: [{name: a, cpus: 1}]}", "cache.groups[0].ways: 0, allowed are 1 to 63"},
		{"{os: {ways: 1}, reserved: {ways: 2}, groups: [{name: a, cpus: 1, ways: 60}, {name: b, cpus: 2, ways: 2}]}", "cache.groups[1].ways: 2, allowed are 1 to 1"},
		{"{os: {ways: 1}, groups: [{name: a, cpus: 1, ways: 60}], infra: {ways: 4}}", "cache.infra.ways: 4, allowed are 1 to 3"},
		{"{os: {ways: 4}, groups: [{name: a, cpus: 1, ways: 1}], guaranteed: {ways: 60}}", "cache: os 4 + groups[0] 1 + guaranteed 60 are 65 ways, allowed are 64 or fewer"},
		{"{os: {ways: 1}, groups: [{name: a, cpus: 1, ways: 1, bandwidthPercent: 101}]}", "cache.groups[0].bandwidthPercent: 101, allowed are 1 to 100"},
		{"{os: {ways: 1}, groups: [{name: a}, {name: b}, {name: c}, {name: d}, {name: e}, {name: f}, {name: g}, {name: h}, {name: i}]}", "cache.groups: 9 groups, allowed are 8 or fewer"},
		{"{os: {ways: 1}, guaranteed: {}}", "cache.guaranteed.ways: 0, allowed are 1 to 64"},
		{"{os: {ways: 1}, guaranteed: {ways: 4, classes: -1}}", "cache.guaranteed.classes: -1, allowed are 1 to 65536"},
		{"{os: {ways: 1}, guaranteed: {ways: 4, defaultWays: 5}}", "cache.guaranteed.defaultWays: 5, allowed are 1 to 4"},
		{"{os: {ways: 1}, guaranteed: {ways: 4, defaultWays: 2, validWays: [1, 2, 4]}}", ""},
		{"{os: {ways: 1}, guaranteed: {ways: 4, validWays: []}}", ""},
		{"{os: {ways: 1}, guaranteed: {ways: 4, defaultWays: 3, validWays: [1, 2, 4]}}", "cache.guaranteed.defaultWays: 3, allowed are those of validWays, 1, 2, 4"},
		{"{os: {ways: 1}, guaranteed: {ways: 4, validWays: [1, 5]}}", "cache.guaranteed.validWays[1]: 5, allowed are 2 to 4, in ascending order"},
		{"{os: {ways: 1}, guaranteed: {ways: 4, validWays: [2, 1]}}", "cache.guaranteed.validWays[1]: 1, allowed are 3 to 4, in ascending order"},
		{"{os: {ways: 1}, guaranteed: {ways: 4, validWays: [4, 4]}}", "cache.guaranteed.validWays[1]: 4, allowed is none, in ascending order"},
		{"{os: {ways: 1}, guaranteed: {ways: 4, validWays: [0, 1]}}", "cache.guaranteed.validWays[0]: 0, allowed are 1 to 4, in ascending order"},
		{"{os: {ways: 1}, guaranteed: {ways: 20, validWays: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]}}", ""},
		{"{os: {ways: 1}, guaranteed: {ways: 20, validWays: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]}}", "cache.guaranteed.validWays: 11 values, allowed are 10 or fewer"},
		{"{os: {ways: 1}, guaranteed: {ways: 4, defaultBandwidthPercent: 100, defaultBandwidthMBps: 4294967295}}", ""},
		{"{os: {ways: 1}, guaranteed: {ways: 4, defaultBandwidthPercent: 110}}", "cache.guaranteed.defaultBandwidthPercent: 110, allowed are 1 to 100"},
		{"{os: {ways: 1}, besteffort: {ways: 4, defaultBandwidthMBps: 4294967296}}", "cache.besteffort.defaultBandwidthMBps: 4294967296, allowed are 1 to 4294967295"},
		{"{os: {ways: 1}, besteffort: {ways: 65}}", "cache.besteffort.ways: 65, allowed are 1 to 64"},
		{"{os: {ways: 1}, besteffort: {ways: 7, defaultMinWays: 4, defaultMaxWays: 3}}", "cache.besteffort.defaultMinWays: 4, allowed are 1 to 3"},
		{"{os: {ways: 1}, besteffort: {ways: 7, defaultMinWays: 1, defaultMaxWays: 8}}", "cache.besteffort.defaultMaxWays: 8, allowed are 1 to 7"},
		{"{os: {ways: 1}, besteffort: {ways: 7, defaultMinWays: 1}}", "cache.besteffort.defaultMinWays: 1 without defaultMaxWays, allowed are both or neither"},
		{"{os: {ways: 1}, besteffort: {ways: 7, defaultMaxWays: 1}}", "cache.besteffort.defaultMaxWays: 1 without defaultMinWays, allowed are both or neither"},
		{"{os: {ways: 1}, shared: {ways: 2}}", "cache.shared.members: 0, allowed are 1 to 65536"},
		{"{os: {ways: 1}, shared: {members: 2}}", "cache.shared.ways: 0, allowed are 1 to 64"},
	} {
		err := poolsOf(t, row.text).Validate()
		if got := fmt.Sprint(err); (err != nil || row.want != "") && got != row.want {
			t.Errorf("%s: error %v, want %q", row.text, err, row.want)
		}
	}
}

func TestBestEffortGrowsUnlessItIsTurnedOff(t *testing.T) {
	for text, want := range map[string]bool{"{ways: 7}": true, "{ways: 7, growing: true}": true, "{ways: 7, growing: false}": false} {
		if got := poolsOf(t, "{besteffort: "+text+"}").BestEffort.IsGrowing(); got != want {
			t.Errorf("%s: growing %t", text, got)
		}
	}
}

func TestCachesAreMeasuredUnlessItIsTurnedOff(t *testing.T) {
	for text, want := range map[string]struct{ monitors, divides bool }{
		"{os: {ways: 1}, infra: {ways: 4}}": {true, true}, "{monitor: true}": {true, false}, "{monitor: false, shared: {ways: 1}}": {false, true},
	} {
		pools := poolsOf(t, text)
		if pools.IsMonitoring() != want.monitors || pools.Divides() != want.divides {
			t.Errorf("%s: monitoring %t, divides %t", text, pools.IsMonitoring(), pools.Divides())
		}
	}
}
