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
	zones            []zone // the online ones by id; the only one of a kernel without NUMA support has id 0
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
	slot   int // the core's number in the die, with holes as in an APIC id
	l3     int // in its socket; noL3
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
	hasCPUs   bool       // is one of those with CPUs, online or not
	cpus      cpuset.Set // online
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

// number gives every CPU and zone its id. The lists of the declaration are valid.
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

// threadsOf places one core, counted in its socket.
func (l *layout) threadsOf(socket, core int) []cpu {
	place := cpu{socket: socket, core: core}
	threads := l.Threads
	if l.Hybrid != nil { // a performance core has as many APIC ids as four others
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

// bitsFor returns how many bits number n things.
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

// Bits of an APIC id below the core, the die and the socket.
func (l *layout) smtBits() int {
	if l.Hybrid != nil {
		return 1
	}
	return bitsFor(l.Threads)
}

func (l *layout) dieBits() int {
	slots := 0
	for i := range l.cpus {
		slots = max(slots, l.cpus[i].slot+1)
	}
	return l.smtBits() + bitsFor(slots)
}

// apicID tells CPUs apart; its high bits are those of the core and of everything that cores are in.
func (l *layout) apicID(c cpu, dieBits int) int {
	die := c.socket<<bitsFor(l.DiesPerSocket) | c.die
	return die<<dieBits | c.slot<<l.smtBits() | c.thread
}

// domain is a set of online CPUs in both forms of the kernel.
type domain struct{ list, mask string }

// domains groups the online CPUs by a key; the index of the result is a CPU's id. It is empty for all others.
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

// mask prints a set as the kernel does: as many digits as the possible CPUs need, a comma before each 32 bits.
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

// possibleZones is how many zones the kernel can have.
func (l *layout) possibleZones() int {
	return max(l.PossibleZones, l.zones[len(l.zones)-1].ID+1)
}

// zonesThat lists the ids of the zones of which something is true.
func (l *layout) zonesThat(is func(zone) bool) string {
	var ids cpuset.Set
	for _, z := range l.zones {
		if is(z) {
			ids = ids.Union(cpuset.New(z.ID))
		}
	}
	return ids.String()
}
