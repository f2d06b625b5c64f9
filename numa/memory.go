package numa

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

const kib = 1024

// readMemory fills in the zone's memory from its meminfo file and its hugepages folder.
func (t tree) readMemory(zone *Zone, meminfo, hugepages string) (err error) {
	if zone.MemoryBytes, _, err = parseFile(t, meminfo, parseMemTotal); err != nil {
		return err
	}
	if zone.MemoryTier, err = t.memoryTier(zone.ID); err != nil {
		return err
	}
	zone.Hugepages, err = t.hugepages(hugepages)
	return err
}

// parseMemTotal returns the bytes of "MemTotal: <n> kB", with or without "Node <id>" before it; 0 without that line.
func parseMemTotal(text string) (uint64, error) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		i := slices.Index(fields, "MemTotal:")
		if i < 0 {
			continue
		}
		if len(fields) != i+3 || fields[i+2] != "kB" {
			return 0, fmt.Errorf("line %.80q is not in kB", strings.TrimSpace(line))
		}
		total, err := parseNumber(fields[i+1])
		return total * kib, err
	}
	return 0, nil
}

// watermark is what /proc/zoneinfo says of one NUMA node, summed over the kernel's memory zones in it (DMA, Normal, …).
type watermark struct {
	highPages    uint64 // kswapd frees memory until this much is free
	managedPages uint64 // MemTotal of the node, in pages
}

// parseZoneinfo returns the watermark of each node. A block starts with "Node 0, zone   Normal"; the keys of its
// per-CPU part end in a colon ("high: 378") and are something else.
func parseZoneinfo(text string) (map[int]watermark, error) {
	marks, node := map[int]watermark{}, 0
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		var number string
		switch {
		case len(fields) == 4 && fields[0] == "Node":
			number = strings.TrimSuffix(fields[1], ",")
		case len(fields) == 2 && (fields[0] == "high" || fields[0] == "managed"):
			number = fields[1]
		default:
			continue
		}
		value, err := parseNumber(number)
		if err != nil {
			return nil, fmt.Errorf("line %.80q: %w", strings.TrimSpace(line), err)
		}
		sum := marks[node]
		switch fields[0] {
		case "Node":
			node = int(value)
			continue
		case "high":
			sum.highPages += value
		case "managed":
			sum.managedPages += value
		}
		marks[node] = sum
	}
	return marks, nil
}

// bytes returns the high marks in bytes; 0 where the page size is unknown. No file says the page size, but a node's
// MemTotal is its managed pages in kB, so their ratio does. It is rounded to a power of two because memory may come or
// go between the two reads.
func (w watermark) bytes(memoryBytes uint64) uint64 {
	if memoryBytes == 0 || w.highPages > w.managedPages {
		return 0
	}
	shift := math.Round(math.Log2(float64(memoryBytes) / float64(w.managedPages)))
	if shift < 12 || shift > 16 { // 4 KiB to 64 KiB; also where nothing is managed
		return 0
	}
	return w.highPages << uint(shift)
}

// hugepages reads the hugepages-<n>kB folders, in order of size. A size without a count is no pool.
func (t tree) hugepages(folder string) ([]Hugepages, error) {
	names, err := t.entries(folder)
	if err != nil {
		return nil, err
	}
	var pools []Hugepages
	for _, name := range names {
		size, prefixed := strings.CutPrefix(name, "hugepages-")
		size, suffixed := strings.CutSuffix(size, "kB")
		if !prefixed || !suffixed {
			continue
		}
		pageKiB, err := parseNumber(size)
		if err != nil {
			return nil, fmt.Errorf("read %s/%s: %w", folder, name, err)
		}
		total, found, err := parseFile(t, folder+"/"+name+"/nr_hugepages", parseNumber)
		if err != nil {
			return nil, err
		}
		if !found {
			continue
		}
		free, _, err := parseFile(t, folder+"/"+name+"/free_hugepages", parseNumber)
		if err != nil {
			return nil, err
		}
		pools = append(pools, Hugepages{PageBytes: pageKiB * kib, TotalPages: total, FreePages: free})
	}
	slices.SortFunc(pools, func(a, b Hugepages) int { return cmp.Compare(a.PageBytes, b.PageBytes) })
	return pools, nil
}

// memoryTier returns the N of the memory_tier<N> whose node list has the zone; nil without one.
// Documentation/ABI/testing/sysfs-kernel-mm-memory-tiers, Linux ≥ 6.1.
func (t tree) memoryTier(zone int) (*int, error) {
	const folder = "sys/devices/virtual/memory_tiering"
	tiers, err := t.numbered(folder, "memory_tier")
	if err != nil {
		return nil, err
	}
	for tier := range tiers.All() {
		nodes, _, err := parseFile(t, fmt.Sprintf("%s/memory_tier%d/nodelist", folder, tier), cpuset.Parse)
		if err != nil {
			return nil, err
		}
		if nodes.Contains(zone) {
			return &tier, nil
		}
	}
	return nil, nil
}
