package driver

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// PodHugepages is the hugepages that the containers of one pod have.
type PodHugepages struct {
	Claims []types.UID             // all claims of the pod that are known
	Sizes  map[string]HugepagesUse // by size as in "2Mi"; without the sizes that cannot be read
}

// HugepagesUse is how much a pod has of one size, in bytes.
type HugepagesUse struct {
	Bytes  uint64
	OnNode map[int]uint64 // the parts of Bytes by NUMA node; nil if that cannot be seen
}

// claimSet is claims that are connected by pods with several of them, and these pods. A page
// in use is of no particular claim of its pod, so what the pods have is subtracted once from
// what the claims hold together.
type claimSet struct {
	grants []ledger.Grant
	pods   []PodHugepages
}

// claimSets returns the sets of the grants that hold hugepages of the size, in the order of
// their first grants. A claim without a pod is a set of its own.
func claimSets(grants []ledger.Grant, pods []PodHugepages, size string) (sets []claimSet) {
	first := make(map[types.UID]int) // by claim: the index of the first grant of its set
	for i, grant := range grants {
		if grant.AllHugepages(size) > 0 {
			first[grant.UID] = i
		}
	}
	isOther := func(uid types.UID) bool { _, holds := first[uid]; return !holds }
	holders := make([][]types.UID, len(pods))
	for p, pod := range pods {
		holders[p] = slices.DeleteFunc(slices.Clone(pod.Claims), isOther)
		for _, uid := range holders[p] {
			one, other := first[holders[p][0]], first[uid]
			for claim, i := range first {
				if i == one || i == other {
					first[claim] = min(one, other)
				}
			}
		}
	}
	for _, i := range slices.Compact(slices.Sorted(maps.Values(first))) {
		var set claimSet
		for _, grant := range grants {
			if of, holds := first[grant.UID]; holds && of == i {
				set.grants = append(set.grants, grant)
			}
		}
		for p, pod := range pods {
			if len(holders[p]) > 0 && first[holders[p][0]] == i {
				set.pods = append(set.pods, pod)
			}
		}
		sets = append(sets, set)
	}
	return sets
}

// heldOn returns how many bytes of the NUMA nodes the claims hold together, and the names of
// those that hold some.
func (s claimSet) heldOn(nodes cpuset.Set, size string) (bytes uint64, names []string) {
	for _, grant := range s.grants {
		if held := grant.Hugepages(nodes, size); held > 0 {
			bytes += held
			names = append(names, grant.FullName())
		}
	}
	return bytes, names
}

// usedOn returns how many bytes the pods have on the NUMA nodes, of which the claims hold
// held. Where the NUMA nodes of pages cannot be seen, a page is on another node as long as the
// claims hold some there. A pod whose pages cannot be seen at all has what its claims hold:
// otherwise they would be promised for ever.
func (s claimSet) usedOn(nodes cpuset.Set, size string, held uint64) (used uint64) {
	var anywhere uint64
	for _, pod := range s.pods {
		use, seen := pod.Sizes[size]
		if !seen {
			return held
		}
		if use.OnNode == nil {
			anywhere += use.Bytes
		}
		for node, bytes := range use.OnNode {
			if nodes.Contains(node) {
				used += bytes
			}
		}
	}
	var elsewhere uint64
	for _, grant := range s.grants {
		elsewhere += grant.AllHugepages(size) - grant.Hugepages(nodes, size)
	}
	return used + anywhere - min(anywhere, elsewhere)
}
