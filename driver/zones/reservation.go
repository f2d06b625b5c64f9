package zones

import "github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"

// Reservation is memory or hugepages of NUMA nodes that no claim gets.
type Reservation struct {
	Nodes cpuset.Set // ids of the NUMA nodes; empty for all
	Size  string     // of a hugepage, as in "2Mi"; empty for memory without hugepages
	Bytes uint64     // of each NUMA node, at most Everything
}

// Everything is more than a NUMA node has of memory, or of hugepages of one size, in bytes.
const Everything uint64 = 1 << 60

// Reservations are what no claim of a node gets.
type Reservations []Reservation

// Bytes returns what is reserved of a NUMA node: hugepages of the size, or memory without
// hugepages if the size is empty. That can be more than the node has.
func (r Reservations) Bytes(node int, size string) (bytes uint64) {
	for i := range r {
		if r[i].Size == size && (r[i].Nodes.IsEmpty() || r[i].Nodes.Contains(node)) {
			bytes += r[i].Bytes
		}
	}
	return min(bytes, Everything)
}
