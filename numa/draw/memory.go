package draw

import (
	"fmt"
	"strconv"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// memory are the lines of a zone's box that tell of its memory.
func (s *scene) memory(zone *numa.Zone) (parts []part) {
	add := func(line string) { parts = append(parts, paragraph{words: words(line, memoryText), indent: 2}) }
	switch {
	case zone.MemoryBytes == nil:
	case *zone.MemoryBytes == 0:
		if !zone.CPUs.IsEmpty() {
			add("no memory")
		}
	default:
		line := size(*zone.MemoryBytes)
		if zone.FreeBytes != nil {
			line += "," + joint + size(*zone.FreeBytes) + joint + "free"
		}
		add(line)
	}
	for _, pool := range zone.Hugepages {
		if pool.TotalPages == 0 {
			continue
		}
		line := fmt.Sprintf("hugepages %s: %d", pageSize(pool.PageBytes), pool.TotalPages)
		if pool.FreePages != nil {
			line += fmt.Sprintf(", %d%sfree", *pool.FreePages, joint)
		}
		add(line)
	}
	if line := performance(zone.Performance); line != "" {
		add(line)
	}
	for _, cache := range zone.SideCaches {
		line := "memory-side cache"
		if cache.SizeBytes != nil {
			line += " " + size(*cache.SizeBytes)
		}
		add(line)
	}
	if zone.MemoryTier != nil && s.severalTiers() {
		add("memory tier " + strconv.Itoa(*zone.MemoryTier))
	}
	return parts
}

// performance is how fast the nearest CPUs reach the memory.
func performance(p *numa.Performance) string {
	if p == nil {
		return ""
	}
	bandwidth := readWrite(p.ReadBandwidthMiBps, p.WriteBandwidthMiBps, func(mib uint64) string { return size(mib<<20) + "/s" })
	latency := readWrite(p.ReadLatencyNs, p.WriteLatencyNs, func(ns uint64) string { return strconv.FormatUint(ns, 10) + joint + "ns" })
	if bandwidth != "" && latency != "" {
		return bandwidth + ", " + latency
	}
	return bandwidth + latency
}

// readWrite names the two values once if they are the same.
func readWrite(read, write *uint64, format func(uint64) string) string {
	switch {
	case read == nil && write == nil:
		return ""
	case write == nil:
		return format(*read) + joint + "read"
	case read == nil:
		return format(*write) + joint + "write"
	case *read == *write:
		return format(*read)
	}
	return format(*read) + " read, " + format(*write) + joint + "write"
}

// severalTiers says whether some memory is faster than other.
func (s *scene) severalTiers() bool {
	first := (*int)(nil)
	for i := range s.machine.Zones {
		tier := s.machine.Zones[i].MemoryTier
		switch {
		case tier == nil:
		case first == nil:
			first = tier
		case *first != *tier:
			return true
		}
	}
	return false
}
