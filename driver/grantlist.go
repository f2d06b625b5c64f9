package driver

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// grantList is a set of grants, ascending by UID, each UID once. A list is never
// changed: with and without make new ones, which are those to put on record.
type grantList []*listedGrant

// listedGrant is a grant of a list. All of them are written when one changes, so
// what that takes is made once.
type listedGrant struct {
	Grant
	text    string // in the checkpoint
	words   int    // of its sets of CPUs, for addTo
	version int    // of the checkpoint, at least
}

func (l grantList) search(uid types.UID) (i int, found bool) {
	return slices.BinarySearchFunc(l, uid, func(g *listedGrant, uid types.UID) int { return cmp.Compare(g.UID, uid) })
}

// grants are those of the list, in its order.
func (l grantList) grants() []Grant {
	grants := make([]Grant, len(l))
	for i := range l {
		grants[i] = l[i].Grant
	}
	return grants
}

// find is the grant of a claim.
func (l grantList) find(uid types.UID) (grant Grant, found bool) {
	i, found := l.search(uid)
	if !found {
		return Grant{}, false
	}
	return l[i].Grant, true
}

// listed is the grant as lists have it.
func listed(grant Grant) *listedGrant {
	return &listedGrant{grant, string(grant.appendText(make([]byte, 0, 512))), grant.words(), max(checkpointV3, grant.checkpointVersion())}
}

// with has the grant instead of the one that its claim had, if any.
func (l grantList) with(grant Grant) grantList { return l.withListed(listed(grant)) }

func (l grantList) withListed(grant *listedGrant) grantList {
	i, found := l.search(grant.UID)
	next := make(grantList, 0, len(l)+1)
	next = append(append(next, l[:i]...), grant)
	if found {
		i++
	}
	return append(next, l[i:]...)
}

// without has no grant of the claim.
func (l grantList) without(uid types.UID) grantList {
	i, found := l.search(uid)
	if !found {
		return l
	}
	return slices.Concat(l[:i], l[i+1:])
}

// nextOrder is above that of every grant.
func (l grantList) nextOrder() uint64 {
	var last uint64
	for i := range l {
		last = max(last, l[i].Order)
	}
	return last + 1
}
