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
	domains []domain // by die, then L3 id; cores without an L3 come last
	cores   []core   // by domain, then lowest CPU
	parts   []part   // by core, then word
	dies    int
	sizes   []int  // different numbers of CPUs that its cores have, descending
	one     [1]int // replaces sizes if a core gives one CPU and the others stay idle
}

// domain is the cores that share an L3, or the cores of one die that have no L3. Its
// die is that of its first core: the kernel knows no L3 that several dies share.
type domain struct {
	l3          int // Cache.ID, if hasL3
	hasL3       bool
	cache       int // index of the L3 among all L3s of the machine
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
			if c.L3 == nil {
				return !g.hasL3 && g.die == die
			}
			return g.hasL3 && g.l3 == *c.L3
		})
		if at < 0 {
			at = len(groups)
			groups = append(groups, &group{domain: domain{die: die}})
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
	slices.SortFunc(z.sizes, func(a, b int) int { return b - a })
	slices.SortFunc(groups, func(a, b *group) int {
		return cmp.Or(cmp.Compare(a.die, b.die), cmp.Compare(a.rank(), b.rank()))
	})
	for _, g := range groups {
		z.append(g.domain, g.cores)
	}
	return z
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
	d.last = len(z.cores)
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
