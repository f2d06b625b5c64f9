package deviceclasses

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// MemoryReservation is memory of some NUMA nodes that no claim gets.
type MemoryReservation struct {
	// NUMANodes is the list of NUMA nodes that keep the amount, each of them.
	//
	//	numaNodes: 0-1
	NUMANodes string `json:"numaNodes"`
	// Amount is the reserved memory of each NUMA node, without hugepages.
	//
	//	amount: 4Gi
	Amount string `json:"amount"`
}

// Nodes returns the NUMA nodes, at least one.
func (r MemoryReservation) Nodes() (cpuset.Set, error) { return someNodes("numaNodes", r.NUMANodes) }

// Bytes returns the reserved memory of each NUMA node.
func (r MemoryReservation) Bytes() (uint64, error) {
	amount, err := resource.ParseQuantity(r.Amount)
	if err != nil || amount.Value() <= 0 {
		return 0, fmt.Errorf("amount: %q, want a quantity such as 4Gi", r.Amount)
	}
	return uint64(amount.Value()), nil
}

// Exclusion is what of a node no claim gets.
type Exclusion struct {
	// Zones are names of zones that are not published, as kubectl numa slices prints them.
	//
	//	zones: [numa-3]
	Zones []string `json:"zones,omitempty"`
	// MemoryOf is the list of NUMA nodes whose memory and hugepages no claim gets. Their CPUs
	// stay.
	//
	//	memoryOf: 2-3
	MemoryOf string `json:"memoryOf,omitempty"`
	// Hugepages are sizes of pages that no claim gets.
	//
	//	hugepages: [2Mi]
	Hugepages []string `json:"hugepages,omitempty"`
}

// Nodes returns the NUMA nodes of MemoryOf; none if it is not set.
func (e *Exclusion) Nodes() (cpuset.Set, error) {
	if e == nil || e.MemoryOf == "" {
		return cpuset.Set{}, nil
	}
	return someNodes("memoryOf", e.MemoryOf)
}

// ZoneNames returns Zones; none if e is nil.
func (e *Exclusion) ZoneNames() []string {
	if e == nil {
		return nil
	}
	return e.Zones
}

func (e *Exclusion) validate() error {
	if e == nil {
		return nil
	}
	if _, err := e.Nodes(); err != nil {
		return fmt.Errorf("exclude.%w", err)
	}
	for i, size := range e.Hugepages {
		if page, err := resource.ParseQuantity(size); err != nil || page.Value() <= 0 {
			return fmt.Errorf("exclude.hugepages[%d]: %q, want the size of a hugepage, such as 2Mi", i, size)
		}
	}
	return nil
}

func validateMemory(reservations []MemoryReservation) error {
	for i, reservation := range reservations {
		_, err := reservation.Nodes()
		if err == nil {
			_, err = reservation.Bytes()
		}
		if err != nil {
			return fmt.Errorf("reservedNodeMemory[%d].%w", i, err)
		}
	}
	return nil
}

// someNodes reads a list of NUMA nodes that must have one.
func someNodes(field, list string) (cpuset.Set, error) {
	nodes, err := cpuset.Parse(list)
	if err != nil {
		return cpuset.Set{}, fmt.Errorf("%s: %w; want a list such as 0-1", field, err)
	}
	if nodes.IsEmpty() {
		return cpuset.Set{}, fmt.Errorf("%s: %q has no NUMA node, want a list such as 0-1", field, list)
	}
	return nodes, nil
}
