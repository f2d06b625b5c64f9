package fake

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// maxZones is the largest number of NUMA nodes that a kernel can be built for.
const maxZones = 1024

// checkCounts limits the cost of numbering. It expects that newLayout has filled in the
// counts.
func (l *layout) checkCounts() error {
	for _, count := range []struct {
		name  string
		value int
	}{
		{"Sockets", l.Sockets},
		{"DiesPerSocket", l.DiesPerSocket},
		{"ZonesPerSocket", l.ZonesPerSocket},
		{"L3sPerSocket", l.L3sPerSocket},
		{"CoresPerSocket", l.CoresPerSocket},
	} {
		if count.value < 1 || count.value > cpuset.MaxCPUs {
			return fmt.Errorf("fake machine: %s is %d, allowed are 1-%d", count.name, count.value, cpuset.MaxCPUs)
		}
		if count.name != "Sockets" && l.CoresPerSocket%count.value != 0 {
			return fmt.Errorf("fake machine: %s is %d, which does not divide the %d cores of a socket", count.name, count.value, l.CoresPerSocket)
		}
	}
	if l.Threads < 1 || l.Threads > 2 {
		return fmt.Errorf("fake machine: Threads is %d, allowed are 1-2", l.Threads)
	}
	if h := l.Hybrid; h != nil {
		if l.Make != Intel || l.Sockets*l.ZonesPerSocket*l.DiesPerSocket*l.L3sPerSocket != 1 {
			return fmt.Errorf("fake machine: a hybrid is an Intel with one socket, die, zone and L3")
		}
		if h.Efficient < 0 || h.LowPower < 0 || h.Efficient+h.LowPower > cpuset.MaxCPUs {
			return fmt.Errorf("fake machine: a hybrid has %d efficient and %d low-power cores, allowed are 0-%d", h.Efficient, h.LowPower, cpuset.MaxCPUs)
		}
	}
	if n := l.possibleCPUs(); n > cpuset.MaxCPUs {
		return fmt.Errorf("fake machine: %d CPUs, allowed are 1-%d", n, cpuset.MaxCPUs)
	}
	if zones := l.Sockets * l.ZonesPerSocket; l.ZoneIDs != nil && (len(l.ZoneIDs) != zones || !slices.IsSorted(l.ZoneIDs)) {
		return fmt.Errorf("fake machine: ZoneIDs are %v, want %d of them, ascending", l.ZoneIDs, zones)
	}
	return nil
}

func (l *layout) possibleCPUs() int {
	n := l.Sockets * l.CoresPerSocket * l.Threads
	if l.Hybrid != nil {
		n += l.Hybrid.Efficient + l.Hybrid.LowPower
	}
	return n
}

// checkLists checks the CPU lists before number parses them.
func (l *layout) checkLists() error {
	for _, field := range []struct{ name, list string }{
		{"Absent", l.Absent}, {"Offline", l.Offline}, {"Isolated", l.Isolated}, {"NoHZFull", l.NoHZFull},
	} {
		set, err := cpuset.Parse(field.list)
		if err != nil {
			return fmt.Errorf("fake machine: %s: %w", field.name, err)
		}
		for cpu := range set.All() {
			if cpu >= l.possibleCPUs() {
				return fmt.Errorf("fake machine: %s has cpu %d, the machine has 0-%d", field.name, cpu, l.possibleCPUs()-1)
			}
		}
	}
	return nil
}

func (l *layout) checkCPUs() error {
	offline, _ := cpuset.Parse(l.Offline)
	switch {
	case !offline.IsSubsetOf(l.present):
		return fmt.Errorf("fake machine: cpus %s are offline and absent", offline.Difference(l.present))
	case l.Make != Arm && !l.online.Contains(0):
		return fmt.Errorf("fake machine: x86 needs cpu 0 online")
	case l.online.IsEmpty():
		return fmt.Errorf("fake machine: no cpu is online")
	}
	return nil
}

