package fake

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// kernelZone is one of the kernel's memory zones in a node: DMA, Normal, ….
type kernelZone struct {
	name                      string
	managed, free, firstPage  uint64
	min, low, high, promotion uint64 // watermarks
	reserve                   uint64 // lowmem_reserve_ratio
}

// Indexes of the kernel zones of a node.
const (
	dma = iota
	dma32
	normal
	movable
	kernelZones = 5 // Device is the fifth
)

// dmaPages is the number of pages that firmware leaves in the first 16 MiB. lowBytes is
// the memory below the addresses of devices.
const (
	dmaPages = 3840
	lowBytes = 2 * gib
)

// hugepages returns the zone's pools, with all page sizes of the make, in order of size.
func (l *layout) hugepages(z zone) []Hugepages {
	sizes := []uint64{2 * mib, gib}
	if l.Make == Arm && l.PageBytes == 64<<10 {
		sizes = []uint64{2 * mib, 512 * mib, 16 * gib}
	}
	var pools []Hugepages
	if z.hasCPUs && z.MemoryBytes > 0 {
		pools = slices.Clone(l.Hugepages)
	}
	for _, size := range sizes {
		if !slices.ContainsFunc(pools, func(p Hugepages) bool { return p.PageBytes == size }) {
			pools = append(pools, Hugepages{PageBytes: size})
		}
	}
	slices.SortFunc(pools, func(a, b Hugepages) int { return int(a.PageBytes>>10) - int(b.PageBytes>>10) })
	return pools
}

func (l *layout) hugepageBytes(z zone) (sum uint64) {
	for _, pool := range l.hugepages(z) {
		sum += pool.PageBytes * pool.Pages
	}
	return sum
}

// freeBytes returns MemFree. A 64th of the memory outside hugepages counts as used.
func (l *layout) freeBytes(z zone) uint64 {
	left := z.MemoryBytes - l.hugepageBytes(z)
	return left - left/64/l.PageBytes*l.PageBytes
}

// kernelZones splits a zone's memory into the kernel's memory zones. Low memory of the
// machine is DMA and DMA32, other memory is Normal, and memory that a driver plugged in
// is Movable.
func (l *layout) kernelZones(z zone) []kernelZone {
	list := []kernelZone{
		{name: "DMA", reserve: 256}, {name: "DMA32", reserve: 256}, {name: "Normal", reserve: 32}, {name: "Movable"}, {name: "Device"},
	}
	left, first, low := z.MemoryBytes/l.PageBytes, z.firstPage, lowBytes/l.PageBytes
	take := func(kind int, pages uint64) {
		pages = min(left, pages)
		list[kind].managed, list[kind].firstPage = pages, first
		left, first = left-pages, first+pages
	}
	switch {
	case z.Kind == CXL || z.Kind == GPU:
		take(movable, left)
	case l.Make == Arm: // the first 4 GiB are DMA
		take(dma, max(low, first)-first)
		take(normal, left)
	default:
		if first == 0 {
			take(dma, dmaPages)
		}
		take(dma32, max(low, first)-first)
		first += low // above the addresses of devices
		take(normal, left)
	}
	used := (z.MemoryBytes - l.freeBytes(z)) / l.PageBytes
	for i := kernelZones - 1; i >= 0; i-- { // the highest kernel zone is used first
		part := min(used, list[i].managed)
		list[i].free, used = list[i].managed-part, used-part
	}
	return list
}

// addMemory adds proc/meminfo, proc/zoneinfo and sys/kernel/mm/hugepages.
func (t tree) addMemory(l layout) {
	var total, free uint64
	sums := map[uint64]Hugepages{}
	zones := map[int][]kernelZone{}
	for _, z := range l.zones {
		total, free = total+z.MemoryBytes, free+l.freeBytes(z)
		for _, pool := range l.hugepages(z) {
			sum := sums[pool.PageBytes]
			sums[pool.PageBytes] = Hugepages{pool.PageBytes, sum.Pages + pool.Pages, sum.FreePages + pool.FreePages}
		}
		zones[z.ID] = l.kernelZones(z)
	}
	t.line("proc/meminfo", "MemTotal:       %8d kB\nMemFree:        %8d kB\nMemAvailable:   %8d kB", total>>10, free>>10, free>>10)
	for _, pool := range sums {
		folder := hugepageFolder("sys/kernel/mm", pool)
		t.addPool(folder, pool)
		t.line(folder+"/resv_hugepages", "0")
		t.line(folder+"/nr_overcommit_hugepages", "0")
		if !l.NoNUMA {
			t.line(folder+"/nr_hugepages_mempolicy", "%d", pool.Pages)
		}
	}
	l.setWatermarks(zones)
	var zoneinfo strings.Builder
	pagesets := map[bool]string{true: l.pagesets(63), false: l.pagesets(1)}
	for _, z := range l.zones {
		writeZoneinfo(&zoneinfo, z.ID, zones[z.ID], pagesets)
	}
	t.files["proc/zoneinfo"] = zoneinfo.String()
}

