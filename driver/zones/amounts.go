package zones

import (
	"cmp"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// Amount is what a zone has of memory without hugepages, or of hugepages of one size.
//
// Invariant: ReservedBytes ≤ TotalBytes.
type Amount struct {
	PageBytes     uint64 // size of a hugepage; 0 for memory without hugepages
	TotalBytes    uint64
	ReservedBytes uint64 // that no claim gets: reserved, or kept free by the kernel
}

// Size returns the size of a hugepage as in "2Mi"; "" for memory without hugepages.
func (a Amount) Size() string {
	if a.PageBytes == 0 {
		return ""
	}
	return sizeName(a.PageBytes)
}

// Amounts returns the memory of a zone and then its hugepages, by ascending size. A zone
// that is only CPUs has none.
func (z Zone) Amounts(machine *numa.Machine, reserved Reservations) []Amount {
	if z.withoutMemory() {
		return nil
	}
	amounts := make([]Amount, 1)
	for _, id := range z.Nodes {
		node, _ := machine.Zone(id)
		total := claimable(node, 0, 0)
		amounts[0].TotalBytes += total
		amounts[0].ReservedBytes += total - claimable(node, reserved.Bytes(id, ""), highBytes(node))
		for _, pool := range node.Hugepages {
			i := slices.IndexFunc(amounts, func(a Amount) bool { return a.PageBytes == pool.PageBytes })
			if i < 0 {
				i = len(amounts)
				amounts = append(amounts, Amount{PageBytes: pool.PageBytes})
			}
			bytes := pool.TotalPages * pool.PageBytes
			amounts[i].TotalBytes += bytes
			amounts[i].ReservedBytes += min(reserved.Bytes(id, sizeName(pool.PageBytes)), bytes)
		}
	}
	slices.SortFunc(amounts, func(a, b Amount) int { return cmp.Compare(a.PageBytes, b.PageBytes) })
	return amounts
}

func highBytes(node numa.Zone) uint64 {
	if node.Watermarks == nil {
		return 0
	}
	return node.Watermarks.HighBytes
}

// claimable returns the memory of a NUMA node without hugepages, in bytes, less what is
// reserved of it and what the kernel keeps free.
func claimable(node numa.Zone, reservedBytes, freeBytes uint64) uint64 {
	if node.MemoryBytes == nil {
		return 0
	}
	withheld := reservedBytes + freeBytes
	for _, pool := range node.Hugepages {
		withheld += pool.TotalPages * pool.PageBytes
	}
	return *node.MemoryBytes - min(withheld, *node.MemoryBytes)
}
