package web

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings/chart"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/numa/draw/canvas"
)

// claimsPage is a list of claims.
type claimsPage struct {
	Claims []claimRow
	pager
}

func (s *server) claims(w http.ResponseWriter, r *http.Request) {
	now := s.board.state.Load()
	query := strings.ToLower(strings.TrimSpace(r.FormValue("q")))
	var found []*holdings.Claim
	for i := range now.cluster.Claims {
		claim := &now.cluster.Claims[i]
		isUser := func(u holdings.User) bool { return strings.Contains(strings.ToLower(u.Name), query) }
		if strings.Contains(strings.ToLower(claim.Key()), query) || slices.ContainsFunc(claim.Users, isUser) {
			found = append(found, claim)
		}
	}
	page := claimsPage{pager: newPager(r, len(found))}
	for _, claim := range found[page.from:page.to] {
		page.Claims = append(page.Claims, claimRow{Key: claim.Key(), Claim: *claim, Holds: holds(claim, "")})
	}
	s.render(w, r, now, http.StatusOK, "claims", "Claims", page)
}

// claimPage is the page of a claim.
type claimPage struct {
	*holdings.Claim
	Waiting []holdings.Pending // pods without a node that use the claim
	Asks    []ask
	Holds   []holding
}

// ask is a request, with its amounts as text.
type ask struct {
	holdings.Request
	Amounts []string
}

// holding is a share as text.
type holding struct {
	holdings.Share
	Text    string
	Amounts []string
}

func (s *server) claim(w http.ResponseWriter, r *http.Request) {
	now := s.board.state.Load()
	key := r.PathValue("namespace") + "/" + r.PathValue("name")
	claim := now.cluster.Claim(key)
	if claim == nil {
		s.message(w, r, http.StatusNotFound, "There is no claim "+key+".")
		return
	}
	page := claimPage{Claim: claim}
	for i := range now.cluster.Pending {
		if pod := now.cluster.Pending[i]; pod.Namespace == claim.Namespace && pod.Names(claim.Name) {
			page.Waiting = append(page.Waiting, pod)
		}
	}
	for _, request := range claim.Requests {
		a := ask{Request: request}
		for _, name := range slices.Sorted(maps.Keys(request.Capacity)) {
			a.Amounts = append(a.Amounts, canvas.Printable(chart.Label(name)+" "+chart.Amount(name, request.Capacity[name])))
		}
		page.Asks = append(page.Asks, a)
	}
	for i := range claim.Shares {
		h := holding{Share: claim.Shares[i], Text: canvas.Printable(chart.Describe(&claim.Shares[i]))}
		for _, name := range slices.Sorted(maps.Keys(h.Share.Amounts)) {
			h.Amounts = append(h.Amounts, canvas.Printable(chart.Label(name)+" "+chart.Amount(name, h.Share.Amounts[name])))
		}
		page.Holds = append(page.Holds, h)
	}
	s.render(w, r, now, http.StatusOK, "claim", key, page)
}

// podsPage is a list of pods without a node.
type podsPage struct {
	Pods []holdings.Pending
	pager
}

func (s *server) pods(w http.ResponseWriter, r *http.Request) {
	now := s.board.state.Load()
	query := strings.ToLower(strings.TrimSpace(r.FormValue("q")))
	var found []holdings.Pending
	for _, pod := range now.cluster.Pending {
		if strings.Contains(strings.ToLower(pod.Namespace+"/"+pod.Name), query) {
			found = append(found, pod)
		}
	}
	page := podsPage{pager: newPager(r, len(found))}
	page.Pods = found[page.from:page.to]
	s.render(w, r, now, http.StatusOK, "pods", "Pods without a node", page)
}

// podPage is the page of a pod without a node.
type podPage struct {
	Key     string
	Pod     *holdings.Pending // nil if it has a node
	Failure string
	simulate.Explanation
	Groups []nodeGroup
	More   int // number of groups that are not shown
}

// nodeGroup is nodes with the same answer.
type nodeGroup struct {
	Names []string
	More  int // number of nodes that are not named
	simulate.NodeExplanation
}

const (
	mostGroups = 20
	mostNames  = 8
)

func (s *server) pod(w http.ResponseWriter, r *http.Request) {
	now := s.board.state.Load()
	namespace, name := r.PathValue("namespace"), r.PathValue("name")
	page := podPage{Key: namespace + "/" + name}
	if now.objects.Pod(namespace, name) == nil {
		s.message(w, r, http.StatusNotFound, "There is no pod "+page.Key+".")
		return
	}
	for i := range now.cluster.Pending {
		if pod := &now.cluster.Pending[i]; pod.Namespace == namespace && pod.Name == name {
			page.Pod = pod
		}
	}
	explanation, err := s.explain(r.Context(), now, namespace, name)
	if err != nil {
		page.Failure = err.Error()
	}
	page.Explanation = explanation
	page.Groups, page.More = groupsOf(explanation)
	s.render(w, r, now, http.StatusOK, "pod", page.Key, page)
}

// explain computes only one explanation at a time, because each one uses a core for up
// to several seconds.
func (s *server) explain(ctx context.Context, now *state, namespace, name string) (simulate.Explanation, error) {
	select {
	case <-ctx.Done():
		return simulate.Explanation{}, ctx.Err()
	case s.busy <- struct{}{}:
	}
	defer func() { <-s.busy }()
	return s.Explain(ctx, now.objects, namespace, name)
}

// groupsOf returns the first groups of nodes with the same answer.
func groupsOf(explanation simulate.Explanation) (groups []nodeGroup, more int) {
	same := explanation.SameNodes()
	for _, nodes := range same[:min(len(same), mostGroups)] {
		group := nodeGroup{NodeExplanation: nodes[0], More: max(len(nodes)-mostNames, 0)}
		for _, node := range nodes[:min(len(nodes), mostNames)] {
			group.Names = append(group.Names, node.Node)
		}
		groups = append(groups, group)
	}
	return groups, max(len(same)-mostGroups, 0)
}
