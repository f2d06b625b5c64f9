package simulate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/score"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// Strategy says how a pod chooses among feasible nodes.
type Strategy string

// Strategies. Among equal nodes, each takes the first by name.
const (
	Scheduler Strategy = "scheduler" // one with the highest score
	First     Strategy = "first"     // the first by name
	Spread    Strategy = "spread"    // the one with the fewest pods
	Pack      Strategy = "pack"      // the one with the most pods
)

// Choice says which of the feasible nodes the scheduler chooses.
type Choice struct {
	// Best are the nodes that the scheduler may choose, sorted by name: those with the
	// highest score or, if the choice is not certain, all feasible nodes.
	Best []string `json:"-"`
	// Among is the number of feasible nodes, if there are several. The scheduler does not
	// score the only one.
	Among int `json:"among,omitempty"`
	// Scores begin with the highest. Without Options.AllNodes, they are at most maxScores.
	Scores []NodeScore `json:"scores,omitempty"`
	// Scored is the number of feasible nodes that the scheduler scores, if that is not all
	// of them. It is not certain which of them these are.
	Scored int `json:"scored,omitempty"`
	// Unknown is what else makes the choice uncertain: what decides in a cluster, but is
	// not simulated.
	Unknown []string `json:"unknown,omitempty"`
}

// maxScores is how many scores a choice has.
const maxScores = 10

// NodeScore is the score of a node.
type NodeScore struct {
	Node string `json:"node"`
	// Best says that the scheduler may choose the node.
	Best bool `json:"best"`
	score.Score
}

// choose returns the offer that the pod takes.
func (c *Cluster) choose(d *demand, offers []offer, o Options, p *Placement) offer {
	byPods := func(a, b offer) int { return cmp.Compare(a.pods, b.pods) }
	chosen := offers[0]
	switch o.Strategy {
	case First:
	case Spread:
		chosen = slices.MinFunc(offers, byPods)
	case Pack:
		chosen = slices.MaxFunc(offers, byPods) // MaxFunc returns the first of them
	default:
		chosen, p.Choice = c.rank(d, offers, o.AllNodes)
	}
	if o.Choose == nil {
		return chosen
	}
	name := o.Choose(d.pod, namesOf(offers))
	if i := slices.IndexFunc(offers, func(o offer) bool { return o.Name == name }); i >= 0 {
		return offers[i]
	}
	return chosen
}

func namesOf(offers []offer) (names []string) {
	for _, o := range offers {
		names = append(names, o.Name)
	}
	return names
}

// rank returns the first of the offers with the highest score, and the choice that the
// scheduler has.
func (c *Cluster) rank(d *demand, offers []offer, all bool) (offer, Choice) {
	if len(offers) == 1 {
		return offers[0], Choice{Best: namesOf(offers)}
	}
	candidates := make([]score.Candidate, len(offers))
	order := make([]int, len(offers))
	for i, o := range offers {
		candidates[i] = score.Candidate{Node: o.scored, Alternatives: d.alternatives + o.alternatives}
		order[i] = i
	}
	ranking := c.scored.Rank(d.pod, candidates)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ranking.Totals[b], ranking.Totals[a]) })
	choice := Choice{Among: len(offers), Unknown: append(c.Unsimulated(d.pod), ranking.Unknown...)}
	if limit := score.Limit(len(c.nodes)); len(offers) > limit {
		choice.Scored = limit
	}
	highest := ranking.Totals[order[0]]
	best := func(i int) bool { return ranking.Totals[i] == highest || !choice.certain() }
	for i, o := range offers {
		if best(i) {
			choice.Best = append(choice.Best, o.Name)
		}
	}
	for _, i := range order {
		if !all && len(choice.Scores) == maxScores {
			break
		}
		choice.Scores = append(choice.Scores, NodeScore{offers[i].Name, best(i), ranking.Score(i)})
	}
	return offers[order[0]], choice
}

// certain reports whether the scheduler chooses one of the nodes with the highest score.
func (c *Choice) certain() bool { return c.Scored == 0 && len(c.Unknown) == 0 }

// sentence says which of several feasible nodes the scheduler chooses.
func (c *Choice) sentence() string {
	switch {
	case len(c.Unknown) > 0:
		return fmt.Sprintf("%s has the highest score, but the scheduler may choose another of these nodes, because of what is not simulated: %s",
			c.Scores[0].Node, strings.Join(c.Unknown, ", "))
	case c.Scored > 0:
		return fmt.Sprintf("the scheduler scores only %d of them, so it may choose any of them", c.Scored)
	case len(c.Best) == 1:
		return c.Best[0] + " has the highest score"
	}
	return fmt.Sprintf("%s have the same highest score, and the scheduler chooses any of them", message.First(c.Best, 3))
}

// chooseFor says on which nodes the pod fits, and which of them it gets.
func (c *Cluster) chooseFor(d *demand, offers []offer, e *Explanation) {
	e.Node = offers[0].Name
	e.Sentence = fmt.Sprintf("fits on %d of %d nodes", len(offers), len(c.nodes))
	switch {
	case len(offers) == 1:
		e.Sentence += ": " + e.Node
	case c.partial || e.Claim != "": // other pods, or the rest of the claim's pod, are not known
		e.Sentence += fmt.Sprintf("; %s is the first by name", e.Node)
	default:
		var chosen offer
		chosen, e.Choice = c.rank(d, offers, true)
		e.Node = chosen.Name
		e.Sentence += "; " + e.Choice.sentence()
	}
}
