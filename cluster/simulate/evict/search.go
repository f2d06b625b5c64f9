package evict

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// search is the search for one waiting pod.
type search struct {
	Options
	cluster *simulate.Cluster
	pod     *corev1.Pod
	places  []*place // sorted by node name; only nodes with a pod to delete
	deleted int      // number of pods that may be deleted
	limited bool     // a PodDisruptionBudget allows to delete some pods, but perhaps not all
	// protected are the pods that are left out, as in Suggestion.
	protected []Protected
	// monotone means that a set is sufficient if a part of it is. It is false if the
	// pod names a ResourceClaim. If that claim is allocated and its last user is
	// deleted, perhaps no pod can allocate it again.
	monotone bool
	trials   int
	stopped  bool // not all was tried, because it takes too long
	late     bool // for some sets, the scheduler's allocator has no answer in time
}

// place is a node with the pods whose deletion may make a difference there, in the
// order of victims.
type place struct {
	node    string
	victims []*victim
}

func newSearch(c *simulate.Cluster, s *snapshot.Snapshot, pod *corev1.Pod, o Options) *search {
	e := &search{Options: o, cluster: c, pod: pod, monotone: true}
	e.Trials, e.Time = cmp.Or(e.Trials, DefaultTrials), cmp.Or(e.Time, DefaultTime)
	pods, protected := victims(s, pod)
	e.deleted, e.limited, e.protected = len(pods), !areWithin(pods), protected
	far := newReach(s, pod)
	for _, entry := range pod.Spec.ResourceClaims {
		e.monotone = e.monotone && entry.ResourceClaimName == nil
	}
	for _, node := range s.Nodes {
		p := &place{node: node.Name}
		for _, v := range pods {
			if v.Spec.NodeName == node.Name || far.everywhere(v) {
				p.victims = append(p.victims, v)
			}
		}
		if len(p.victims) > 0 {
			e.places = append(e.places, p)
		}
	}
	slices.SortFunc(e.places, func(a, b *place) int { return cmp.Compare(a.node, b.node) })
	return e
}

// best returns the best set, or nil if there is none. It tries small sets first: most
// often, one or two pods are enough, and the greedy search takes longer.
func (e *search) best(ctx context.Context) (best *set, method Method, err error) {
	best, err = e.exact(ctx)
	if err != nil && !errors.Is(err, errTrials) && !errors.Is(err, errTime) {
		return nil, "", err
	}
	if best != nil {
		return best, Exact, nil
	}
	method = Exact
	if err != nil {
		method = Greedy
	}
	limited, cancel := e.limit(ctx)
	defer cancel()
	for _, p := range e.places {
		found, err := e.greedy(limited, p)
		if err != nil && !errors.Is(err, errTime) {
			return nil, "", err
		}
		if found != nil && (best == nil || found.compare(best) < 0) {
			best = found
		}
	}
	if best != nil && (len(best.victims) > maxExact+1 || e.stopped) {
		method = Greedy
	}
	return best, method, nil
}

// exact returns the best of the smallest sets. The error is errTrials or errTime if there
// are too many sets to try.
func (e *search) exact(ctx context.Context) (best *set, err error) {
	limited, cancel := e.limit(ctx)
	defer cancel()
	if err := e.prune(limited); err != nil {
		return nil, err
	}
	e.trials = 0
	for size := 1; size <= maxExact && best == nil && err == nil; size++ {
		best, err = e.smallest(limited, size)
	}
	return best, err
}

// limit returns a context that ends with errTime.
func (e *search) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, e.Time, errTime)
}

// prune removes the nodes on which the pod does not fit even if all victims there are
// deleted.
func (e *search) prune(ctx context.Context) error {
	var left []*place
	for i, p := range e.places {
		fits, err := e.fits(ctx, p.node, p.victims)
		if err != nil {
			return err
		}
		if fits || !e.monotone {
			left = append(left, p)
		}
		if e.Progress != nil {
			e.Progress(i+1, len(e.places))
		}
	}
	e.places = left
	return nil
}

// greedy starts with all pods of a node, and keeps each pod that can stay, the most
// important ones first. If those are too many for their budgets, it starts with as many as
// the budgets allow. It returns nil if the pod does not fit then.
func (e *search) greedy(ctx context.Context, p *place) (*set, error) {
	found, err := e.reduce(ctx, p, p.victims)
	if err == nil && found != nil && !areWithin(found.victims) {
		return e.reduce(ctx, p, within(p.victims))
	}
	return found, err
}

func (e *search) reduce(ctx context.Context, p *place, victims []*victim) (*set, error) {
	left := slices.Clone(victims)
	if fits, err := e.fits(ctx, p.node, left); err != nil || !fits {
		return nil, err
	}
	for i := len(left) - 1; i >= 0; i-- {
		fewer := slices.Delete(slices.Clone(left), i, i+1)
		fits, err := e.fits(ctx, p.node, fewer)
		if errors.Is(err, errTime) {
			break
		}
		if err != nil {
			return nil, err
		}
		if fits {
			left = fewer
		}
	}
	return &set{p.node, left}, nil
}

