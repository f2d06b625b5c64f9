package draw

import (
	"fmt"
	"strconv"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

// memory returns the lines about memory in a zone's box.
func (s *scene) memory(zone *numa.Zone) (parts []canvas.Part) {
	add := func(line string) {
		parts = append(parts, canvas.Paragraph{Words: canvas.Words(line, canvas.MemoryText), Indent: 2})
	}
	switch {
	case zone.MemoryBytes == nil:
	case *zone.MemoryBytes == 0:
		if !zone.CPUs.IsEmpty() {
			add("no memory")
		}
	default:
		line := canvas.Size(*zone.MemoryBytes)
		if zone.FreeBytes != nil {
			line += "," + canvas.Joint + canvas.Size(*zone.FreeBytes) + canvas.Joint + "free"
		}
		add(line)
	}
	for _, pool := range zone.Hugepages {
		if pool.TotalPages == 0 {
			continue
		}
		line := fmt.Sprintf("hugepages %s: %d", canvas.PageSize(pool.PageBytes), pool.TotalPages)
		if pool.FreePages != nil {
			line += fmt.Sprintf(", %d%sfree", *pool.FreePages, canvas.Joint)
		}
		add(line)
	}
	if line := performance(zone.Performance); line != "" {
		add(line)
	}
	for _, cache := range zone.SideCaches {
		line := "memory-side cache"
		if cache.SizeBytes != nil {
			line += " " + canvas.Size(*cache.SizeBytes)
		}
		add(line)
	}
	if zone.MemoryTier != nil && s.severalTiers() {
		add("memory tier " + strconv.Itoa(*zone.MemoryTier))
	}
	return parts
}

// performance says how fast the nearest CPUs can access the memory.
func performance(p *numa.Performance) string {
	if p == nil {
		return ""
	}
	bandwidth := readWrite(p.ReadBandwidthMiBps, p.WriteBandwidthMiBps, func(mib uint64) string { return canvas.Size(mib<<20) + "/s" })
	latency := readWrite(p.ReadLatencyNs, p.WriteLatencyNs, func(ns uint64) string { return strconv.FormatUint(ns, 10) + canvas.Joint + "ns" })
	if bandwidth != "" && latency != "" {
		return bandwidth + ", " + latency
	}
	return bandwidth + latency
}

// readWrite writes the two values only once if they are equal.
func readWrite(read, write *uint64, format func(uint64) string) string {
	switch {
	case read == nil && write == nil:
		return ""
	case write == nil:
		return format(*read) + canvas.Joint + "read"
	case read == nil:
		return format(*write) + canvas.Joint + "write"
	case *read == *write:
		return format(*read)
	}
	return format(*read) + " read, " + format(*write) + canvas.Joint + "write"
}

// severalTiers reports whether zones are in different memory tiers.
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
