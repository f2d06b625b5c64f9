package web

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	g "maragu.dev/gomponents"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/funnel"
)

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
		s.message(w, http.StatusNotFound, "There is no pod "+page.Key+".")
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
	s.render(w, now, http.StatusOK, page.Key, page.main())
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

func (p podPage) main() g.Node {
	return g.Group{
		failure("The explanation failed: ", p.Failure),
		g.If(p.Sentence != "", el("p", attr("class", "answer"), text(p.Key+": "+p.Sentence))),
		g.Map(p.Hints, func(hint string) g.Node { return el("p", attr("class", "hint"), text("Hint: "+hint)) }),
		g.Map(p.Notes, func(note string) g.Node { return plain("Note: " + note) }),
		p.assumed(),
		g.Iff(p.Pod != nil, func() g.Node { return pendingClaims(p.Pod) }),
		g.Map(p.Groups, nodeGroup.card),
		g.If(p.More > 0, plain(fmt.Sprintf("There are %d more answers for other nodes.", p.More))),
	}
}

// assumed names the pods that are placed before this pod.
func (p podPage) assumed() g.Node {
	var placed []string
	for _, pod := range p.Assumed {
		placed = append(placed, pod.Pod+" on "+pod.Node)
	}
	return g.If(len(placed) > 0, plain("Assumed to be placed first: "+commas(placed)))
}

// pendingClaims shows what the scheduler says, and the claims of the pod.
func pendingClaims(pod *holdings.Pending) g.Node {
	return g.Group{
		g.If(pod.Message != "", plain("The scheduler says: "+pod.Message)),
		el("ul", g.Map(pod.Claims, func(c holdings.PodClaim) g.Node {
			if c.Claim == "" {
				return el("li", text("claim "+c.Name+", not created from its template yet"))
			}
			return el("li", text("claim "+c.Name+": "), anchor(claimPath(pod.Namespace, c.Claim), c.Claim))
		})),
	}
}

// card shows the answer for the nodes.
func (n nodeGroup) card() g.Node {
	var names g.Group
	for i, name := range n.Names {
		names = append(names, g.If(i > 0, text(", ")), nodeLink(name))
	}
	answer := plain("The pod fits on this node.")
	if !n.Feasible {
		answer = g.Map(n.Obstacles, obstacle)
	}
	return el("section",
		attr("class", "card"),
		el("h2", names, g.If(n.More > 0, text(fmt.Sprintf(" and %d more", n.More)))),
		answer,
		g.If(len(n.Requests) > 0, scrolled(
			heads("Request", "wants", "of", "driver", "class", "selector", "taint", "in use", "capacity", "match", "blocked by"),
			el("tbody", g.Map(n.Requests, requestRow)),
		)),
	)
}

// obstacle shows what has to change, and the holders of what is missing.
func obstacle(o funnel.Obstacle) g.Node {
	var holders []string
	for _, holder := range o.HeldBy {
		holders = append(holders, holder.String())
	}
	return g.Group{plain(o.Sentence), g.If(len(holders) > 0, list(holders))}
}

// requestRow shows how many devices pass each stage.
func requestRow(r funnel.Request) g.Node {
	counts := []int{r.Wanted, r.Devices, r.Left.Driver, r.Left.Class, r.Left.Selector, r.Left.Taint, r.Left.InUse, r.Left.Capacity, r.Left.Constraint}
	return el("tr",
		rowHead(text(r.Claim+"/"+r.Request)),
		g.Map(counts, func(count int) g.Node { return el("td", attr("class", "number"), text(strconv.Itoa(count))) }),
		el("td", text(string(r.Blocks))),
	)
}
