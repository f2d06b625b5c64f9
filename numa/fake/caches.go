package fake

import (
	"fmt"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

func setOf(ids []int) cpuset.Set { return cpuset.New(ids...) }

// cache is one index folder of a CPU.
type cache struct {
	index, level int
	kind         string // as the kernel names it
	kib, ways    int
	id           int
	shared       domain
}

// l2Bits returns the number of APIC id bits below the L2. Thread siblings share an L2.
// On a hybrid, four efficient cores share one.
func (l *layout) l2Bits() int {
	if l.Hybrid != nil {
		return l.smtBits() + 2
	}
	return l.smtBits()
}

// l3ID numbers the L3s across all sockets. The ids have gaps if the number of L3s in a
// socket is not a power of two.
func (l *layout) l3ID(c cpu) int { return c.socket<<bitsFor(l.L3sPerSocket) | c.l3 }

// addCaches adds cpu<N>/cache; Documentation/ABI/testing/sysfs-devices-system-cpu.
func (t tree) addCaches(l layout) {
	dieBits := l.dieBits()
	l2Key := func(c cpu) int { return l.apicID(c, dieBits) >> l.l2Bits() }
	cores := l.domains(func(c cpu) int { return l.apicID(c, dieBits) >> l.smtBits() })
	l2s := l.domains(l2Key)
	l3s := l.domains(func(c cpu) int {
		if c.l3 == noL3 {
			return noL3
		}
		return l.l3ID(c)
	})
	for id := range l.online.All() {
		c := l.cpus[id]
		apicID := l.apicID(c, dieBits)
		caches := l.sizes(c)
		for i := range caches {
			switch caches[i].level {
			case 1:
				caches[i].id, caches[i].shared = apicID>>l.smtBits(), cores[id]
			case 2:
				caches[i].id, caches[i].shared = l2Key(c), l2s[id]
			case 3:
				caches[i].id, caches[i].shared = l.l3ID(c), l3s[id]
			}
			t.addCache(l, fmt.Sprintf("%s/cpu%d/cache/index%d/", cpuFolder, id, caches[i].index), caches[i])
		}
	}
}

// sizes returns the caches of a CPU, with the sizes that processors of its kind have.
func (l *layout) sizes(c cpu) []cache {
	list := []cache{{0, 1, "Data", 48, 12, 0, domain{}}, {1, 1, "Instruction", 32, 8, 0, domain{}}, {2, 2, "Unified", 2048, 16, 0, domain{}}}
	l3 := cache{3, 3, "Unified", 61440, 15, 0, domain{}}
	switch {
	case c.kind == performanceCore:
		list[2].kib, list[2].ways = 1280, 10
		l3.kib, l3.ways = 24576, 12
	case c.kind == efficientCore || c.kind == lowPowerCore:
		list[0].kib, list[0].ways, list[1].kib = 32, 8, 64
		l3.kib, l3.ways = 24576, 12
	case l.Make == AMD:
		list[0].kib, list[0].ways, list[2].kib, list[2].ways = 32, 8, 512, 8
		l3.kib, l3.ways = 32768, 16
	case l.Make == Arm:
		list[0].kib, list[0].ways, list[1].kib, list[1].ways, list[2].kib, list[2].ways = 64, 4, 64, 4, 1024, 8
		l3.kib, l3.ways = 116736, 12
	}
	if c.l3 != noL3 {
		list = append(list, l3)
	}
	return list
}

// addCache adds one cache. For an L1 it adds only the level and the type, because no
// reader needs more, unless Full asks for more.
func (t tree) addCache(l layout, folder string, c cache) {
	t.line(folder+"level", "%d", c.level)
	t.line(folder+"type", "%s", c.kind)
	if c.level > 1 || l.Full {
		t.line(folder+"size", "%dK", c.kib)
		t.line(folder+"shared_cpu_list", "%s", c.shared.list)
		if l.Make != Arm { // the id is optional in Arm's firmware tables
			t.line(folder+"id", "%d", c.id)
		}
	}
	if l.Full {
		t.line(folder+"shared_cpu_map", "%s", c.shared.mask)
		t.line(folder+"coherency_line_size", "64")
		t.line(folder+"ways_of_associativity", "%d", c.ways)
		t.line(folder+"number_of_sets", "%d", c.kib<<10/64/c.ways)
	}
}
