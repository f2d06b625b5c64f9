package driver

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// grantList is a set of grants, ascending by UID, each UID once. A list is never
// changed: with and without return new lists, which the caller then records.
type grantList []*listedGrant

// listedGrant is a grant in a list. Each change of one grant writes all of them, so
// what a write needs is made only once for each grant.
type listedGrant struct {
	Grant
	text  string // of the grant in the checkpoint
	words int    // of its sets of CPUs, for addTo
}

func (l grantList) search(uid types.UID) (i int, found bool) {
	return slices.BinarySearchFunc(l, uid, func(g *listedGrant, uid types.UID) int { return cmp.Compare(g.UID, uid) })
}

// grants returns the grants in the order of the list.
func (l grantList) grants() []Grant {
	grants := make([]Grant, len(l))
	for i := range l {
		grants[i] = l[i].Grant
	}
	return grants
}

// find returns the grant of a claim.
func (l grantList) find(uid types.UID) (grant Grant, found bool) {
	i, found := l.search(uid)
	if !found {
		return Grant{}, false
	}
	return l[i].Grant, true
}

// listed prepares a grant for a list.
func listed(grant Grant) *listedGrant {
	return &listedGrant{grant, string(grant.appendText(make([]byte, 0, 512))), grant.words()}
}

// with returns a list that has this grant instead of the claim's previous one, if any.
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

// without returns a list that has no grant of the claim.
func (l grantList) without(uid types.UID) grantList {
	i, found := l.search(uid)
	if !found {
		return l
	}
	return slices.Concat(l[:i], l[i+1:])
}

// nextOrder returns an order that is higher than that of every grant.
func (l grantList) nextOrder() uint64 {
	var last uint64
	for i := range l {
		last = max(last, l[i].Order)
	}
	return last + 1
}
