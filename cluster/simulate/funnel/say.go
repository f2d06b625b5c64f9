package funnel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
)

// Cause is a kind of obstacle, with the names and amounts that its sentence has. String
// returns the sentence without its full stop. Some kinds have a method Hint, which returns
// one thing to change, or "".
type Cause interface{ String() string }

// Say returns the obstacles with their sentences.
func Say(obstacles []Finding) (said []Obstacle) {
	for _, f := range obstacles {
		o := f.say()
		switch f.alternative {
		case 0:
		case 1:
			o.Sentence = fmt.Sprintf("no alternative of request %s fits; the closest one is %s", requests.Base(f.request.Name), o.Sentence)
		default:
			o.Sentence = "another alternative is " + o.Sentence
		}
		if !slices.ContainsFunc(said, func(seen Obstacle) bool { return sameConstraint(seen, o) }) {
			said = append(said, o)
		}
	}
	return said
}

// SayRequests returns the requests with the sentences of the first findings about them.
func (f *Facts) SayRequests(findings []Finding) (list []Request) {
	for _, r := range slices.Concat(f.requests...) {
		counts := r.counts
		if i := slices.IndexFunc(findings, func(found Finding) bool { return found.request == r }); i >= 0 {
			counts.Sentence = findings[i].say().Sentence
		}
		list = append(list, counts)
	}
	return list
}

func (f Finding) say() Obstacle {
	o := Obstacle{Stage: f.Stage, Sentence: f.Why.String(), HeldBy: f.HeldBy}
	if helps, has := f.Why.(interface{ Hint() string }); has {
		o.Hint = helps.Hint()
	}
	r := f.request
	if r == nil {
		return o
	}
	o.Request = r.counts.Claim + "/" + r.Name
	if f.Stage == r.counts.Blocks {
		o.Absent = r.absent
		if o.Hint == "" && r.shared {
			o.Hint = fmt.Sprintf("count: %[1]d asks for %[1]d different devices; to get more of one device, ask for more of its capacity", r.wanted)
		}
		if r.kept > 0 || r.wanted > 1 {
			o.Sentence = fmt.Sprintf("%s wanted, %d left: %s", devices(r.wanted), r.kept, o.Sentence)
		}
	}
	o.Sentence = fmt.Sprintf("request %s: %s", r.Name, o.Sentence)
	return o
}

// sameConstraint reports whether two obstacles are about the same constraint. A
// constraint blocks all requests of a claim that it covers, and says the same of each.
func sameConstraint(a, b Obstacle) bool {
	claimA, _, _ := strings.Cut(a.Request, "/")
	claimB, _, _ := strings.Cut(b.Request, "/")
	_, bodyA, _ := strings.Cut(a.Sentence, ": ")
	_, bodyB, _ := strings.Cut(b.Sentence, ": ")
	return a.Stage == StageConstraint && b.Stage == StageConstraint && claimA == claimB && bodyA == bodyB
}
