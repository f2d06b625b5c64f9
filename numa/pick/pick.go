// Package pick chooses which CPUs a claim gets. The choice is a pure function: the same
// machine, free CPUs and request always give the same CPUs. The package does not record
// what it gave, and never takes a CPU outside the requested zones.
package pick

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// ErrNotEnough means that a zone does not have enough free CPUs that meet the request's
// requirements.
var ErrNotEnough = errors.New("not enough free cpus")

// Request is what a claim asks for. The zero value of each policy is its default.
type Request struct {
	CPUs     int           // ≥ 0
	Zones    []int         // Zone.ID, at least one and no duplicates; see [Picker.Pick] for several
	Cores    CorePolicy    // default WholeCores
	L3       L3Policy      // default AnyL3
	CoreType numa.CoreType // "" means cores of every type
	// Placement is Pack by default. If the request prefers or requires one L3, Spread
	// applies only within the L3s that are chosen for that.
	Placement Placement
	Isolated  IsolatedPolicy // default AnyIsolated
}

// Choice is what a claim gets.
type Choice struct {
	CPUs cpuset.Set
	// Idle are the siblings that stay idle with OneThreadPerCore. They are not in CPUs,
	// and no other claim may have them.
	Idle cpuset.Set
	Why  Explanation
}

// Picker chooses CPUs of one machine. It never changes, so several goroutines may use it.
type Picker struct {
	zones       []zone
	isolated    cpuset.Set
	l3s         int // number of L3s of the machine
	ints, bools int // memory for a choice, in the zone that needs the most
}

// New prepares the machine for choices.
func New(m numa.Machine) *Picker {
	p := &Picker{}
	if m.Isolated != nil {
		p.isolated = *m.Isolated
	}
	caches := map[int]int{}
	for i := range m.Cores {
		if l3 := m.Cores[i].L3; l3 != nil {
			if _, numbered := caches[*l3]; !numbered {
				caches[*l3] = len(caches)
			}
		}
	}
	p.l3s = len(caches)
	for _, zone := range m.Zones {
		z := newZone(&m, zone.ID, caches)
		ints, bools := z.buffer()
		p.ints, p.bools = max(p.ints, ints), max(p.bools, bools)
		p.zones = append(p.zones, z)
	}
	return p
}

// Pick chooses exactly r.CPUs of the free CPUs, or returns an error. It ignores free
// CPUs that are not in the zones, or not part of the machine. Among the choices that
// the request allows, it takes the best one, by these criteria in this order:
//   - the cores that [CorePolicy] prefers ([PreferOneL3] puts the next criterion first);
//   - the fewest L3s, or nearly the fewest if cores have more than two threads; the cores
//     of a die that have no L3 count as one L3;
//   - the fewest dies, or nearly the fewest if a zone has more than three; of L3s
//     that several dies share, first those of which one die has enough;
//   - the tightest L3s: no chosen L3 can be replaced by one with fewer free CPUs, or by
//     one with as many free CPUs in a die with fewer;
//   - the lowest L3s, cores and CPUs.
//
// If the request has several zones, each gives the same number of cores, or one more.
// The zones with the most free CPUs give one more. A zone that has fewer gives all cores that
// it has, and the other zones give the rest as evenly. CPUs that do not make up a core
// come from one zone, if one has them. If the policy is not [WholeCores], this counts CPUs
// instead of cores. Each zone's part is then chosen as if the zone were alone.
//
// An error wraps [ErrNotEnough] if and only if the zones have too few suitable CPUs. Of each
// zone, RequireOneL3 counts the L3 with the most. Suitable CPUs are free and meet L3 = RequireOneL3, Cores = OneThreadPerCore,
// CoreType and Isolated = AvoidIsolated. All other policies are only preferences.
func (p *Picker) Pick(free cpuset.Set, r Request) (choice Choice, err error) {
	if len(r.Zones) == 0 {
		return Choice{}, fmt.Errorf("select %d cpus: no zone is named", r.CPUs)
	}
	if err := p.check(&r); err != nil {
		return Choice{}, fmt.Errorf("select %d cpus of %s: %w", r.CPUs, zoneList(r.Zones), err)
	}
	if r.Isolated == AvoidIsolated {
		free = free.Difference(p.isolated)
	}
	j := job{picker: p, request: r, buffers: scratch{make([]int32, p.ints), make([]bool, p.bools)}}
	if usable := free.Words(); len(r.Zones) > 1 {
		err = j.distribute(usable, &choice)
	} else {
		err = j.inZone(p.zone(r.Zones[0]), r.CPUs, usable, &choice)
	}
	if err != nil {
		return Choice{}, err
	}
	return choice, nil
}

// check returns an error for a request that is invalid, or that this machine can never
// fulfil.
func (p *Picker) check(r *Request) error {
	if r.CPUs < 0 {
		return errors.New("the number is negative")
	}
	for i, id := range r.Zones {
		if p.zone(id) == nil {
			return fmt.Errorf("no zone %d, the machine has %s", id, p.zoneIDs())
		}
		if slices.Contains(r.Zones[:i], id) {
			return fmt.Errorf("zone %d is named twice", id)
		}
	}
	types := []numa.CoreType{numa.StandardCores, numa.PerformanceCores, numa.EfficientCores}
	if r.CoreType != "" && !slices.Contains(types, r.CoreType) {
		return fmt.Errorf("core type %.40q: allowed are %s, %s, %s", r.CoreType, types[0], types[1], types[2])
	}
	return cmp.Or(known(r.Cores), known(r.L3), known(r.Placement), known(r.Isolated))
}

// zone returns the zone with the id, or nil if there is none.
func (p *Picker) zone(id int) *zone {
	for i := range p.zones {
		if p.zones[i].id == id {
			return &p.zones[i]
		}
	}
	return nil
}

func (p *Picker) zoneIDs() string {
	ids := make([]int, len(p.zones))
	for i := range p.zones {
		ids[i] = p.zones[i].id
	}
	return zoneList(ids)
}

// zoneList returns "zone 0" or "zones 0, 2".
func zoneList(ids []int) string {
	list := strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ", "), "[]")
	if len(ids) == 1 {
		return "zone " + list
	}
	return "zones " + list
}
