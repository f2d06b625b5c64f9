package fake

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// layout is a declared machine with its CPUs and zones numbered.
type layout struct {
	Machine          // counts filled in
	cpus             []cpu
	zones            []zone // the online zones by id; on a kernel without NUMA support, only zone 0
	possible         cpuset.Set
	present, online  cpuset.Set
	isolated, noTick cpuset.Set
}

// cpu is one possible CPU; its id is its index in layout.cpus.
type cpu struct {
	kind   coreKind
	socket int
	core   int // in its socket
	thread int
	die    int // in its socket
	slot   int // the core's number in the die, with gaps as in an APIC id
	l3     int // in its socket, or noL3
	zone   int // zone.id
}

const noL3 = -1

type coreKind int

const (
	standardCore coreKind = iota
	performanceCore
	efficientCore
	lowPowerCore
)

type zone struct {
	Zone
	hasCPUs   bool       // the zone has CPUs, online or not
	cpus      cpuset.Set // the online CPUs
	firstPage uint64     // where its memory starts
}

func newLayout(m Machine) layout {
	l := layout{Machine: m}
	for _, count := range []*int{&l.Sockets, &l.DiesPerSocket, &l.ZonesPerSocket, &l.L3sPerSocket, &l.CoresPerSocket, &l.Threads} {
		if *count == 0 {
			*count = 1
		}
	}
	if l.PageBytes == 0 {
		l.PageBytes = 4096
	}
	return l
}

// number gives every CPU and zone its id. The CPU lists of the declaration must be valid.
func (l *layout) number() {
	for socket := range l.Sockets {
		for core := range l.coresOfSocket() {
			l.cpus = append(l.cpus, l.threadsOf(socket, core)...)
		}
	}
	slices.SortFunc(l.cpus, func(a, b cpu) int {
		switch l.Numbering {
		case Adjacent:
			return cmp.Or(a.socket-b.socket, a.core-b.core, a.thread-b.thread)
		case Interleaved:
			return cmp.Or(a.thread-b.thread, a.core-b.core, a.socket-b.socket)
		default:
			return cmp.Or(a.thread-b.thread, a.socket-b.socket, a.core-b.core)
		}
	})
	parse := func(list string) cpuset.Set { set, _ := cpuset.Parse(list); return set }
	l.possible = parse(fmt.Sprintf("0-%d", len(l.cpus)-1))
	l.present = l.possible.Difference(parse(l.Absent))
	l.online = l.present.Difference(parse(l.Offline))
	l.isolated, l.noTick = parse(l.Isolated), parse(l.NoHZFull)
	l.numberZones()
}

func (l *layout) coresOfSocket() int {
	if l.Hybrid == nil {
		return l.CoresPerSocket
	}
	return l.CoresPerSocket + l.Hybrid.Efficient + l.Hybrid.LowPower
}

// threadsOf returns the CPUs of one core. The core is counted within its socket.
func (l *layout) threadsOf(socket, core int) []cpu {
	place := cpu{socket: socket, core: core}
	threads := l.Threads
	if l.Hybrid != nil { // a performance core has as many APIC ids as four other cores
		place.kind, place.slot, place.zone = performanceCore, 4*core, l.cpuZone(0)
		if core >= l.CoresPerSocket {
			place.kind, place.slot, threads = efficientCore, 3*l.CoresPerSocket+core, 1
		}
		if core >= l.CoresPerSocket+l.Hybrid.Efficient {
			place.kind, place.l3 = lowPowerCore, noL3
		}
	} else {
		coresPerDie, coresPerL3 := l.CoresPerSocket/l.DiesPerSocket, l.CoresPerSocket/l.L3sPerSocket
		place.zone = l.cpuZone(socket*l.ZonesPerSocket + core/(l.CoresPerSocket/l.ZonesPerSocket))
		place.die, place.l3 = core/coresPerDie, core/coresPerL3
		inDie, run := core%coresPerDie, min(coresPerDie, coresPerL3)
		place.slot = inDie/run<<bitsFor(run) | inDie%run
	}
	cpus := make([]cpu, threads)
	for thread := range cpus {
		cpus[thread] = place
		cpus[thread].thread = thread
	}
	return cpus
}

