package trace

import (
	"errors"
	"fmt"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/pick"
)

// pool has the free CPUs of a machine. A claim gets the first NUMA node that has enough,
// as the scheduler's allocator takes the first device with enough capacity.
type pool struct {
	m    numa.Machine
	free cpuset.Set
}

func (p *pool) Release(_ int, cpus cpuset.Set) error {
	p.free = p.free.Union(cpus)
	return nil
}

// firstZone returns the index of the first NUMA node with so many free CPUs, or -1.
func (p *pool) firstZone(cpus int) int {
	for i := range p.m.Zones {
		if p.m.Zones[i].CPUs.Intersection(p.free).Size() >= cpus {
			return i
		}
	}
	return -1
}

// Driver places claims as this driver does.
type Driver struct {
	pool
	picker *pick.Picker
}

// NewDriver returns a driver on an empty machine.
func NewDriver(m numa.Machine, reserved cpuset.Set) *Driver {
	return &Driver{pool{m, m.Online.Difference(reserved)}, pick.New(m)}
}

// Place gives the claim CPUs of one NUMA node.
func (d *Driver) Place(_, cpus int) (cpuset.Set, error) {
	i := d.firstZone(cpus)
	if i < 0 {
		return cpuset.Set{}, ErrNoRoom
	}
	choice, err := d.picker.Pick(d.free, pick.Request{CPUs: cpus, Zones: []int{d.m.Zones[i].ID}})
	if err != nil {
		return cpuset.Set{}, err // there is room
	}
	d.free = d.free.Difference(choice.CPUs)
	return choice.CPUs, nil
}

// FirstFit gives a claim the free CPUs with the lowest numbers.
type FirstFit struct{ pool }

// NewFirstFit returns an empty machine.
func NewFirstFit(m numa.Machine, reserved cpuset.Set) *FirstFit {
	return &FirstFit{pool{m, m.Online.Difference(reserved)}}
}

// Place gives the claim CPUs of one NUMA node.
func (f *FirstFit) Place(_, cpus int) (picked cpuset.Set, err error) {
	i := f.firstZone(cpus)
	if i < 0 {
		return picked, ErrNoRoom
	}
	for cpu := range f.m.Zones[i].CPUs.Intersection(f.free).All() {
		if picked.Size() < cpus {
			picked.Insert(cpu)
		}
	}
	f.free = f.free.Difference(picked)
	return picked, nil
}

// Spanning places a claim as this driver does if the claim lists alternatives: one NUMA
// node, else as few as possible, each with an equal part.
type Spanning struct{ Driver }

// NewSpanning returns a driver on an empty machine.
func NewSpanning(m numa.Machine, reserved cpuset.Set) *Spanning {
	return &Spanning{*NewDriver(m, reserved)}
}

// Place gives the claim CPUs of the first NUMA nodes that have enough.
func (s *Spanning) Place(claim, cpus int) (picked cpuset.Set, err error) {
	for parts := 1; parts <= min(len(s.m.Zones), cpus); parts++ {
		if cpus%parts != 0 {
			continue // one request has the same number on each
		}
		var ids []int
		for i := range s.m.Zones {
			if len(ids) < parts && s.m.Zones[i].CPUs.Intersection(s.free).Size() >= cpus/parts {
				ids = append(ids, s.m.Zones[i].ID)
			}
		}
		if len(ids) < parts {
			continue
		}
		for _, id := range ids {
			choice, err := s.picker.Pick(s.free, pick.Request{CPUs: cpus / parts, Zones: []int{id}})
			if err != nil {
				return picked, errors.Join(fmt.Errorf("claim %d", claim), err)
			}
			picked, s.free = picked.Union(choice.CPUs), s.free.Difference(choice.CPUs)
		}
		return picked, nil
	}
	return picked, ErrNoRoom
}
