// Package web shows which claims hold which devices of a cluster as web pages. The
// server renders them; they work without JavaScript, and follow the cluster if it is
// watched. The package only reads. It trusts nothing that a browser or an object of the
// cluster says: all texts are escaped, and requests for other hosts are refused.
//
// It is larger than other packages because each page has both what it shows and its elements.
package web

import (
	"strings"
	"sync/atomic"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Board is what the pages show. Only one goroutine may call Show and Fail. Any
// goroutine may read the pages.
type Board struct{ state atomic.Pointer[state] }

// state is what the pages show at one moment. It never changes.
type state struct {
	version int
	objects *snapshot.Snapshot
	cluster holdings.Cluster
	search  []string // by node: its search text, in lower case
	failure string   // why the pages are out of date; "" if they are not
	next    chan struct{}
}

// NewBoard returns a board that shows nothing yet.
func NewBoard() *Board {
	b := &Board{}
	b.state.Store(&state{objects: &snapshot.Snapshot{}, failure: "nothing has been read yet", next: make(chan struct{})})
	return b
}

// Show replaces the objects. Pages are sent again only if their content changes.
func (b *Board) Show(objects *snapshot.Snapshot) {
	before := b.state.Load()
	now := &state{version: before.version, objects: objects, cluster: holdings.Of(objects), next: before.next}
	if before.failure == "" && sameHoldings(before.cluster, now.cluster) {
		now.search = before.search
		b.state.Store(now)
		return
	}
	now.search = searchTexts(now.cluster)
	b.advance(now)
}

// sameHoldings reports whether two clusters are equal. It compares quantities by value.
// It compares sets of CPUs with ==, because their fields are private.
func sameHoldings(a, b holdings.Cluster) bool {
	equal := apiequality.Semantic.Copy()
	if err := equal.AddFunc(func(a, b cpuset.Set) bool { return a == b }); err != nil {
		panic(err) // impossible: the function has the required type
	}
	return equal.DeepEqual(a, b)
}

// Fail sets the reason why the pages are out of date.
func (b *Board) Fail(err error) {
	now := *b.state.Load()
	now.failure = err.Error()
	b.advance(&now)
}

func (b *Board) advance(now *state) {
	before := now.next
	now.version, now.next = now.version+1, make(chan struct{})
	b.state.Store(now)
	close(before)
}

// searchTexts returns a text for each node: its name, its claims and their users.
func searchTexts(c holdings.Cluster) []string {
	texts := make([]strings.Builder, len(c.Nodes))
	index := make(map[string]int, len(c.Nodes))
	for i := range c.Nodes {
		index[c.Nodes[i].Name] = i
		texts[i].WriteString(c.Nodes[i].Name)
	}
	for i := range c.Claims {
		claim := &c.Claims[i]
		written := make(map[int]bool)
		for _, share := range claim.Shares {
			at, known := index[share.Node]
			if !known || written[at] {
				continue
			}
			written[at] = true
			texts[at].WriteString(" " + claim.Key())
			for _, user := range claim.Users {
				texts[at].WriteString(" " + claim.Namespace + "/" + user.Name)
			}
		}
	}
	list := make([]string, len(texts))
	for i := range texts {
		list[i] = strings.ToLower(texts[i].String())
	}
	return list
}