// cpuZone returns the id of the n-th zone with CPUs.
func (l *layout) cpuZone(n int) int {
	if l.ZoneIDs == nil {
		return n
	}
	return l.ZoneIDs[n]
}

// bitsFor returns the number of bits that are needed to number n things.
func bitsFor(n int) int { return bits.Len(uint(n - 1)) }

func (l *layout) numberZones() {
	for n := range l.Sockets * l.ZonesPerSocket {
		z := zone{Zone: Zone{ID: l.cpuZone(n), MemoryBytes: l.MemoryBytes, Performance: l.Performance}, hasCPUs: true}
		z.Near = z.ID
		if bytes, other := l.ZoneMemory[z.ID]; other {
			z.MemoryBytes = bytes
		}
		for id := range l.online.All() {
			if l.cpus[id].zone == z.ID {
				z.cpus = z.cpus.Union(cpuset.New(id))
			}
		}
		l.zones = append(l.zones, z)
	}
	for _, extra := range l.ExtraZones {
		l.zones = append(l.zones, zone{Zone: extra})
	}
	slices.SortFunc(l.zones, func(a, b zone) int { return a.ID - b.ID })
	page := uint64(0)
	for i := range l.zones {
		l.zones[i].firstPage = page
		page += l.zones[i].MemoryBytes / l.PageBytes
	}
}

// smtBits returns the number of APIC id bits below the core.
func (l *layout) smtBits() int {
	if l.Hybrid != nil {
		return 1
	}
	return bitsFor(l.Threads)
}

// dieBits returns the number of APIC id bits below the die.
func (l *layout) dieBits() int {
	slots := 0
	for i := range l.cpus {
		slots = max(slots, l.cpus[i].slot+1)
	}
	return l.smtBits() + bitsFor(slots)
}

// apicID returns a number that is unique to the CPU. Its bits are, from high to low,
// those of the socket, the die, the core and the thread.
func (l *layout) apicID(c cpu, dieBits int) int {
	die := c.socket<<bitsFor(l.DiesPerSocket) | c.die
	return die<<dieBits | c.slot<<l.smtBits() | c.thread
}

// domain is a set of online CPUs in the kernel's two text forms.
type domain struct{ list, mask string }

// domains groups the online CPUs by a key. The index into the result is the id of a
// CPU. Entries of other CPUs are empty.
func (l *layout) domains(key func(cpu) int) []domain {
	members := map[int][]int{}
	for id := range l.online.All() {
		k := key(l.cpus[id])
		members[k] = append(members[k], id)
	}
	byCPU := make([]domain, len(l.cpus))
	for _, ids := range members {
		d := l.domain(cpuset.New(ids...))
		for _, id := range ids {
			byCPU[id] = d
		}
	}
	return byCPU
}

func (l *layout) domain(set cpuset.Set) domain {
	return domain{set.String(), l.mask(set)}
}

// mask prints a set as the kernel does: with as many digits as the possible CPUs need,
// and a comma between groups of 32 bits.
func (l *layout) mask(set cpuset.Set) string {
	var mask []byte
	for low := (len(l.cpus) - 1) / 32 * 32; low >= 0; low -= 32 {
		word := uint32(0)
		for bit := range 32 {
			if set.Contains(low + bit) {
				word |= 1 << bit
			}
		}
		digits := (min(len(l.cpus)-low, 32) + 3) / 4
		if len(mask) > 0 {
			mask = append(mask, ',')
		}
		mask = fmt.Appendf(mask, "%0*x", digits, word)
	}
	return string(mask)
}

// possibleZones returns how many zones the kernel can have.
func (l *layout) possibleZones() int {
	return max(l.PossibleZones, l.zones[len(l.zones)-1].ID+1)
}

// zonesThat returns the ids of the zones for which is returns true, as a list.
func (l *layout) zonesThat(is func(zone) bool) string {
	var ids cpuset.Set
	for _, z := range l.zones {
		if is(z) {
			ids = ids.Union(cpuset.New(z.ID))
		}
	}
	return ids.String()
}
