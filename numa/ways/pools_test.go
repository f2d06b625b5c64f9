package ways

import (
	"reflect"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// cacheOf is a cache of n ways.
func cacheOf(n, minBits int) numa.CacheAllocation {
	return numa.CacheAllocation{Name: "L3", CLOSIDs: 16, Mask: uint64(run(0, n)), MinBits: minBits}
}

func TestPoolsOfACache(t *testing.T) {
	shareable := func(n, minBits int, mask uint64) numa.CacheAllocation {
		c := cacheOf(n, minBits)
		c.ShareableMask = mask
		return c
	}
	sparse := shareable(12, 1, 0x0c)
	sparse.Sparse = true
	rows := []struct {
		name  string
		cache numa.CacheAllocation
		c     Config
		want  Pools
		err   string // that part of the error, if there is one
	}{
		{"as the predecessor's", cacheOf(20, 1), Config{OS: 1, Infra: 19, Guaranteed: 10, BestEffort: 7, Shared: 2}, Pools{OS: 1, Infra: 0xffffe, Guaranteed: 0x7fe, BestEffort: 0x3f800, Shared: 0xc0000}, ""},
		{"a smaller infra is at the high end", cacheOf(20, 1), Config{OS: 1, Infra: 5}, Pools{OS: 1, Infra: 0xf8000}, ""},
		{"reserved CPUs follow os", cacheOf(20, 1), Config{OS: 1, Reserved: 2, Infra: 17, Guaranteed: 10, Shared: 2}, Pools{OS: 1, Reserved: 6, Infra: 0xffff8, Guaranteed: 0x1ff8, Shared: 0x6000}, ""},
		{"groups follow reserved", cacheOf(20, 1), Config{OS: 1, Reserved: 2, Groups: []int{3, 1}, Infra: 13, Guaranteed: 10}, Pools{OS: 1, Reserved: 6, Groups: []Mask{0x38, 0x40}, Infra: 0xfff80, Guaranteed: 0x1ff80}, ""},
		{"only groups", cacheOf(12, 2), Config{OS: 2, Groups: []int{2}}, Pools{OS: 3, Groups: []Mask{0xc}}, ""},
		{"only reserved", cacheOf(12, 2), Config{OS: 2, Reserved: 2}, Pools{OS: 3, Reserved: 0xc}, ""},
		{"no infra", cacheOf(12, 2), Config{OS: 2, Guaranteed: 8}, Pools{OS: 3, Guaranteed: 0x3fc}, ""},
		{"only shared", cacheOf(12, 2), Config{OS: 2, Shared: 10}, Pools{OS: 3, Shared: 0xffc}, ""},
		{"64 ways", cacheOf(64, 1), Config{OS: 1, Infra: 63, Guaranteed: 60, BestEffort: 2, Shared: 1}, Pools{OS: 1, Infra: ^Mask(1), Guaranteed: 1<<61 - 2, BestEffort: 3 << 61, Shared: 1 << 63}, ""},
		{"an old kernel says that masks may be empty", cacheOf(12, 0), Config{OS: 1, Shared: 1}, Pools{OS: 1, Shared: 2}, ""},
		{"shared may have the ways of devices", shareable(12, 1, 0xc00), Config{OS: 1, Infra: 11, Guaranteed: 6, BestEffort: 3, Shared: 2}, Pools{OS: 1, Infra: 0xffe, Guaranteed: 0x7e, BestEffort: 0x380, Shared: 0xc00}, ""},
		{"all ways are those of devices, as on Arm", shareable(12, 1, 0xfff), Config{OS: 1, Guaranteed: 6, BestEffort: 3, Shared: 2}, Pools{OS: 1, Guaranteed: 0x7e, BestEffort: 0x380, Shared: 0xc00}, ""},
		{"os too", shareable(12, 1, 3), Config{OS: 1, Infra: 0, Guaranteed: 6, BestEffort: 4, Shared: 1}, Pools{OS: 1, Guaranteed: 0xfc, BestEffort: 0xf00, Shared: 2}, ""},
		{"the next pools decide where the first is", shareable(12, 1, 0x30), Config{OS: 1, Guaranteed: 3, BestEffort: 6}, Pools{OS: 1, Guaranteed: 0xe, BestEffort: 0xfc0}, ""},
		{"or the other way round", shareable(12, 1, 0x30), Config{OS: 1, Guaranteed: 6, BestEffort: 3}, Pools{OS: 1, Guaranteed: 0xfc0, BestEffort: 0xe}, ""},
		{"sparse", sparse, Config{OS: 1, Infra: 2, Guaranteed: 3, BestEffort: 3, Shared: 4}, Pools{OS: 1, Infra: 0xc00, Guaranteed: 0x32, BestEffort: 0x1c0, Shared: 0x60c}, ""},

		{"no os", cacheOf(12, 2), Config{Guaranteed: 8}, Pools{}, "divide the 12 ways of L3: os 0: a mask has at least 2 ways (min_cbm_bits)"},
		{"only os", cacheOf(12, 2), Config{OS: 2}, Pools{}, "there is no pool but os"},
		{"too many", cacheOf(20, 1), Config{OS: 1, Infra: 19, Guaranteed: 10, BestEffort: 8, Shared: 2}, Pools{}, "os 1 + guaranteed 10 + besteffort 8 + shared 2 = 21 ways: the cache has 20"},
		{"a pool that does not exist is not in the sum", cacheOf(12, 1), Config{OS: 1, BestEffort: 12}, Pools{}, "os 1 + besteffort 12 = 13 ways: the cache has 12"},
		{"infra on os", cacheOf(20, 1), Config{OS: 2, Infra: 19}, Pools{}, "infra 19: 18 are left without os 2"},
		{"too few bits", cacheOf(12, 2), Config{OS: 2, Guaranteed: 4, Shared: 1}, Pools{}, "shared 1: a mask has at least 2 ways (min_cbm_bits)"},
		{"infra on reserved", cacheOf(20, 1), Config{OS: 2, Reserved: 2, Infra: 17}, Pools{}, "infra 17: 16 are left without os 2, reserved 2"},
		{"infra on a group", cacheOf(20, 1), Config{OS: 2, Groups: []int{2}, Infra: 17}, Pools{}, "infra 17: 16 are left without os 2, groups[0] 2"},
		{"too many with groups", cacheOf(20, 1), Config{OS: 1, Groups: []int{2, 3}, Guaranteed: 15}, Pools{}, "os 1 + groups[0] 2 + groups[1] 3 + guaranteed 15 = 21 ways: the cache has 20"},
		{"too few bits of a group", cacheOf(12, 2), Config{OS: 2, Groups: []int{2, 1}}, Pools{}, "groups[1] 1: a mask has at least 2 ways (min_cbm_bits)"},
		{"too many with reserved", cacheOf(20, 1), Config{OS: 1, Reserved: 2, Guaranteed: 18}, Pools{}, "os 1 + reserved 2 + guaranteed 18 = 21 ways: the cache has 20"},
		{"too few bits of reserved", cacheOf(12, 2), Config{OS: 2, Reserved: 1}, Pools{}, "reserved 1: a mask has at least 2 ways (min_cbm_bits)"},
		{"too few bits of infra", cacheOf(12, 2), Config{OS: 2, Infra: 1}, Pools{}, "infra 1: a mask has at least 2 ways (min_cbm_bits)"},
		{"negative", cacheOf(12, 1), Config{OS: 2, Guaranteed: -1}, Pools{}, "guaranteed -1: allowed are 0 to 12 ways"},
		{"a sum that is out of range", cacheOf(12, 1), Config{OS: 1, Guaranteed: 1 << 62, BestEffort: 1 << 62}, Pools{}, "allowed are 0 to 12 ways"},
		{
			"exclusive on ways of devices", shareable(12, 1, 0xc00),
			Config{OS: 1, Guaranteed: 6, BestEffort: 4},
			Pools{},
			"guaranteed 6 + besteffort 4 = 10 ways: 9 are left without os 1 and the shareable bits c00",
		},
		{
			"enough, but not in one piece", shareable(12, 1, 0x40),
			Config{OS: 1, Guaranteed: 6, Shared: 2},
			Pools{},
			"no runs of ways for guaranteed 6, shared 2: os 1 and the shareable bits 40 leave runs of 5, 5 ways",
		},
		{"a mask with a hole", numa.CacheAllocation{Name: "L3", Mask: 0xff0f}, Config{OS: 1}, Pools{}, "cbm_mask ff0f is not one run from way 0"},
		{"no mask", numa.CacheAllocation{Name: "L3"}, Config{OS: 1}, Pools{}, "divide the 0 ways of L3: cbm_mask 0"},
	}
	for _, row := range rows {
		got, err := Divide(row.cache, row.c)
		if !reflect.DeepEqual(got, row.want) || (err == nil) != (row.err == "") || err != nil && !strings.Contains(err.Error(), row.err) {
			t.Errorf("%s: Divide(%x, %+v) = %+v, %v, want %+v, %s", row.name, row.cache.Mask, row.c, got, err, row.want, row.err)
		}
	}
}

// Every configuration of a small cache either has pools as they are declared, or none.
func TestPoolsAreAsDeclaredOrRefused(t *testing.T) {
	const n = 5
	pools, refused := 0, 0
	for shareable := range uint64(1 << n) {
		for code := range (n + 1) * (n + 1) * (n + 1) * (n + 1) {
			cache := cacheOf(n, 1+code%2)
			cache.ShareableMask, cache.Sparse = shareable, code%3 == 0
			c := Config{OS: code % (n + 1), Reserved: code / 7 % 4 / 3, Groups: make([]int, code/5%6/5), Guaranteed: code / 6 % 6, BestEffort: code / 36 % 6, Shared: code / 216}
			for i := range c.Groups {
				c.Groups[i] = 1
			}
			p, err := Divide(cache, c)
			if err != nil {
				refused++
				continue
			}
			pools++
			union, sum := p.OS|p.Reserved|p.Guaranteed|p.BestEffort|p.Shared, c.OS+c.Reserved+len(c.Groups)+c.Guaranteed+c.BestEffort+c.Shared
			numbers := Config{p.OS.Ways(), p.Infra.Ways(), p.Guaranteed.Ways(), p.BestEffort.Ways(), p.Shared.Ways(), p.Reserved.Ways(), make([]int, len(p.Groups))}
			for i, mask := range p.Groups {
				numbers.Groups[i] = mask.Ways()
				union |= mask
			}
			if !reflect.DeepEqual(numbers, c) || union.Ways() != sum || !union.within(run(0, n)) || p.OS != run(0, c.OS) || p.Reserved != run(c.OS, c.Reserved) || (p.Guaranteed|p.BestEffort)&devices(&cache) != 0 {
				t.Fatalf("Divide(%+v, %+v) = %+v", cache, c, p)
			}
			for _, m := range []Mask{p.Guaranteed, p.BestEffort, p.Shared} {
				if m != 0 && !cache.Sparse && !m.Contiguous() {
					t.Fatalf("Divide(%+v, %+v) = %+v", cache, c, p)
				}
			}
		}
	}
	if pools < 350 || refused < 400 {
		t.Errorf("%d have pools, %d are refused: too few to tell", pools, refused)
	}
}

func TestMaskIsWrittenAsSchemataHasIt(t *testing.T) {
	for m, want := range map[Mask]string{0: "0", 0x7fe: "7fe", 1 << 63: "8000000000000000"} {
		if m.String() != want {
			t.Errorf("%x is %s", uint64(m), m)
		}
	}
	for m, want := range map[Mask]bool{0: false, 1: true, 5: false, 6: true, ^Mask(0): true, 1<<63 | 1: false} {
		if m.Contiguous() != want {
			t.Errorf("%s is contiguous: %t", m, !want)
		}
	}
}