// errTrials and errTime end a search that takes too long.
var (
	errTrials = errors.New("too many sets")
	errTime   = errors.New("no time left")
)

// smallest tries all sets of this size. It returns the best one, or nil if none is
// sufficient.
func (e *search) smallest(ctx context.Context, size int) (best *set, err error) {
	for _, p := range e.places {
		err := e.extend(ctx, p, nil, p.victims, size, func(victims []*victim) {
			if found := (&set{p.node, slices.Clone(victims)}); best == nil || found.compare(best) < 0 {
				best = found
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return best, nil
}

// extend completes the chosen pods to sets of this size, with pods of the rest, and
// tries them. It skips sets if even all pods that are left would not be sufficient.
func (e *search) extend(ctx context.Context, p *place, chosen, rest []*victim, size int, found func([]*victim)) error {
	for i, v := range rest {
		if len(rest)-i < size-len(chosen) {
			return nil
		}
		if e.trials >= e.Trials {
			return errTrials
		}
		next := append(slices.Clip(chosen), v)
		if e.monotone && (i == 0 || len(next) < size) {
			if fits, err := e.fits(ctx, p.node, slices.Concat(chosen, rest[i:])); err != nil || !fits {
				return err
			}
		}
		if !areWithin(next) {
			continue
		}
		if len(next) < size {
			if err := e.extend(ctx, p, next, rest[i+1:], size, found); err != nil {
				return err
			}
			continue
		}
		fits, err := e.fits(ctx, p.node, next)
		if err != nil {
			return err
		}
		if fits {
			found(next)
		}
	}
	return nil
}

// fits reports whether the pod fits on the node when the victims are deleted. The error is
// errTime if the context has ended with it.
func (e *search) fits(ctx context.Context, node string, victims []*victim) (fits bool, err error) {
	e.trials++
	nodes, err := e.feasibleWithout(ctx, node, victims)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
		e.stopped = e.stopped || errors.Is(err, errTime)
		return false, err
	}
	var why simulate.Reason
	var abort *simulate.AbortError
	switch {
	case errors.As(err, &abort):
		// These deletions are the reason: without them, the scheduler did not give up.
		e.late = e.late || errors.Is(abort, context.DeadlineExceeded)
		return false, nil
	case errors.As(err, &why):
		return false, nil
	}
	return len(nodes) > 0, err
}

// feasibleWithout returns the feasible nodes without the victims. If node is not "", it
// asks only that node.
func (e *search) feasibleWithout(ctx context.Context, node string, victims []*victim) ([]string, error) {
	for _, v := range victims {
		defer e.cluster.Evict(v.Pod)()
	}
	return e.cluster.Feasible(ctx, e.pod, node)
}

// confirm asks all nodes: if the scheduler gives up on one node, it ignores all others.
func (e *search) confirm(ctx context.Context, victims []*victim) error {
	nodes, err := e.feasibleWithout(ctx, "", victims)
	if err == nil && len(nodes) == 0 {
		// This is impossible: the search found a node.
		return fmt.Errorf("confirm evictions for pod %s/%s: it fits on no node", e.pod.Namespace, e.pod.Name)
	}
	return err
}

// deletable says which pods are not left out.
func (e *search) deletable() string {
	var texts []string
	if slices.ContainsFunc(e.protected, func(p Protected) bool { return len(p.Budgets) > 0 }) {
		texts = append(texts, "no PodDisruptionBudget protects")
	}
	if slices.ContainsFunc(e.protected, func(p Protected) bool { return len(p.Budgets) == 0 }) {
		texts = append(texts, "do not come back with their claims")
	}
	return strings.Join(texts, " and that ")
}

func (e *search) sentence(best *set, method Method) string {
	switch {
	case best == nil && (e.stopped || e.late):
		return "no eviction was found: it takes too long to try which pods are enough"
	case best == nil && e.deleted > 0 && e.limited && len(e.places) > 0:
		return "no eviction helps: no pods were found that are enough and that their PodDisruptionBudgets allow to delete at the same time"
	case best == nil && len(e.protected) > 0:
		return fmt.Sprintf("no eviction helps: the pod fits on no node even if all running pods with a priority below %d are deleted that %s", priorityOf(e.pod), e.deletable())
	case e.deleted == 0:
		return fmt.Sprintf("no eviction helps: no running pod has a priority below %d, except pods that would come back", priorityOf(e.pod))
	case best == nil:
		return fmt.Sprintf("no eviction helps: the pod fits on no node even if all running pods with a priority below %d are deleted", priorityOf(e.pod))
	}
	pods := fmt.Sprintf("%d pods are", len(best.victims))
	if len(best.victims) == 1 {
		pods = "1 pod is"
	}
	if method == Exact {
		return fmt.Sprintf("the pod fits on %s if %s deleted; fewer are not enough", best.node, pods)
	}
	if e.stopped {
		return fmt.Sprintf("the pod fits on %s if %s deleted; fewer may be enough, because the search was stopped", best.node, pods)
	}
	return fmt.Sprintf("the pod fits on %s if %s deleted; fewer may be enough, but none of these can stay", best.node, pods)
}