func hugepageFolder(parent string, pool Hugepages) string {
	return fmt.Sprintf("%s/hugepages/hugepages-%dkB", parent, pool.PageBytes>>10)
}

// addPool adds the files that a pool has both for a node and for the whole machine.
func (t tree) addPool(folder string, pool Hugepages) {
	t.line(folder+"/nr_hugepages", "%d", pool.Pages)
	t.line(folder+"/free_hugepages", "%d", pool.FreePages)
	t.line(folder+"/surplus_hugepages", "0")
}

// setWatermarks sets the watermarks as the kernel does in mm/page_alloc.c and
// mm/khugepaged.c. The kernel keeps min_free_kbytes free: 4 times the square root of
// the memory in kB, or enough blocks for huge pages, whichever is more. Each kernel
// zone gets a share by its size.
func (l *layout) setWatermarks(zones map[int][]kernelZone) {
	var lowmem, populated uint64 // in pages; number of kernel zones
	for _, list := range zones {
		for _, k := range list[:movable] {
			lowmem += k.managed
			populated += min(k.managed, 1)
		}
	}
	block := 2 * mib / l.PageBytes
	if l.PageBytes == 64<<10 {
		block = 512 * mib / l.PageBytes
	}
	kib := uint64(math.Sqrt(float64(16 * lowmem * l.PageBytes >> 10)))
	kib = max(min(max(kib, 128), 256<<10), min(block*populated*(2+9), lowmem/20)*l.PageBytes>>10)
	pages := kib << 10 / l.PageBytes
	for _, list := range zones {
		for i := range list {
			k := &list[i]
			share := pages * k.managed / max(lowmem, 1)
			k.min = share
			if i == movable {
				k.min = max(32, min(k.managed/1024, 128))
			}
			step := max(share/4, k.managed/1000)
			k.low, k.high, k.promotion = k.min+step, k.min+2*step, k.min+3*step
		}
	}
}

// pagesets returns the part of zoneinfo that describes the free pages that each CPU
// keeps at hand.
func (l *layout) pagesets(batch int) string {
	var text strings.Builder
	text.WriteString("\n  pagesets")
	for id := range l.online.All() {
		fmt.Fprintf(&text, "\n    cpu: %d\n              count:    0\n              high:     %d\n              batch:    %d", id, 6*batch, batch)
		text.WriteString("\n  vm stats threshold: 24")
	}
	return text.String()
}

// writeZoneinfo adds a node to /proc/zoneinfo, as mm/vmstat.c prints it, with a few of
// the statistics.
func writeZoneinfo(text *strings.Builder, node int, list []kernelZone, pagesets map[bool]string) {
	first := true
	for i, k := range list {
		fmt.Fprintf(text, "Node %d, zone %8s", node, k.name)
		if k.managed > 0 && first {
			text.WriteString("\n  per-node stats")
			for _, name := range []string{"nr_inactive_anon", "nr_active_anon", "nr_inactive_file", "nr_active_file", "nr_unevictable"} {
				fmt.Fprintf(text, "\n      %-12s %d", name, 0)
			}
			first = false
		}
		fmt.Fprintf(text, "\n  pages free     %d\n        boost    0\n        min      %d\n        low      %d\n        high     %d",
			k.free, k.min, k.low, k.high)
		fmt.Fprintf(text, "\n        promo    %d\n        spanned  %d\n        present  %d\n        managed  %d\n        cma      0",
			k.promotion, k.managed, k.managed, k.managed)
		text.WriteString("\n        protection: (")
		above := uint64(0)
		for j := range list {
			if j > 0 {
				text.WriteString(", ")
			}
			reserve := uint64(0)
			if j > i && k.managed > 0 && k.reserve > 0 {
				above += list[j].managed
				reserve = above / k.reserve
			}
			fmt.Fprint(text, reserve)
		}
		text.WriteString(")")
		if k.managed > 0 {
			fmt.Fprintf(text, "\n      nr_free_pages %d%s", k.free, pagesets[k.managed > dmaPages])
			fmt.Fprintf(text, "\n  node_unreclaimable:  %d\n  start_pfn:           %d", 0, k.firstPage)
		}
		text.WriteString("\n")
	}
}
