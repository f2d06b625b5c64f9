// Package pick chooses which CPUs a claim gets. The choice is a function of values: the same machine, free CPUs and
// request always give the same set. It keeps no record of what was given, and never takes a CPU outside of the zones
// that it is asked for.
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

// ErrNotEnough says that a zone has fewer free CPUs than wanted that are what the request insists on.
var ErrNotEnough = errors.New("not enough free cpus")

// Request is what a claim wants. The zero value of each policy is its default.
type Request struct {
	CPUs     int           // ≥ 0
	Zones    []int         // Zone.ID, at least one, each once; see [Picker.Pick] for several
	Cores    CorePolicy    // WholeCores
	L3       L3Policy      // AnyL3
	CoreType numa.CoreType // "": cores of every type
	// Placement is Pack. A request that prefers or requires one L3 is spread inside what is chosen for that only.
	Placement Placement
	Isolated  IsolatedPolicy // AnyIsolated
}

// Choice is what a claim gets.
type Choice struct {
	CPUs cpuset.Set
	Idle cpuset.Set // siblings that are kept idle with OneThreadPerCore, none of them in CPUs; nobody else may have them
	Why  Explanation
}

// Picker chooses CPUs of one machine. It never changes, so it may be used concurrently.
type Picker struct {
	zones       []zone
	isolated    cpuset.Set
	l3s         int // of the machine
	ints, bools int // the memory that a choice takes in the zone that takes most
}

// New lays out the machine for choices.
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

// Pick chooses exactly r.CPUs of the free CPUs, or returns an error. Free CPUs that are not in the zones, or not of the
// machine, are ignored. Of what the request allows it takes the best, in this order:
//   - the cores that [CorePolicy] wants;
//   - the fewest L3s, or nearly where cores have more than two threads; the cores of a die that have no L3 count as one;
//   - the fewest dies, or nearly where a zone has more than three;
//   - the tightest L3s: none could be exchanged for one that has fewer free CPUs, or as many in a die that has fewer;
//   - the lowest L3s, cores and CPUs.
//
// Several zones get an equal number of cores, or one more: those do that have most free. Threads that are no core all
// go to one zone. Each zone's share is then chosen as if it were alone.
//
// An error wraps [ErrNotEnough] exactly if a zone has too few free CPUs for its share that are what L3 = RequireOneL3,
// Cores = OneThreadPerCore, CoreType and Isolated = AvoidIsolated insist on. All other policies only prefer.
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

// check returns an error for a request that no machine, or not this one, can ever fulfil.
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

// zone returns the zone with the id, nil if there is none.
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

// zoneList is "zone 0" or "zones 0, 2".
func zoneList(ids []int) string {
	list := strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ", "), "[]")
	if len(ids) == 1 {
		return "zone " + list
	}
	return "zones " + list
}
