package pick

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// steps is how many times CPUs are allocated or freed on each machine.
const steps = 100_000

func TestRandomStepsOnLayouts(t *testing.T) {
	for name, m := range map[string]numa.Machine{
		"one CPU":          parseMachine(t, "0"),
		"no L3":            parseMachine(t, "~ 0-1 2-3 || 4-5 6-7"),
		"hybrid":           parseMachine(t, "0-1p 2-3p 4-5p 6-7p 8e 9e 10e 11e | 12e 13e 14e 15e || ~ 16e 17e"),
		"isolated":         parseMachine(t, "0,8 1,9* 2,10* 3,11 | 4,12* 5,13* 6,14 7,15 / 16,24 17,25* | 18,26 19,27*"),
		"offline threads":  parseMachine(t, "0-1 2-3 4 | 5 6-7 8-9 | 10-11 12-13 || 14 15 16 17 | 18-19 20-21"),
		"uneven L3s":       parseMachine(t, "0-1 | 2-3 4-5 | 6-7 8-9 10-11 || 12-13 14-15 16-17 18-19 | 20-21 22-23 || 24-25 26-27 28-29"),
		"16 dies of 2 L3s": uniform{1, 1, 16, 2, 4, 2}.machine(),
		"8 zones":          uniform{2, 4, 1, 2, 8, 2}.machine(),
		"4 threads":        uniform{2, 1, 1, 6, 2, 4}.machine(),
		"8 threads":        uniform{1, 2, 1, 6, 2, 8}.machine(),
		"1 thread":         uniform{2, 2, 2, 2, 4, 1}.machine(),
		"dies of one L3":   sharingL3s(3, 3),
		"dies of two L3s":  sharingL3s(4, 2),
	} {
		t.Run(name, func(t *testing.T) { randomSteps(t, m) })
	}
}

// sharingL3s is one zone of dies with 8 cores each, of which some have an L3 together.
func sharingL3s(dies, diesPerL3 int) numa.Machine {
	m := uniform{1, 1, dies, 1, 8, 2}.machine()
	for i := range m.Cores {
		m.Cores[i].L3 = new(*m.Cores[i].Die / diesPerL3)
	}
	return m
}

func TestRandomStepsOnMachines(t *testing.T) { sample.Each(t, randomSteps) }

// randomSteps allocates and frees at random and checks each choice.
func randomSteps(t *testing.T, m numa.Machine) {
	if testing.Short() {
		t.Skip("one goroutine: make unit runs it without the race detector")
	}
	t.Parallel()
	r := rand.New(rand.NewPCG(20, uint64(m.Online.Size())))
	w, p := newModel(m), New(m)
	before := m.Online
	free := m.Online
	var held []cpuset.Set
	granted, refused := 0, 0
	for step := range steps {
		full := 10 + step/1000*7%90 // percent of the steps that allocate
		if len(held) > 0 && r.IntN(100) >= full {
			i, last := r.IntN(len(held)), len(held)-1
			free, held[i] = free.Union(held[i]), held[last]
			held = held[:last]
			continue
		}
		request := randomRequest(r, m)
		choice, err := p.Pick(free, request)
		wrong := w.check(&free, &request, &choice, err)
		if wrong == "" && step%16 == 0 {
			wrong = w.checkReason(&free, &request, &choice)
		}
		if wrong != "" {
			t.Fatalf("step %d: Pick(%+v of %s) = %s, idle %s, %q, %v: %s",
				step, request, free, choice.CPUs, choice.Idle, choice.Why, err, wrong)
		}
		if err != nil {
			refused++
			continue
		}
		granted++
		claim := choice.CPUs.Union(choice.Idle)
		free, held = free.Difference(claim), append(held, claim)
	}
	for _, claim := range held {
		free = free.Union(claim)
	}
	if free != before {
		t.Errorf("all claims given back leave %s of %s", free, before)
	}
	if granted < steps/20 || refused < steps/100 {
		t.Errorf("%d granted and %d refused of %d steps: the test does not try what it should", granted, refused, steps)
	}
}

// randomRequest is the default one half of the time.
func randomRequest(r *rand.Rand, m numa.Machine) Request {
	zone := m.Zones[r.IntN(len(m.Zones))]
	size := zone.CPUs.Size()
	request := Request{CPUs: r.IntN(min(size, 12) + 1), Zones: []int{zone.ID}}
	if r.IntN(4) == 0 {
		request.CPUs = r.IntN(size + 2)
	}
	if r.IntN(2) == 0 {
		return request
	}
	request.Cores, request.L3 = CorePolicy(r.IntN(3)), L3Policy(r.IntN(3))
	request.Placement, request.Isolated = Placement(r.IntN(2)), IsolatedPolicy(r.IntN(3))
	if r.IntN(4) == 0 {
		request.CoreType = []numa.CoreType{numa.StandardCores, numa.PerformanceCores, numa.EfficientCores}[r.IntN(3)]
	}
	if r.IntN(8) == 0 {
		request.Zones = nil
		for _, i := range r.Perm(len(m.Zones))[:1+r.IntN(len(m.Zones))] {
			request.Zones = append(request.Zones, m.Zones[i].ID)
		}
		request.CPUs *= 1 + r.IntN(len(request.Zones))
	}
	return request
}

// checkReason says what is not true of the reason that is given for a choice in one zone.
func (w *model) checkReason(free *cpuset.Set, r *Request, choice *Choice) string {
	why := choice.Why
	if why.Zones != 1 || why.Reason == NoReason {
		return ""
	}
	zone := w.zoneOf[first(choice.CPUs)]
	got := w.count(zone, free, r, choice)
	for group := range w.groups[zone] {
		var cpus cpuset.Set // that are free in the group
		cores := 0
		here, l3 := false, false
		for i := range w.cores[zone] {
			if c := &w.cores[zone][i]; c.group == group {
				l3 = c.l3 >= 0
				for _, cpu := range c.cpus {
					here = here || choice.CPUs.Contains(cpu)
					if free.Contains(cpu) {
						cpus.Insert(cpu)
					}
				}
				if _, whole := w.tallied(c, free, r); whole {
					cores++
				}
			}
		}
		room := w.room(zone, &cpus, &Request{Cores: r.Cores, CoreType: r.CoreType, Isolated: r.Isolated})
		alone := w.firstFit(zone, &cpus, r, got.cpus)
		cost := w.count(zone, free, r, &alone).cost(r)
		fits := room >= got.cpus
		cheap := fits && w.uniform[zone] && (cost[0] < got.cost(r)[0] || cost[0] == got.cost(r)[0] && cost[1] <= got.cost(r)[1])
		wrong := false
		switch why.Reason {
		case Tightest:
			wrong = here && room != why.L3Free || !here && cheap && room < why.L3Free && (l3 || r.L3 != RequireOneL3)
		case NoneHasFree:
			wrong = fits
		case NoneHasCores:
			wrong = cores >= got.whole
		case FewerShared, BrokenFirst:
			wrong = cheap
		case NoneUnbroken:
			wrong = fits && w.uniform[zone] && w.count(zone, free, r, &alone).broken == 0
		}
		if wrong {
			return fmt.Sprintf("group %d has %s, %d cores: not so; counted %+v", group, cpus, cores, got)
		}
	}
	return ""
}

func first(set cpuset.Set) int {
	id, _ := set.First()
	return id
}
