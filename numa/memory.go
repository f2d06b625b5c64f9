package numa

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

const kib = 1024

// The memory and the hugepages of the whole machine: those of the one zone of a kernel
// without NUMA support.
const (
	machineMeminfo   = "proc/meminfo"
	machineHugepages = "sys/kernel/mm/hugepages"
)

// readMemory fills in the zone's memory from its meminfo file and its hugepages folder.
func (t tree) readMemory(zone *Zone, meminfo, hugepages string) error {
	memory, _, err := parseFile(t, meminfo, parseMeminfo)
	if err != nil {
		return err
	}
	zone.MemoryBytes, zone.FreeBytes = memory.total, memory.free
	zone.Hugepages, err = t.hugepages(hugepages)
	return err
}

// meminfo holds the values read from a meminfo file, in bytes; nil if the file has no
// such line.
type meminfo struct {
	total, free *uint64
}

// parseMeminfo reads "MemTotal: <n> kB" and "MemFree: <n> kB", with or without "Node
// <id>" before them.
func parseMeminfo(text string) (meminfo, error) {
	var memory meminfo
	for line := range strings.Lines(text) {
		var field **uint64
		_, value, found := strings.Cut(line, "MemTotal:")
		if field = &memory.total; !found {
			_, value, found = strings.Cut(line, "MemFree:")
			field = &memory.free
		}
		if !found {
			continue
		}
		number, inKiB := strings.CutSuffix(strings.TrimSpace(value), " kB")
		if !inKiB {
			return meminfo{}, fmt.Errorf("line %.80q is not in kB", strings.TrimSpace(line))
		}
		count, err := parseNumber(number)
		if err != nil {
			return meminfo{}, err
		}
		*field = new(count * kib)
		if memory.total != nil && memory.free != nil {
			break
		}
	}
	return memory, nil
}

// ReadHugepages reads the hugetlb pools of a NUMA node again, in order of size. A node that
// is offline has none.
func ReadHugepages(root fs.FS, zone int) ([]Hugepages, error) {
	t := newTree(root)
	online, err := t.onlineZones()
	switch {
	case err != nil:
		return nil, err
	case online.IsEmpty():
		return t.hugepages(machineHugepages)
	}
	return t.hugepages(zoneFolder(zone) + "/hugepages")
}

// hugepages reads the hugepages-<n>kB folders, in order of size. It skips a size
// without an nr_hugepages file.
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
		surplus, _, err := parseFile(t, folder+"/"+name+"/surplus_hugepages", parseNumber)
		if err != nil {
			return nil, err
		}
		free, err := pointer(t, folder+"/"+name+"/free_hugepages", parseNumber)
		if err != nil {
			return nil, err
		}
		kept := total - min(surplus, total) // nr_hugepages counts both
		pools = append(pools, Hugepages{PageBytes: pageKiB * kib, TotalPages: kept, SurplusPages: surplus, FreePages: free})
	}
	slices.SortFunc(pools, func(a, b Hugepages) int { return cmp.Compare(a.PageBytes, b.PageBytes) })
	return pools, nil
}

// readMemoryTiers sets the tier of each zone to the N of the memory_tier<N> whose node
// list contains the zone. Documentation/ABI/testing/sysfs-kernel-mm-memory-tiers, Linux
// ≥ 6.1.
func (t tree) readMemoryTiers(zones []Zone) error {
	const folder = "sys/devices/virtual/memory_tiering"
	tiers, err := t.numbered(folder, "memory_tier")
	if err != nil {
		return err
	}
	for tier := range tiers.All() {
		nodes, _, err := parseFile(t, fmt.Sprintf("%s/memory_tier%d/nodelist", folder, tier), cpuset.Parse)
		if err != nil {
			return err
		}
		for i := range zones {
			if nodes.Contains(zones[i].ID) {
				zones[i].MemoryTier = new(tier)
			}
		}
	}
	return nil
}
