package deviceclasses

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// HugepageReservation is hugepages of one size that no claim gets.
type HugepageReservation struct {
	// NUMANodes is the list of NUMA nodes that keep the amount, each of them. The default
	// is all that have hugepages of the size.
	//
	//	numaNodes: 0-1
	NUMANodes string `json:"numaNodes,omitempty"`
	// Size is the size of one page.
	//
	//	size: 1Gi
	Size string `json:"size"`
	// Amount is the reserved memory of each NUMA node, a multiple of the size.
	//
	//	amount: 2Gi
	Amount string `json:"amount"`
}

// Nodes returns the NUMA nodes, or none for all that have hugepages of the size.
func (r HugepageReservation) Nodes() (cpuset.Set, error) {
	nodes, err := cpuset.Parse(r.NUMANodes)
	if err != nil {
		return cpuset.Set{}, fmt.Errorf("numaNodes: %w; want a list such as 0-1", err)
	}
	if nodes.IsEmpty() && r.NUMANodes != "" {
		return cpuset.Set{}, fmt.Errorf("numaNodes: %q has no NUMA node, want a list such as 0-1", r.NUMANodes)
	}
	return nodes, nil
}

// PageBytes returns the size of one page.
func (r HugepageReservation) PageBytes() (uint64, error) {
	size, err := resource.ParseQuantity(r.Size)
	if err != nil || size.Value() <= 0 {
		return 0, fmt.Errorf("size: %q, want the size of a hugepage, such as 2Mi", r.Size)
	}
	return uint64(size.Value()), nil
}

// Bytes returns the reserved memory of each NUMA node.
func (r HugepageReservation) Bytes() (uint64, error) {
	size, err := r.PageBytes()
	if err != nil {
		return 0, err
	}
	amount, err := resource.ParseQuantity(r.Amount)
	if err != nil || amount.Value() <= 0 || uint64(amount.Value())%size != 0 {
		return 0, fmt.Errorf("amount: %q, want a multiple of the size %s", r.Amount, r.Size)
	}
	return uint64(amount.Value()), nil
}

// validateHugepages checks everything but whether the machine has such pages.
func validateHugepages(reservations []HugepageReservation) error {
	type known struct {
		pageBytes uint64
		nodes     cpuset.Set
	}
	var before []known
	for i, reservation := range reservations {
		nodes, err := reservation.Nodes()
		if err == nil {
			_, err = reservation.Bytes()
		}
		if err != nil {
			return fmt.Errorf("reservedHugepages[%d].%w", i, err)
		}
		size, _ := reservation.PageBytes() // Bytes has checked it
		for j, other := range before {
			if other.pageBytes == size && (nodes.IsEmpty() || other.nodes.IsEmpty() || nodes.Overlaps(other.nodes)) {
				return fmt.Errorf("reservedHugepages[%d]: reservedHugepages[%d] is for the same size and NUMA node", i, j)
			}
		}
		before = append(before, known{size, nodes})
	}
	return nil
}
