package numa

import (
	"strconv"
	"strings"
	"testing"
)

func TestCountersOfGroups(t *testing.T) {
	number := func(n uint64) *uint64 { return &n }
	f := files{
		"mon_data/mon_L3_00/llc_occupancy": "65536", "mon_data/mon_L3_00/mbm_total_bytes": "18446744073709551615", "mon_data/mon_L3_00/mbm_local_bytes": "0",
		"mon_data/mon_L3_100/llc_occupancy": "Unavailable", "mon_data/mon_L3_100/mbm_total_bytes": "Unassigned", "mon_data/mon_L3_100/mbm_local_bytes": "Error",
		"mon_data/mon_L3_99/llc_occupancy":                     "1", // the machine does not count bandwidth
		"mon_data/mon_PERF_PKG_00/core_energy":                 "1.5",
		"mon_groups/m/mon_data/mon_L3_7340032/mbm_total_bytes": "7",
		"dra-numa.0/mon_data/mon_L3_01/llc_occupancy":          "12", "dra-numa.0/mon_data/mon_L3_01/mon_sub_L3_02/llc_occupancy": "5",
		"dra-numa.0/mon_data/mon_L3_01/mon_sub_L3_11/llc_occupancy": "7", "dra-numa.0/mon_data/mon_L3_01/mon_sub_L3_11/mbm_local_bytes": "Unavailable",
		"dra-numa.0/mon_groups/m/mon_data/mon_L3_01/llc_occupancy": "3",
	}
	for where, want := range map[[2]string][]CacheCounters{
		{}: {
			{Resource: "L3", Cache: 0, Counters: Counters{number(65536), number(18446744073709551615), number(0)}},
			{Resource: "L3", Cache: 99, Counters: Counters{OccupancyBytes: number(1)}},
			{Resource: "L3", Cache: 100},
		},
		{"", "m"}: {{Resource: "L3", Cache: 7340032, Counters: Counters{TotalBytes: number(7)}}},
		{"dra-numa.0", ""}: {{Resource: "L3", Cache: 1, Counters: Counters{OccupancyBytes: number(12)}, Zones: []ZoneCounters{
			{2, Counters{OccupancyBytes: number(5)}},
			{11, Counters{OccupancyBytes: number(7)}},
		}}},
		{"dra-numa.0", "m"}: {{Resource: "L3", Cache: 1, Counters: Counters{OccupancyBytes: number(3)}}},
		{"none", ""}:        {{Resource: "L3", Cache: 1}},
		{"", "none"}:        {{Resource: "L3", Cache: 1}},
	} {
		for _, cache := range want {
			one, err := ReadCountersOf(f.tree(), where[0], where[1], cache.Cache)
			if err != nil {
				t.Errorf("%q, cache %d: %v", where, cache.Cache, err)
			}
			sameJSON(t, strings.Join(where[:], "/"), one, cache)
		}
	}
}

func TestBytesOfOneCache(t *testing.T) {
	f := files{
		"mon_data/mon_L3_00/llc_occupancy": "nonsense", "mon_data/mon_L3_00/mbm_total_bytes": "12", "mon_data/mon_L3_00/mbm_local_bytes": "Unassigned",
		"g/mon_data/mon_L3_100/mbm_local_bytes": "5", "g/mon_data/mon_L3_01/mbm_local_bytes": "nonsense",
	}
	number := func(n uint64) *uint64 { return &n }
	for where, want := range map[string]Counters{" 0": {TotalBytes: number(12)}, "g 100": {LocalBytes: number(5)}, "g 0": {}, "none 0": {}} {
		group, cache, _ := strings.Cut(where, " ")
		id, _ := strconv.Atoi(cache)
		got, err := ReadBytesOf(f.tree(), group, id)
		if err != nil {
			t.Errorf("%q: %v", where, err)
		}
		sameJSON(t, where, got, want)
	}
	if got, err := ReadBytesOf(f.tree(), "g", 1); err == nil || got != (Counters{}) {
		t.Errorf("nonsense: %v, %v", got, err)
	}
}

func TestNonsenseInCountersNamesItsFile(t *testing.T) {
	for file, text := range map[string]string{
		"mon_data/mon_L3_00/llc_occupancy":               "unavailable",
		"mon_data/mon_L3_00/mbm_total_bytes":             "-1",
		"mon_data/mon_L3_00/mbm_local_bytes":             "18446744073709551616",
		"mon_data/mon_L3_00/mon_sub_L3_01/llc_occupancy": "x",
		"mon_data/mon_L3_00/mon_sub_L2_01/llc_occupancy": "1",
		"mon_data/mon_L3_00/other/llc_occupancy":         "1",
		"mon_data/mon_L3_00/mon_sub_L3_x/llc_occupancy":  "1",
		"mon_data/mon_L3_00/mon_sub__1/llc_occupancy":    "1",
	} {
		folder := file[:strings.LastIndexByte(file, '/')]
		if got, err := ReadCountersOf(files{file: text}.tree(), "", "", 0); err == nil || !strings.HasPrefix(err.Error(), "read "+folder) {
			t.Errorf("%s %q: ReadCountersOf = %v, %v", file, text, got, err)
		}
	}
}
