package pick

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// check says what is wrong with a choice or error, "" for nothing: everything that
// [Picker.Pick] promises is counted again.
func (w *model) check(free *cpuset.Set, r *Request, choice *Choice, err error) string {
	shares := map[int]int{r.Zones[0]: r.CPUs}
	if len(r.Zones) > 1 {
		shares = w.shares(free, r)
	}
	most := 0
	for zone, share := range shares {
		if most = max(most, share); share > w.room(zone, free, r) {
			shares = nil
			break
		}
	}
	if shares == nil && r.CPUs > 0 {
		if !errors.Is(err, ErrNotEnough) || *choice != (Choice{}) {
			return fmt.Sprintf("too few, but the error is %v", err)
		}
		return ""
	}
	if err != nil {
		return "there are enough"
	}
	if wrong := w.checkPlace(free, r, choice); wrong != "" {
		return wrong
	}
	var sum counts
	l3s := map[int]bool{}
	zones, freeCores, l3Free := 0, 0, 0
	for _, zone := range r.Zones {
		got := w.count(zone, free, r, choice)
		if short := len(r.Zones) > 1 && shares[zone]+w.unit(r) < most; short != choice.Why.Short.Contains(zone) {
			return fmt.Sprintf("zone %d gives %d, others up to %d; zones %s are said to have no more", zone, shares[zone], most, choice.Why.Short)
		}
		if got.cpus != shares[zone] {
			return fmt.Sprintf("%d of zone %d, want %d", got.cpus, zone, shares[zone])
		}
		if got.cpus == 0 {
			continue
		}
		if wrong := w.checkZone(zone, free, r, got); wrong != "" {
			return fmt.Sprintf("zone %d: %s; counted %+v", zone, wrong, got)
		}
		zones++
		sum.cpus, sum.idle, sum.whole = sum.cpus+got.cpus, sum.idle+got.idle, sum.whole+got.whole
		sum.shared, sum.broken, sum.brokenCPU = sum.shared+got.shared, sum.broken+got.broken, sum.brokenCPU+got.brokenCPU
		sum.outside += got.outside
		for i := range w.cores[zone] {
			c := &w.cores[zone][i]
			n, whole := w.tallied(c, free, r)
			if whole {
				freeCores++
			}
			if c.l3 >= 0 && c.l3 == choice.Why.L3 {
				l3Free += n
			}
			if c.l3 >= 0 && slices.ContainsFunc(c.cpus, choice.CPUs.Contains) {
				l3s[c.l3] = true
			}
		}
	}
	why := choice.Why
	if len(l3s) != 1 || zones != 1 {
		l3Free = why.L3Free // not of one L3
	}
	counted := Explanation{
		CPUs: sum.cpus, Zones: zones, WholeCores: sum.whole, SharedCPUs: sum.shared, BrokenCPUs: sum.brokenCPU,
		BrokenCores: sum.broken, IdleCPUs: sum.idle, OutsideCPUs: sum.outside, L3s: len(l3s),
		L3: why.L3, L3Free: l3Free, FreeCores: freeCores, Reason: why.Reason, Short: why.Short,
	}
	if why != counted || why.L3s == 1 && !l3s[why.L3] {
		return fmt.Sprintf("explained as %+v, counted %+v in L3s %v", why, counted, l3s)
	}
	if line := why.String(); line == "" || strings.Contains(line, "\n") {
		return fmt.Sprintf("explanation %q", line)
	}
	return ""
}

// checkPlace checks each CPU alone.
func (w *model) checkPlace(free *cpuset.Set, r *Request, choice *Choice) string {
	both := choice.CPUs.Union(choice.Idle)
	if !both.IsSubsetOf(*free) || choice.CPUs.Overlaps(choice.Idle) {
		return "not free, or twice"
	}
	for cpu := range both.All() {
		if !slices.Contains(r.Zones, w.zoneOf[cpu]) {
			return fmt.Sprintf("cpu %d is outside of the zones", cpu)
		}
		if r.Isolated == AvoidIsolated && w.isolated.Contains(cpu) {
			return fmt.Sprintf("cpu %d is isolated", cpu)
		}
	}
	for _, zone := range r.Zones {
		for i := range w.cores[zone] {
			c := &w.cores[zone][i]
			mine := 0
			for _, cpu := range c.cpus {
				if both.Contains(cpu) {
					mine++
				}
			}
			if mine > 0 && r.CoreType != "" && r.CoreType != c.kind {
				return fmt.Sprintf("cpu %d is on a core of type %s", c.cpus[0], c.kind)
			}
			if mine > 0 && r.Cores == OneThreadPerCore && (mine != len(c.cpus) || choice.Idle.Contains(c.cpus[0])) {
				return fmt.Sprintf("the core of cpu %d is not all kept", c.cpus[0])
			}
		}
	}
	if !choice.Idle.IsEmpty() && r.Cores != OneThreadPerCore {
		return "idle cpus"
	}
	return ""
}

