// Package evict finds the smallest set of running pods with lower priority whose
// deletion gives a waiting pod a node. The scheduler does not preempt pods for the
// devices of claims. The package asks package simulate many times, and deletes nothing.
// It suggests only pods that PodDisruptionBudgets allow to evict now. It does not consider
// the purpose of the deleted pods.
package evict

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// Method says how a set of pods was found.
type Method string

// Methods.
const (
	Exact  Method = "exact"  // all smaller sets were tried, and none is enough
	Greedy Method = "greedy" // there may be a smaller set, but no pod of this set can stay
)

// Suggestion says which pods to delete for a waiting pod.
type Suggestion struct {
	Pod string `json:"pod"` // namespace/name
	// Node is the node on which the pod then fits, or "" if there is none.
	Node string `json:"node,omitempty"`
	// Method is "" if nothing has to be deleted, or if nothing helps.
	Method Method `json:"method,omitempty"`
	// Evictions are sorted by priority, then by namespace and name.
	Evictions []Eviction `json:"evictions"`
	// Protected are the pods that are left out because of PodDisruptionBudgets, or because
	// they come back with their claims, sorted by namespace and name.
	Protected []Protected `json:"protected,omitempty"`
	// Stopped is true if the search took too long: there may be a set, or a better one.
	Stopped bool `json:"stopped,omitempty"`
	// Notes say what the answer does not consider.
	Notes []string `json:"notes,omitempty"`
	// Sentence is the answer.
	Sentence string `json:"sentence"`
}

// Eviction is a pod to delete.
type Eviction struct {
	Pod      string `json:"pod"` // namespace/name
	Node     string `json:"node"`
	Priority int32  `json:"priority"`
	// Claims are the names of the claims that are reserved for the pod, sorted. A claim
	// that other pods use too stays allocated unless these pods are also deleted.
	Claims []string `json:"claims,omitempty"`
}

// maxExact is the maximum size for which all sets are tried.
const maxExact = 3

// Options limit the search and report its progress.
type Options struct {
	// Trials is how many sets are tried before the search takes the best set that it
	// has found; 0 means DefaultTrials.
	Trials int
	// Time limits the search for small sets, and then the search for others; 0 means
	// DefaultTime. Users can write claims for which a single trial takes seconds.
	Time time.Duration
	// Progress, if it is not nil, is called with the number of nodes that have been
	// searched.
	Progress func(done, total int)
}

// Limits of a search. DefaultTrials takes about ten seconds.
const (
	DefaultTrials = 100_000
	DefaultTime   = time.Minute
)

// Suggest looks for the smallest set. If several sets are equally small, it compares
// their highest priorities, then the next highest and so on, and takes the set with the
// lower ones. After that it prefers the set with the fewest claims, then the one with
// the newest pods, and then the first node by name. The cluster must be that of the
// snapshot. It is unchanged afterwards. The error is a *simulate.AbortError if the
// scheduler gives up on the pod; then no eviction helps.
func Suggest(ctx context.Context, c *simulate.Cluster, s *snapshot.Snapshot, pod *corev1.Pod, o Options) (Suggestion, error) {
	answer := Suggestion{Pod: pod.Namespace + "/" + pod.Name, Evictions: []Eviction{}}
	placed, err := c.Feasible(ctx, pod, "")
	var why simulate.Reason
	switch {
	case errors.As(err, &why):
		answer.Sentence = "no eviction helps: " + string(why)
		return answer, nil
	case err != nil:
		return answer, err
	case len(placed) > 0:
		answer.Node, answer.Sentence = placed[0], "nothing has to be deleted: the pod fits on "+placed[0]+" now"
		return answer, nil
	}
	e := newSearch(c, s, pod, o)
	answer.Protected = e.protected
	best, method, err := e.best(ctx)
	if err == nil && best != nil {
		err = e.confirm(ctx, best.victims)
	}
	if err != nil {
		return answer, err
	}
	answer.Sentence, answer.Stopped = e.sentence(best, method), e.stopped || best == nil && e.late
	if best != nil {
		answer.Node, answer.Method = best.node, method
		answer.Evictions = best.evictions()
	}
	return answer, nil
}
