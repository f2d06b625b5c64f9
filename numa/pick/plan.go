package pick

import "math/bits"

// plan says how many cores of each kind to take from each of the chosen domains. At
// most one core is taken in part.
type plan struct {
	search
	spread  bool
	take    []int32 // number of cores to take, at [domain*kinds+kind]
	load    []int32 // number of CPUs to take, by domain
	dieLoad []int32 // the same, by die
	part    struct{ domain, kind, cpus int }
}

// init allocates the memory of the plan. Its search must have been initialised.
func (p *plan) init(spread bool, buffers *scratch) {
	p.spread, p.take = spread, buffers.take(len(p.have))
	p.load, p.dieLoad = buffers.take(len(p.domains)), buffers.take(p.zone.dies)
	clear(p.load)
	clear(p.dieLoad)
}

// make fills the plan for n CPUs. The chosen domains must have that many.
func (p *plan) make(n int) {
	clear(p.take)
	p.part.cpus = 0
	if p.threads {
		broken := min(n, p.sum.shared)
		p.fromBroken(broken)
		p.breakOne(p.fromWhole(n - broken))
		return
	}
	rest := p.fromWhole(n)
	if rest <= p.sum.shared {
		p.fromBroken(rest)
		return
	}
	p.breakOne(rest)
}

// fromWhole plans as many of n CPUs as whole cores can give, and returns how many are
// left; see [sum.fill].
func (p *plan) fromWhole(n int) (rest int) {
	rest = n
	for class, size := range p.sizes {
		for range min(int(p.sum.whole[class]), rest/size) {
			p.takeCore(p.next(class), class, size)
			rest -= size
		}
	}
	return rest
}

// fromBroken plans n CPUs of broken cores. As far as possible, it takes all free CPUs
// of a core.
func (p *plan) fromBroken(n int) {
	for free := p.kinds - len(p.sizes); free > 0; free-- {
		kind := len(p.sizes) + free - 1
		for n >= free {
			domain := p.next(kind)
			if domain < 0 {
				break
			}
			p.takeCore(domain, kind, free)
			n -= free
		}
	}
	for free := n + 1; n > 0 && p.part.cpus == 0; free++ {
		p.takePart(len(p.sizes)+free-1, n)
	}
}

// breakOne plans n CPUs of the smallest whole core that is left.
func (p *plan) breakOne(n int) {
	for class := len(p.sizes) - 1; n > 0 && p.part.cpus == 0; class-- {
		p.takePart(class, n)
	}
}

func (p *plan) takePart(kind, cpus int) {
	if domain := p.next(kind); domain >= 0 {
		p.part.domain, p.part.kind, p.part.cpus = domain, kind, cpus
		p.loadOn(domain, cpus)
	}
}

func (p *plan) takeCore(domain, kind, cpus int) {
	p.take[domain*p.kinds+kind]++
	p.loadOn(domain, cpus)
}

func (p *plan) loadOn(domain, cpus int) {
	p.load[domain] += int32(cpus)
	p.dieLoad[p.domains[domain].die] += int32(cpus)
}

// next returns the chosen domain that gives the next core of the kind, or -1 if none is
// left. A spread claim takes it from the domain where it has the fewest CPUs. A packed
// claim fills the tightest domain first, so that the CPUs that stay free are in one
// domain.
func (p *plan) next(kind int) int {
	best := -1
	for _, d := range p.order {
		if at := int(d)*p.kinds + kind; !p.chosen[d] || p.take[at] == p.have[at] {
			continue
		}
		if !p.spread {
			return int(d)
		}
		if best < 0 || p.lighter(int(d), best) {
			best = int(d)
		}
	}
	return best
}

// lighter reports whether a spread claim takes CPUs from domain a before domain b.
func (p *plan) lighter(a, b int) bool {
	dieA, dieB := p.domains[a].die, p.domains[b].die
	if dieA != dieB {
		return p.dieLoad[dieA] < p.dieLoad[dieB] || p.dieLoad[dieA] == p.dieLoad[dieB] && dieA < dieB
	}
	return p.load[a] < p.load[b] || p.load[a] == p.load[b] && a < b
}

// carryOut moves the planned CPUs from usable to choice. Among the cores of one kind in
// a domain, it takes those with the lowest CPUs.
func (p *plan) carryOut(usable *words, choice *Choice) {
	for i, d := range p.domains {
		if !p.chosen[i] {
			continue
		}
		for at := d.first; at < d.last; at++ {
			c := &p.cores[at]
			kind, cpus := p.kindOf(c, usable)
			if cpus == 0 {
				continue
			}
			switch left := &p.take[i*p.kinds+kind]; {
			case *left > 0:
				*left--
				p.move(c, cpus, usable, choice)
			case p.part.cpus > 0 && p.part.domain == i && p.part.kind == kind:
				p.move(c, p.part.cpus, usable, choice)
				p.part.cpus = 0
			}
		}
	}
}

// move takes the lowest n usable CPUs of a core.
func (p *plan) move(c *core, n int, usable *words, choice *Choice) {
	cpus, idle := choice.CPUs.Words(), choice.Idle.Words()
	for _, part := range p.parts[c.first:c.last] {
		left := usable[part.word] & part.mask
		taken := left
		for ; bits.OnesCount64(left) > 0 && n > 0; n-- {
			left &= left - 1
		}
		taken &^= left
		cpus[part.word] |= taken
		usable[part.word] &^= taken
		if p.idle {
			idle[part.word] |= left
		}
	}
}
