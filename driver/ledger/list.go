package ledger

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/devnode"
)

// List is a set of grants, ascending by UID, each UID once. A list is never
// changed: With and Without return new lists, which the caller then records.
type List []*Listed

// Listed is a grant in a list. Each change of one grant writes all of them, so
// what a write needs is made only once for each grant.
type Listed struct {
	Grant
	text  string // of the grant in the checkpoint
	words int    // of its sets of CPUs, for addTo
}

func (l List) search(uid types.UID) (i int, found bool) {
	return slices.BinarySearchFunc(l, uid, func(g *Listed, uid types.UID) int { return cmp.Compare(g.UID, uid) })
}

// Grants returns the grants in the order of the list.
func (l List) Grants() []Grant {
	grants := make([]Grant, len(l))
	for i := range l {
		grants[i] = l[i].Grant
	}
	return grants
}

// Find returns the grant of a claim.
func (l List) Find(uid types.UID) (grant Grant, found bool) {
	i, found := l.search(uid)
	if !found {
		return Grant{}, false
	}
	return l[i].Grant, true
}

// NewListed prepares a grant for a list.
func NewListed(grant Grant) *Listed {
	return &Listed{grant, string(grant.appendText(make([]byte, 0, 512))), grant.words()}
}

// With returns a list that has this grant instead of the claim's previous one, if any.
func (l List) With(grant Grant) List { return l.WithListed(NewListed(grant)) }

// WithListed is With for a grant that is prepared for a list.
func (l List) WithListed(grant *Listed) List {
	i, found := l.search(grant.UID)
	next := make(List, 0, len(l)+1)
	next = append(append(next, l[:i]...), grant)
	if found {
		i++
	}
	return append(next, l[i:]...)
}

// Without returns a list that has no grant of the claim.
func (l List) Without(uid types.UID) List {
	i, found := l.search(uid)
	if !found {
		return l
	}
	return slices.Concat(l[:i], l[i+1:])
}

// NextOrder returns an order that is higher than that of every grant.
func (l List) NextOrder() uint64 {
	var last uint64
	for i := range l {
		last = max(last, l[i].Order)
	}
	return last + 1
}

// NodeOfOther returns the claim and the function for which one of the devices is on record; ""
// if none is, except for the claim itself.
func (l List) NodeOfOther(claim types.UID, nodes []devnode.Node) string {
	for _, other := range l {
		if other.UID == claim {
			continue
		}
		for _, held := range other.Functions() {
			if held.hasDevice(nodes) {
				return fmt.Sprintf("claim %s has PCI function %s", other.FullName(), held.Address)
			}
		}
	}
	return ""
}

// Bytes returns what grants hold of a zone: memory without hugepages if the size is empty.
// A share of a zone that does not exist any more counts where its first NUMA node is.
func (l List) Bytes(of zones.Zone, all []zones.Zone, size string) (bytes uint64) {
	for _, grant := range l {
		for _, share := range grant.Shares {
			zone := share.Zone()
			if zone == nil || share.Device != of.Device && (zones.Named(all, share.Device) != nil || !slices.Contains(of.Nodes, zone.NUMANodes[0])) {
				continue
			}
			if size == "" {
				bytes += zone.MemoryBytes
			} else {
				bytes += zone.HugepageBytes[size]
			}
		}
	}
	return bytes
}

// Untaken returns the CPUs that no grant has.
func Untaken(cpus cpuset.Set, grants List) cpuset.Set {
	var taken cpuset.Set
	for i := range grants {
		grants[i].addTo(&taken, grants[i].words)
	}
	return cpus.Difference(taken)
}

// Text appends the checkpoint of a boot with these grants. It returns an error if
// something is in two of them.
func (l List) Text(text []byte, bootID string) ([]byte, error) {
	var all held
	for _, grant := range l {
		if err := all.add(&grant.Grant, grant.words); err != nil {
			return nil, err
		}
	}
	next := NewCheckpoint(bootID)
	return appendCheckpoint(text, &next, func(yield func(string) bool) {
		for _, grant := range l {
			if !yield(grant.text) {
				return
			}
		}
	}), nil
}
