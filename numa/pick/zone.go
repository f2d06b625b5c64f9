package pick

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// words are the bits of a set: CPU i is bit i%64 of word i/64.
type words = [cpuset.MaxCPUs / 64]uint64

// zone is a zone in the form of lists, so that a choice only has to walk them.
type zone struct {
	id      int
	domains []domain // by die, then L3 id, then what it has of the L3; cores without an L3 come last
	cores   []core   // by domain, then lowest CPU
	parts   []part   // by core, then word
	dies    int      // those that share an L3 count as one
	split   bool     // several domains have the same L3
	sizes   []int    // different numbers of CPUs that its cores have, descending
	one     [1]int   // replaces sizes if a core gives one CPU and the others stay idle
}

// domain is the cores of one die that share an L3, or that have no L3. The kernel knows no L3
// that several dies share. A zone of several NUMA nodes may have one, because each node becomes a
// die: with sub-NUMA clustering, they share the L3 of their socket. Their domains are near each
// other, so they have the same die here.
type domain struct {
	l3          int // Cache.ID, if hasL3
	hasL3       bool
	cache       int // index of the L3 among all L3s of the machine
	lead        int // index of the first domain with this L3
	die         int // 0 ≤ die < zone.dies, in the order of sockets and dies
	first, last int // first ≤ core < last
}

// core is a physical core.
type core struct {
	first, last int // first ≤ part < last
	size        int // number of CPUs
	class       int // zone.sizes[class] == size
	kind        numa.CoreType
}

// part is the CPUs of a core that are in one word of a set.
type part struct {
	word int
	mask uint64
}

// dieKey identifies a die. A number that the kernel does not report is -1.
type dieKey struct{ socket, die int }

func dieOf(c *numa.Core) dieKey {
	key := dieKey{-1, -1}
	if c.Socket != nil {
		key.socket = *c.Socket
	}
	if c.Die != nil {
		key.die = *c.Die
	}
	return key
}

// group is a domain with its cores, before they are laid out.
type group struct {
	domain
	ofDie int // the die, before those that share an L3 are joined
	cores []*numa.Core
}

// rank returns the L3 id. A domain without an L3 comes last.
func (g *group) rank() int {
	if !g.hasL3 {
		return math.MaxInt
	}
	return g.l3
}

// newZone lays out a zone. caches is the index of each L3 of the machine, by id.
func newZone(m *numa.Machine, id int, caches map[int]int) zone {
	z := zone{id: id, one: [1]int{1}}
	dies, groups := map[dieKey]int{}, []*group{}
	for i := range m.Cores {
		c := &m.Cores[i]
		if c.Zone != id {
			continue
		}
		die, known := dies[dieOf(c)]
		if !known {
			die = len(dies)
			dies[dieOf(c)] = die
		}
		at := slices.IndexFunc(groups, func(g *group) bool {
			return g.ofDie == die && g.hasL3 == (c.L3 != nil) && (c.L3 == nil || g.l3 == *c.L3)
		})
		if at < 0 {
			at = len(groups)
			groups = append(groups, &group{domain: domain{die: die}, ofDie: die})
			if c.L3 != nil {
				groups[at].l3, groups[at].hasL3, groups[at].cache = *c.L3, true, caches[*c.L3]
			}
		}
		groups[at].cores = append(groups[at].cores, c)
		if size := c.CPUs.Size(); !slices.Contains(z.sizes, size) {
			z.sizes = append(z.sizes, size)
		}
	}
	z.dies = len(dies)
	z.joinDies(groups)
	slices.SortFunc(z.sizes, func(a, b int) int { return b - a })
	slices.SortFunc(groups, func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.die, b.die), cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.ofDie, b.ofDie))
	})
	for _, g := range groups {
		z.append(g.domain, g.cores)
	}
	return z
}

// joinDies makes one die of those that share an L3.
func (z *zone) joinDies(groups []*group) {
	for i, g := range groups {
		for _, other := range groups[:i] {
			if !g.hasL3 || !other.hasL3 || g.l3 != other.l3 {
				continue
			}
			z.split = true
			first, last := min(g.die, other.die), max(g.die, other.die)
			if first == last {
				continue // another L3 has joined them
			}
			z.dies--
			for _, of := range groups {
				if of.die == last {
					of.die = first
				} else if of.die > last {
					of.die--
				}
			}
		}
	}
}

// append lays out the next domain.
func (z *zone) append(d domain, cores []*numa.Core) {
	slices.SortFunc(cores, func(a, b *numa.Core) int {
		lowestA, _ := a.CPUs.First()
		lowestB, _ := b.CPUs.First()
		return cmp.Compare(lowestA, lowestB)
	})
	d.first = len(z.cores)
	for _, c := range cores {
		laidOut := core{kind: c.Type, first: len(z.parts), size: c.CPUs.Size()}
		for word, mask := range c.CPUs.Words() {
			if mask != 0 {
				z.parts = append(z.parts, part{word, mask})
			}
		}
		laidOut.last = len(z.parts)
		laidOut.class = slices.Index(z.sizes, laidOut.size)
		z.cores = append(z.cores, laidOut)
	}
	d.last, d.lead = len(z.cores), len(z.domains)
	if before := len(z.domains) - 1; before >= 0 && d.hasL3 && z.domains[before].hasL3 && z.domains[before].l3 == d.l3 {
		d.lead = z.domains[before].lead
	}
	z.domains = append(z.domains, d)
}

// largest returns the number of CPUs of the largest core of the type; "" means any type.
func (z *zone) largest(kind numa.CoreType) int {
	size := 0
	for i := range z.cores {
		if kind == "" || z.cores[i].kind == kind {
			size = max(size, z.cores[i].size)
		}
	}
	return size
}

// count returns how many of the core's CPUs are in the set.
func (z *zone) count(c *core, set *words) int {
	n := 0
	for _, p := range z.parts[c.first:c.last] {
		n += bits.OnesCount64(set[p.word] & p.mask)
	}
	return n
}
