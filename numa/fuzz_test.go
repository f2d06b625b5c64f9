package numa

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

func FuzzDistance(f *testing.F) {
	for _, text := range []string{"10 20\n", "10\t21  31", "", "-1", "4294967296", "10 x", strings.Repeat("10 ", 9000)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		row, err := parseDistances(text)
		if err != nil && row != nil || len(row) > cpuset.MaxCPUs {
			t.Errorf("parseDistances = %d distances and %v", len(row), err)
		}
		printed := strings.Trim(fmt.Sprint(row), "[]")
		if again, err := parseDistances(printed); err != nil || fmt.Sprint(again) != fmt.Sprint(row) {
			t.Errorf("parseDistances(%q) = %v, %v; want what it was printed from", printed, again, err)
		}
	})
}

func FuzzMeminfo(f *testing.F) {
	for _, text := range []string{
		"MemTotal:  32489480 kB\nMemFree:   28133012 kB\n", "Node 0 MemTotal: 1 kB\nNode 0 MemFree: 0 kB", "MemTotal: 1 pages",
		"MemTotal: 9007199254740992 kB", "MemFree: 1 kB", "", "MemTotal:", "Node 0 MemTotal: 12",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		memory, err := parseMeminfo(text)
		if err != nil && memory != (meminfo{}) {
			t.Errorf("parseMeminfo = %+v and %v", memory, err)
		}
		var printed strings.Builder
		for key, value := range map[string]*uint64{"MemTotal": memory.total, "MemFree": memory.free} {
			if value == nil {
				continue
			}
			if *value%kib != 0 || *value >= kib<<53 {
				t.Errorf("%s is %d bytes", key, *value)
			}
			fmt.Fprintf(&printed, "%s: %d kB\n", key, *value/kib)
		}
		again, err := parseMeminfo(printed.String())
		sameJSON(t, printed.String(), []any{again.total, again.free, err}, []any{memory.total, memory.free, nil})
	})
}

func FuzzZoneinfo(f *testing.F) {
	f.Add(fmt.Sprintf(rigZoneinfo, 0, 0), uint64(1<<30))
	f.Add("Node 1, zone Normal\n min 1\n low 2\n high 3\n managed 9007199254740991\n", uint64(1<<63))
	f.Add("Node 0, zone Normal\n managed many", uint64(0))
	f.Add("min 1\nNode 9007199254740992, zone DMA", uint64(4096))
	f.Fuzz(func(t *testing.T, text string, memoryBytes uint64) {
		marks, err := parseZoneinfo(text)
		if err != nil && marks != nil || len(marks) > strings.Count(text, "Node") {
			t.Errorf("parseZoneinfo = %d nodes and %v", len(marks), err)
		}
		for node, pages := range marks {
			// Rounding makes a page at most √2 as large as it is.
			if w := pages.bytes(memoryBytes); w != nil && (w.MinBytes > w.LowBytes || w.LowBytes > w.HighBytes ||
				w.HighBytes/2 > memoryBytes) {
				t.Errorf("node %d has watermarks %+v of %d bytes", node, *w, memoryBytes)
			}
		}
	})
}

func FuzzResctrlInfo(f *testing.F) {
	f.Add("7fff", "16", "1", "10")
	f.Add("ffffffffffffffff", "2147483647", "0", "-1")
	f.Add("10000000000000000", "x", "2", "\x00")
	f.Fuzz(func(t *testing.T, mask, closids, flag, least string) {
		const info = "sys/fs/resctrl/info/"
		root := files{
			info + "L3/cbm_mask": mask, info + "L3/num_closids": closids, info + "L3/sparse_masks": flag, info + "L3/min_cbm_bits": least,
			info + "MB/min_bandwidth": least, info + "MB/bandwidth_gran": least, info + "MB/num_closids": closids,
		}.tree()
		var m Machine
		if err := newTree(root).optional().readResctrl(&m); err != nil {
			if !strings.HasPrefix(err.Error(), "read "+info) {
				t.Errorf("%v does not say where", err)
			}
			return
		}
		for _, cache := range m.Resctrl.Caches { // printed as the kernel does, it reads the same
			again, err := parseBitMask(strconv.FormatUint(cache.Mask, 16))
			if err != nil || again != cache.Mask || cache.Name != "L3" {
				t.Errorf("%s has mask %x, which reads %x, %v", cache.Name, cache.Mask, again, err)
			}
		}
		if len(m.Resctrl.Caches) > 1 || len(m.Resctrl.Bandwidths) > 1 || len(m.Resctrl.Monitors) > 0 {
			t.Errorf("one L3 and one MB are %+v", *m.Resctrl)
		}
	})
}

