package nodestate

import (
	"cmp"
	"slices"

	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Layout says where the online CPUs of a node are. No object of the API server says it.
type Layout struct {
	Reserved *cpuset.Set `json:"reserved"`      // that no claim gets; null if it is not known
	Why      string      `json:"why,omitempty"` // why Reserved is not known
	Isolated cpuset.Set  `json:"isolated"`      // by the boot parameter isolcpus=
	Caches   []Cache     `json:"caches"`        // by NUMA node, then L3
}

// Cache is the cores of one NUMA node that share a level-3 cache.
type Cache struct {
	NUMANode int          `json:"numaNode"`
	Socket   *int         `json:"socket"` // null if it is not known
	L3       *int         `json:"l3"`     // null if the kernel describes no L3
	Cores    []cpuset.Set `json:"cores"`  // the online CPUs (hardware threads) of each core
}

// LayoutOf returns the layout of a machine, without Reserved.
func LayoutOf(machine numa.Machine) *Layout {
	layout := &Layout{Isolated: ptr.Deref(machine.Isolated, cpuset.Set{}), Caches: []Cache{}}
	for _, core := range machine.Cores {
		at := slices.IndexFunc(layout.Caches, func(c Cache) bool {
			return c.NUMANode == core.Zone && ptr.Equal(c.Socket, core.Socket) && ptr.Equal(c.L3, core.L3)
		})
		if at < 0 {
			at = len(layout.Caches)
			layout.Caches = append(layout.Caches, Cache{NUMANode: core.Zone, Socket: core.Socket, L3: core.L3})
		}
		layout.Caches[at].Cores = append(layout.Caches[at].Cores, core.CPUs)
	}
	slices.SortStableFunc(layout.Caches, func(a, b Cache) int {
		return cmp.Or(cmp.Compare(a.NUMANode, b.NUMANode), cmp.Compare(ptr.Deref(a.L3, -1), ptr.Deref(b.L3, -1)))
	})
	return layout
}
