package numa

import (
	"fmt"
	"math"
	"strings"
)

// readWatermarks reads the watermarks of each zone whose memory is known.
func (t tree) readWatermarks(zones []Zone) error {
	marks, _, err := parseFile(t, "proc/zoneinfo", parseZoneinfo)
	if err != nil {
		return err
	}
	for i := range zones {
		memory, pages := zones[i].MemoryBytes, marks[zones[i].ID]
		if memory != nil && pages != nil {
			zones[i].Watermarks = pages.bytes(*memory)
		}
	}
	return nil
}

// zonePages is what proc/zoneinfo says about one NUMA node in pages, summed over the
// kernel's memory zones (DMA, Normal, …) of the node.
type zonePages struct {
	min, low, high uint64 // the watermarks
	managed        uint64 // MemTotal of the node
}

// parseZoneinfo returns the pages of each node. A block starts with a line such as
// "Node 0, zone   Normal". The per-CPU part of a block is most of the file. Its keys
// end in a colon ("high: 378") and mean something else.
func parseZoneinfo(text string) (map[int]*zonePages, error) {
	pages, sum := map[int]*zonePages{}, new(zonePages)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		key, value, _ := strings.Cut(line, " ")
		var field *uint64
		switch key {
		case "Node":
			value, _, _ = strings.Cut(value, ",")
		case "min":
			field = &sum.min
		case "low":
			field = &sum.low
		case "high":
			field = &sum.high
		case "managed":
			field = &sum.managed
		default:
			continue
		}
		number, err := parseNumber(strings.TrimSpace(value))
		if err != nil {
			return nil, fmt.Errorf("line %.80q: %w", line, err)
		}
		if field != nil {
			*field += number
			continue
		}
		if pages[int(number)] == nil {
			pages[int(number)] = new(zonePages)
		}
		sum = pages[int(number)]
	}
	return pages, nil
}

// bytes returns the watermarks in bytes; nil if they contradict each other, or if the
// page size is unknown. No file has the page size. A node's MemTotal is its managed
// pages in kB, so the page size is their ratio. The ratio is rounded to a power of two
// because memory may come or go between the two reads.
func (p zonePages) bytes(memoryBytes uint64) *Watermarks {
	if memoryBytes == 0 || p.high > p.managed || p.low > p.high || p.min > p.low {
		return nil
	}
	shift := math.Round(math.Log2(float64(memoryBytes) / float64(p.managed)))
	if shift < 12 || shift > 16 { // not 4 KiB to 64 KiB, or no page is managed
		return nil
	}
	pageBytes := uint64(1) << uint(shift)
	return &Watermarks{MinBytes: p.min * pageBytes, LowBytes: p.low * pageBytes, HighBytes: p.high * pageBytes}
}