func FuzzSchemata(f *testing.F) {
	for _, text := range []string{
		"    MB:0= 100;1= 100\n    L3:0=fff;1=fff\n", "L3:0=00f", "L2:65536=1;2147483647=ff", "L3:uninitialized\n", "MB:0=4294967295",
		"L3:", "L3:0=;", "L3:0=1fff", "L3:1=1;0=1", "L3:0=1\nL3:0=1", "SMBA:0=x", "=", ":", "L3CODE:0=-1",
	} {
		f.Add(text)
	}
	info := Resctrl{
		Caches: []CacheAllocation{{Name: "L2", Mask: 0xff}, {Name: "L3", Mask: 0xfff}}, Bandwidths: []BandwidthAllocation{{Name: "MB"}},
	}
	f.Fuzz(func(t *testing.T, text string) {
		schemata, err := info.ParseSchemata(text)
		if err != nil {
			if !schemata.IsEmpty() || !strings.HasPrefix(err.Error(), "schemata") {
				t.Errorf("ParseSchemata(%q) = %v and %v", text, schemata, err)
			}
			return
		}
		for _, m := range schemata.Masks {
			if m.Mask > 0xfff || m.Resource == "L2" && m.Mask > 0xff || m.Cache < 0 {
				t.Errorf("%q has mask %+v", text, m)
			}
		}
		again, err := info.ParseSchemata(schemata.String())
		sameJSON(t, schemata.String(), []any{again, err}, []any{schemata, nil})
	})
}

func FuzzBitUsage(f *testing.F) {
	for _, text := range []string{"0=XXSS;1=0HEP", "0=", "0=SSSSS", "1=SSSS;0=SSSS", ";", "0=\x00SSS", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		usage, err := CacheAllocation{Name: "L3", Mask: 0xf}.parseUsage(text)
		if err != nil && usage != nil || len(usage) > strings.Count(text, "=") {
			t.Errorf("parseUsage(%q) = %v and %v", text, usage, err)
		}
		for _, u := range usage {
			if all := u.Unused | u.Groups | u.Devices | u.Exclusive | u.Locked; all != 0xf || u.Unused&(u.Groups|u.Devices) != 0 {
				t.Errorf("%q is %+v", text, u)
			}
		}
	})
}

func FuzzCounter(f *testing.F) {
	f.Add("65536", "mon_L3_00")
	f.Add("Unavailable", "mon_PERF_PKG_00")
	f.Add("18446744073709551616", "mon_sub_L3_1")
	f.Add("", "mon__")
	f.Fuzz(func(t *testing.T, text, name string) {
		value, err := parseCounter(text)
		if err != nil && value != nil {
			t.Errorf("parseCounter(%q) = %d and %v", text, *value, err)
		}
		if value != nil {
			if again, err := parseCounter(strconv.FormatUint(*value, 10)); err != nil || *again != *value {
				t.Errorf("parseCounter(%q) = %d, which reads %v, %v", text, *value, again, err)
			}
		}
		resource, id, err := parseMonitored(name, "mon_")
		if err != nil && (resource != "" || id != 0) || id < 0 || err == nil && !strings.HasPrefix(name, "mon_"+resource+"_") {
			t.Errorf("parseMonitored(%q) = %q, %d, %v", name, resource, id, err)
		}
	})
}

func FuzzPCIAddress(f *testing.F) {
	for _, text := range []string{"0000:3b:00.0", "10000:e1:00.0", "0000:00:1f.7", "0000:3B:00.0", "", ":::", "00000:00:00.0", "-001:00:00.0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		address, err := parsePCIAddress(text)
		if err != nil {
			if address != (pciAddress{}) {
				t.Errorf("parsePCIAddress(%q) = %s and %v", text, address, err)
			}
			return
		}
		if address.String() != text || address.device > 31 || address.function > 7 || len(text) > len("ffffffff:ff:1f.7") {
			t.Errorf("parsePCIAddress(%q) prints as %s", text, address)
		}
		if isRootBus(text) || !isRootBus("pci"+strings.TrimSuffix(text[:len(text)-4], ":")) {
			t.Errorf("the bus of %s is no root bus, or itself is one", text)
		}
	})
}

func FuzzNamespace(f *testing.F) {
	for _, text := range []string{"nvme0n1", "nvme12c3n4", "nvme0", "ng0n1", "nvme0n1p1", "nvmen", "nvme0cn1", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		namespace, ok := Namespace(text)
		if !ok {
			if namespace != "" {
				t.Errorf("Namespace(%q) = %q and none", text, namespace)
			}
			return
		}
		if again, ok := Namespace(namespace); !ok || again != namespace || strings.Contains(namespace, "c") || len(namespace) > len(text) {
			t.Errorf("Namespace(%q) = %q, which is %q", text, namespace, again)
		}
	})
}

func FuzzNetSpeed(f *testing.F) {
	for _, text := range []string{"100000", "-1", "4294967295", "0", "1e5", "", "99999999999999999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		speed, err := parseNetSpeed(text)
		if err != nil && speed != nil || speed != nil && *speed <= 0 {
			t.Fatalf("parseNetSpeed(%q) = %v, %v", text, speed, err)
		}
		if speed == nil {
			return
		}
		if again, err := parseNetSpeed(strconv.Itoa(*speed)); err != nil || *again != *speed {
			t.Errorf("parseNetSpeed(%q) = %d, which reads %v, %v", text, *speed, again, err)
		}
	})
}

func FuzzProperties(f *testing.F) {
	f.Add("simd_count 4\nlocation_id 512\nname 0x12\n")
	f.Add("a\n b  2\n\x00 3")
	f.Fuzz(func(t *testing.T, text string) {
		properties, err := parseProperties(text)
		if err != nil || len(properties) > strings.Count(text, "\n")+1 {
			t.Errorf("parseProperties(%q) = %v, %v", text, properties, err)
		}
	})
}
