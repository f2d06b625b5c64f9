package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/binding"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Grant is what one claim holds, as the checkpoint has it.
type Grant struct {
	UID       types.UID `json:"uid"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	Order     uint64    `json:"order"`  // > 0; higher than that of every grant that existed when this one was made
	Shares    []Share   `json:"shares"` // in the order of the allocation results

	// Pods are the pods of this boot whose containers may use the claim, by UID in ascending
	// order: those for which it was reserved when the kubelet prepared it. The kubelet does
	// not prepare it again for a later pod. That one is known by the record of its hook.
	Pods []types.UID `json:"pods,omitempty"`
	// QuotaPods are those of Pods that had no CPU limit of their own when the claim was prepared.
	QuotaPods []cdi.QuotaPod `json:"quotaPods,omitempty"`
	// Unprepared says that the kubelet has unprepared the claim while its containers still
	// ran. The grant ends when they have ended.
	Unprepared bool `json:"unprepared,omitempty"`
}

// ByAge puts the older grant first.
func ByAge(a, b Grant) int { return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.UID, b.UID)) }

// Equal compares every field.
func (g Grant) Equal(other Grant) bool {
	return g.UID == other.UID && g.Namespace == other.Namespace && g.Name == other.Name &&
		g.Order == other.Order && slices.EqualFunc(g.Shares, other.Shares, Share.Equal) &&
		slices.Equal(g.Pods, other.Pods) && slices.Equal(g.QuotaPods, other.QuotaPods) && g.Unprepared == other.Unprepared
}

// held collects what grants hold, one grant after the other.
type held struct {
	cpus      cpuset.Set
	functions []*FunctionShare
	caches    []*CacheShare
}

// add adds what a grant holds. It returns an error if some of it is held already.
func (h *held) add(g *Grant, words int) error {
	if twice, ok := g.addTo(&h.cpus, words); !ok {
		return fmt.Errorf("cpus %s are in two shares, one of claim %s", twice, g.FullName())
	}
	for i := range g.Shares {
		if twice := g.Shares[i].Kind.hold(h); twice != "" {
			return fmt.Errorf("%s in two shares, one of claim %s", twice, g.FullName())
		}
	}
	return nil
}

// addTo adds the CPUs of the grant to those that are held. It returns the CPUs that
// were held already as twice; ok is false if there are any. It works in place and reads
// only as many words as the grant needs, because a set is 1 KiB and every write does
// this for every grant.
func (g *Grant) addTo(held *cpuset.Set, words int) (twice cpuset.Set, ok bool) {
	ok = true
	all := held.Words()
	for i := range g.Shares {
		zone := g.Shares[i].Zone()
		if zone == nil {
			continue
		}
		for j, word := range zone.CPUs.Words()[:words] {
			if both := all[j] & word; both != 0 {
				twice.Words()[j] |= both
				ok = false
			}
			all[j] |= word
		}
	}
	return twice, ok
}

// words returns how many words of a set of CPUs contain all CPUs of the grant.
func (g *Grant) words() (words int) {
	for i := range g.Shares {
		zone := g.Shares[i].Zone()
		if zone == nil {
			continue
		}
		for j, word := range zone.CPUs.Words() {
			if word != 0 {
				words = max(words, j+1)
			}
		}
	}
	return words
}

// CPUs are those of all shares.
func (g Grant) CPUs() cpuset.Set {
	var all cpuset.Set
	for _, share := range g.Shares {
		all = all.Union(share.CPUs())
	}
	return all
}

// Conflict says what both this grant and an older one hold; "" for nothing.
func (g Grant) Conflict(older Grant) string {
	if both := older.CPUs().Intersection(g.CPUs()); !both.IsEmpty() {
		return fmt.Sprintf("cpus %s are", both)
	}
	for i := range g.Shares {
		for j := range older.Shares {
			if both := g.Shares[i].Kind.conflict(older.Shares[j].Kind); both != "" {
				return both
			}
		}
	}
	return ""
}

// FullName is namespace/name of the claim.
func (g Grant) FullName() string { return g.Namespace + "/" + g.Name }

// String is the grant as logs and errors show it.
func (g Grant) String() string {
	var addresses []string
	for _, f := range g.Functions() {
		addresses = append(addresses, f.Address)
	}
	if len(addresses) == 0 {
		return fmt.Sprintf("claim %s with cpus %s", g.FullName(), g.CPUs())
	}
	return fmt.Sprintf("claim %s with cpus %s, PCI functions %s", g.FullName(), g.CPUs(), strings.Join(addresses, ", "))
}

// CDIClaim returns the grant for its CDI spec. The spec asks the hook for partitions
// only if the node makes them.
func (g Grant) CDIClaim(partitions bool) cdi.Claim {
	claim := cdi.Claim{UID: string(g.UID), Namespace: g.Namespace, Name: g.Name, Shares: make([]cdi.Share, len(g.Shares)), Pods: g.Pods, QuotaPods: g.QuotaPods}
	for i := range g.Shares {
		claim.Shares[i] = g.Spec(g.Shares[i], partitions)
	}
	return claim
}

// Functions returns the PCI functions of a grant.
func (g *Grant) Functions() (functions []*FunctionShare) {
	for i := range g.Shares {
		if f := g.Shares[i].Function(); f != nil {
			functions = append(functions, f)
		}
	}
	return functions
}

// Function returns the PCI function with this address; nil if the grant has none.
func (g *Grant) Function(address string) *FunctionShare {
	for _, f := range g.Functions() {
		if f.Address == address {
			return f
		}
	}
	return nil
}

// AfterBoot returns the grant without what its CPUs and functions had before, and without device
// nodes: those of another boot say nothing. No container of that boot runs, and each claim is
// prepared again.
func (g Grant) AfterBoot() Grant {
	g.Shares = slices.Clone(g.Shares)
	for i := range g.Shares {
		switch kind := g.Shares[i].Kind.(type) {
		case *ZoneShare:
			if kind.Performance != nil {
				next := *kind
				next.Performance = &Performance{Asked: kind.Performance.Asked}
				g.Shares[i].Kind = &next
			}
		case *FunctionShare:
			next := *kind
			next.Nodes, next.Former, next.Lost = nil, nil, false
			next.Before = binding.State{Driver: kind.Driver}
			g.Shares[i].Kind = &next
		}
	}
	return g
}

// Tunes reports whether a share of the grant changes CPUs and, if unapplied is true, whether
// one still has to.
func (g Grant) Tunes(unapplied bool) bool {
	return slices.ContainsFunc(g.Shares, func(s Share) bool {
		zone := s.Zone()
		return zone != nil && zone.Performance != nil && !(unapplied && zone.Performance.Applied)
	})
}

// BindsNothing reports whether a share of the grant has the policy bind, and none has
// memory. One request may have the CPUs of a level-3 cache, and another the memory.
func (g Grant) BindsNothing() bool {
	asks := func(s Share) bool { return s.Zone() != nil && s.Zone().MemoryPolicy == deviceclasses.MemoryBind }
	binds := func(s Share) bool { return !s.Binds().IsEmpty() }
	return slices.ContainsFunc(g.Shares, asks) && !slices.ContainsFunc(g.Shares, binds)
}

// Memory returns how many bytes of memory on the NUMA nodes the grant has, without hugepages.
func (g Grant) Memory(nodes cpuset.Set) (bytes uint64) {
	for _, share := range g.Shares {
		if zone := share.Zone(); zone != nil && slices.ContainsFunc(zone.NUMANodes, nodes.Contains) {
			bytes += zone.MemoryBytes
		}
	}
	return bytes
}

// Hugepages returns how many bytes of hugepages on the NUMA nodes the grant has.
func (g Grant) Hugepages(nodes cpuset.Set, size string) (bytes uint64) {
	for _, share := range g.Shares {
		if zone := share.Zone(); zone != nil && zone.Mems().Overlaps(nodes) {
			bytes += zone.HugepageBytes[size]
		}
	}
	return bytes
}

// AllHugepages returns how many bytes of hugepages the grant has.
func (g Grant) AllHugepages(size string) (bytes uint64) {
	for _, share := range g.Shares {
		if zone := share.Zone(); zone != nil {
			bytes += zone.HugepageBytes[size]
		}
	}
	return bytes
}

// HasCache reports whether a share of the grant is of a cache.
func (g Grant) HasCache() bool {
	return slices.ContainsFunc(g.Shares, func(s Share) bool { return s.Cache() != nil })
}