func (l *layout) checkZones() error {
	for i, z := range l.zones {
		if z.ID < 0 || z.ID >= maxZones {
			return fmt.Errorf("fake machine: zone %d, allowed are 0-%d", z.ID, maxZones-1)
		}
		if i > 0 && z.ID == l.zones[i-1].ID {
			return fmt.Errorf("fake machine: zone %d appears twice", z.ID)
		}
		if near, known := l.zone(z.Near); !known || !near.hasCPUs {
			return fmt.Errorf("fake machine: zone %d is near zone %d, which is not a zone with CPUs", z.ID, z.Near)
		}
		isGPU := slices.ContainsFunc(l.PCI, func(f Function) bool { return f.Address == z.GPU })
		if (z.Kind == GPU) != (z.GPU != "") || z.Kind == GPU && !isGPU {
			return fmt.Errorf("fake machine: zone %d has memory of GPU %q, which is not a declared function", z.ID, z.GPU)
		}
	}
	if least := l.zones[len(l.zones)-1].ID + 1; l.PossibleZones != 0 && (l.PossibleZones < least || l.PossibleZones > maxZones) {
		return fmt.Errorf("fake machine: PossibleZones is %d, allowed are %d-%d", l.PossibleZones, least, maxZones)
	}
	if l.NoNUMA && (len(l.zones) != 1 || l.zones[0].ID != 0) {
		return fmt.Errorf("fake machine: a kernel without NUMA support has no zones but zone 0")
	}
	return nil
}

func (l *layout) zone(id int) (zone, bool) {
	i := slices.IndexFunc(l.zones, func(z zone) bool { return z.ID == id })
	if i < 0 {
		return zone{}, false
	}
	return l.zones[i], true
}

func (l *layout) checkMemory() error {
	if l.PageBytes < 4096 || l.PageBytes > 64<<10 || bits.OnesCount64(l.PageBytes) != 1 {
		return fmt.Errorf("fake machine: PageBytes is %d, allowed are 4096, 16384 and 65536", l.PageBytes)
	}
	for id := range l.ZoneMemory {
		if z, known := l.zone(id); !known || !z.hasCPUs {
			return fmt.Errorf("fake machine: ZoneMemory has zone %d, which is not a zone with CPUs", id)
		}
	}
	for _, pool := range l.Hugepages {
		if pool.FreePages > pool.Pages || pool.PageBytes < l.PageBytes || bits.OnesCount64(pool.PageBytes) != 1 {
			return fmt.Errorf("fake machine: hugepages %+v: more free pages than pages, or an invalid page size", pool)
		}
	}
	for _, z := range l.zones {
		if z.MemoryBytes%l.PageBytes != 0 || z.MemoryBytes > 0 && z.MemoryBytes < MinMemoryBytes || z.MemoryBytes > 1<<50 {
			return fmt.Errorf("fake machine: zone %d has %d bytes, which is not 0 or whole pages from %d to 2^50",
				z.ID, z.MemoryBytes, MinMemoryBytes)
		}
		if (z.Kind == Initiator || z.Kind == Empty) != (z.MemoryBytes == 0) && !z.hasCPUs {
			return fmt.Errorf("fake machine: zone %d has %d bytes, which does not fit its kind", z.ID, z.MemoryBytes)
		}
		if huge := l.hugepageBytes(z); huge > z.MemoryBytes {
			return fmt.Errorf("fake machine: zone %d has %d bytes of hugepages in %d bytes", z.ID, huge, z.MemoryBytes)
		}
	}
	return nil
}

func (l *layout) checkDistances() error {
	if l.Distances == nil {
		return nil
	}
	if len(l.Distances) != len(l.zones) {
		return fmt.Errorf("fake machine: Distances have %d rows for %d zones", len(l.Distances), len(l.zones))
	}
	for i, row := range l.Distances {
		if len(row) != len(l.zones) {
			return fmt.Errorf("fake machine: Distances of zone %d have %d columns for %d zones", l.zones[i].ID, len(row), len(l.zones))
		}
		for j, distance := range row {
			if distance < 10 || distance > 255 || i == j && distance != 10 {
				return fmt.Errorf("fake machine: zone %d is %d from zone %d, allowed are 10 to itself and 10-255",
					l.zones[i].ID, distance, l.zones[j].ID)
			}
		}
	}
	return nil
}

func (l *layout) checkResctrl() error {
	r := l.Resctrl
	if r == nil {
		return nil
	}
	if r.Ways < 1 || r.Ways > 32 || r.ShareableMask>>r.Ways != 0 || r.CLOSIDs < 1 || l.Make == Arm {
		return fmt.Errorf("fake machine: resctrl %+v: want an x86 with 1-32 ways, a shareable mask within them and 1 group or more", *r)
	}
	return nil
}
