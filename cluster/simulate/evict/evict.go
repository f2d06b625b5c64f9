// Package evict finds the fewest running pods of lower priority whose deletion
// gives a waiting pod a node. The scheduler has no preemption for devices of
// claims. It asks package simulate again and again, and deletes nothing.
// PodDisruptionBudgets are not considered, nor is what the deleted pods were for.
package evict

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// Method is how a set was found.
type Method string

// Methods.
const (
	Exact  Method = "exact"  // all smaller sets were tried: none is enough
	Greedy Method = "greedy" // there may be a smaller set; of this one, no pod can be left out
)

// Suggestion is what would have to be deleted for a pod.
type Suggestion struct {
	Pod string `json:"pod"` // namespace/name
	// Node is the one that can have the pod then, "" if there is none.
	Node string `json:"node,omitempty"`
	// Method is "" if nothing has to be deleted, or nothing helps.
	Method Method `json:"method,omitempty"`
	// Evictions are by priority, then by namespace and name.
	Evictions []Eviction `json:"evictions"`
	// Sentence is the answer.
	Sentence string `json:"sentence"`
}

// Eviction is a pod to delete.
type Eviction struct {
	Pod      string `json:"pod"` // namespace/name
	Node     string `json:"node"`
	Priority int32  `json:"priority"`
	// Claims, by name, are reserved for the pod. Those that others use as well
	// stay allocated unless these are deleted, too.
	Claims []string `json:"claims,omitempty"`
}

// maxExact is the size up to which all sets are tried.
const maxExact = 3

// Options bound and watch the search.
type Options struct {
	// Trials is how many sets are tried before the search is content with what it
	// has; 0 is DefaultTrials.
	Trials int
	// Progress, if it is not nil, is told how many nodes were looked at.
	Progress func(done, total int)
}

// DefaultTrials take some ten seconds.
const DefaultTrials = 100_000

// Suggest looks for the smallest set. Of several it takes the one whose highest
// priority is lowest, then the next highest and so on, then the one with the
// fewest claims, with the newest pods, and on the first node by name. The cluster
// is that of the snapshot and unchanged afterwards. The error is a
// *simulate.AbortError if the scheduler gives up on the pod; no eviction helps
// then.
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
		answer.Node, answer.Sentence = placed[0], "nothing has to be deleted, "+placed[0]+" can have it now"
		return answer, nil
	}
	e := newSearch(c, s, pod, o)
	best, method, err := e.best(ctx)
	if err == nil && best != nil {
		err = e.confirm(ctx, best.victims)
	}
	if err != nil {
		return answer, err
	}
	answer.Sentence = e.sentence(best, method)
	if best != nil {
		answer.Node, answer.Method = best.node, method
		answer.Evictions = best.evictions()
	}
	return answer, nil
}