// checkZone checks what a zone's share is made of.
func (w *model) checkZone(zone int, free *cpuset.Set, r *Request, got counts) string {
	if r.L3 == RequireOneL3 && (got.groups != 1 || got.outside > 0) {
		return "not in one L3"
	}
	if r.Cores == OneThreadPerCore && got.whole != got.cpus {
		return "threads that share a core"
	}
	if r.Isolated == PreferIsolated {
		return w.checkIsolated(zone, free, r, got)
	}
	if got.broken > 1 {
		return fmt.Sprintf("%d cores broken", got.broken)
	}
	if r.L3 == AnyL3 && w.dividing[zone] {
		if wrong := w.checkCores(zone, free, r, got); wrong != "" {
			return wrong
		}
	}
	if r.Placement == Spread {
		return w.checkSpread(zone, free, r, got)
	}
	if r.L3 == RequireOneL3 {
		return ""
	}
	first := w.firstFit(zone, free, r, got.cpus)
	baseline := w.count(zone, free, r, &first)
	if baseline.cpus != got.cpus {
		return fmt.Sprintf("the baseline has %d", baseline.cpus)
	}
	if r.L3 == PreferOneL3 && r.Cores == WholeCores && w.dividing[zone] && got.broken > baseline.broken {
		return "a core broken that need not be"
	}
	sameAim := r.L3 == AnyL3 && got.cost(r) == baseline.cost(r) ||
		r.L3 == PreferOneL3 && (w.uniform[zone] || r.Cores == SingleThreads)
	nearly := 0 // the number of L3s is nearly the lowest if cores have more than two threads
	if slices.ContainsFunc(w.cores[zone], func(c modelCore) bool { return len(c.cpus) > 2 }) {
		nearly = 1
	}
	if sameAim && got.groups > baseline.groups+nearly {
		return fmt.Sprintf("in %d L3s, first fit %s in %d", got.groups, first.CPUs, baseline.groups)
	}
	return ""
}

func (w *model) checkIsolated(zone int, free *cpuset.Set, r *Request, got counts) string {
	if r.L3 == RequireOneL3 || r.Cores == OneThreadPerCore {
		return ""
	}
	isolated := free.Intersection(w.isolated)
	if want := min(got.cpus, w.room(zone, &isolated, r)); got.isolated != want {
		return fmt.Sprintf("%d isolated ones, want %d", got.isolated, want)
	}
	return ""
}

// checkCores checks that the cores are what the policy wants, in a zone where each size
// of cores divides the next.
func (w *model) checkCores(zone int, free *cpuset.Set, r *Request, got counts) string {
	var sizes []int // of the whole cores
	broken := 0
	for i := range w.cores[zone] {
		if n, whole := w.tallied(&w.cores[zone][i], free, r); whole {
			sizes = append(sizes, n)
		} else {
			broken += n
		}
	}
	slices.Sort(sizes)
	slices.Reverse(sizes)
	want, opened := 0, 0 // as many CPUs as possible on whole cores; as few cores as possible
	wanted := got.cpus
	if r.Cores == SingleThreads {
		wanted -= min(wanted, broken)
		if got.shared != got.cpus-wanted {
			return fmt.Sprintf("%d on broken cores, want %d", got.shared, got.cpus-wanted)
		}
	}
	for _, size := range sizes {
		if want+size <= wanted {
			want, opened = want+size, opened+1
		}
	}
	switch rest := wanted - want; {
	case r.Cores == SingleThreads:
		if rest > 0 {
			opened++
		}
		if got.opened != opened {
			return fmt.Sprintf("%d fresh cores, want %d", got.opened, opened)
		}
	case got.wholeCPUs != want:
		return fmt.Sprintf("%d on whole cores, want %d", got.wholeCPUs, want)
	case rest > broken != (got.broken == 1):
		return fmt.Sprintf("%d cores broken with %d left and %d on broken ones", got.broken, rest, broken)
	}
	return ""
}

// checkSpread checks that nothing could be spread more evenly: where less is by more than
// a core, no core is left.
func (w *model) checkSpread(zone int, free *cpuset.Set, r *Request, got counts) string {
	if r.L3 != AnyL3 || r.Cores == SingleThreads || !w.uniform[zone] {
		return ""
	}
	leftOfGroup, leftOfDie := make([]int, len(got.ofGroup)), make([]int, len(got.ofDie))
	dieOf := make([]int, len(got.ofGroup))
	for i := range w.cores[zone] {
		c := &w.cores[zone][i]
		dieOf[c.group] = c.die
		if _, whole := w.tallied(c, free, r); whole {
			leftOfGroup[c.group]++
			leftOfDie[c.die]++
		}
	}
	for a, here := range got.ofDie {
		if w.sharedL3[zone] {
			break // an L3 of several dies comes before them
		}
		if here+1 < slices.Max(got.ofDie) && leftOfDie[a]-here > got.broken {
			return fmt.Sprintf("die %d of %v has room", a, got.ofDie)
		}
	}
	for a, here := range got.ofGroup {
		for b, there := range got.ofGroup {
			if dieOf[a] == dieOf[b] && here+1 < there && leftOfGroup[a]-here > got.broken {
				return fmt.Sprintf("L3 %d of %v has room", a, got.ofGroup)
			}
		}
	}
	return ""
}
