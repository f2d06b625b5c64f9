package simulate

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/funnel"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/score"
	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
)

// filterTimeout is how long the scheduler tries to allocate devices of one node for one
// pod (DynamicResourcesFilterTimeoutDefault).
const filterTimeout = 10 * time.Second

// Users can write claims for which a search takes filterTimeout on every node. Once slow
// searches have taken slowBudget together, a search may take only shortTimeout. What
// takes less than that is not slow.
const (
	slowBudget   = time.Minute
	shortTimeout = 100 * time.Millisecond
)

// atMost returns how long a search may take.
func (c *Cluster) atMost(limit time.Duration) time.Duration {
	if c.slow > slowBudget {
		return shortTimeout
	}
	return limit
}

// spent counts the time of a search that began at this time.
func (c *Cluster) spent(began time.Time) {
	if took := time.Since(began); took > shortTimeout {
		c.slow += took
	}
}

// AbortError is the reason why the scheduler gives up on a pod: on one node, it cannot
// tell whether a request can be met. It then ignores all other nodes. It tries again
// later, with the same result.
type AbortError struct {
	Pod, Node string
	Err       error
}

func (e *AbortError) Error() string {
	return fmt.Sprintf("the scheduler gives up on pod %s because of node %s: %v", e.Pod, e.Node, e.Err)
}

func (e *AbortError) Unwrap() error { return e.Err }

// cause is the error without the names of the pod and the node.
func (e *AbortError) cause() funnel.GivesUp { return funnel.GivesUp{Err: e.Err} }

// Hint returns one thing to change, or "".
func (e *AbortError) Hint() string { return e.cause().Hint() }

// offer is a node on which the pod fits, with one new allocation for each claim that is
// not allocated. If the node's answer was already known, there are no allocations yet.
type offer struct {
	*node
	claims      []*resourceapi.ResourceClaim
	allocations []resourceapi.AllocationResult
	// alternatives is score.Alternatives of the allocations.
	alternatives int64
	// pod is the pod with a status that says what its claims take of the node's own
	// resources. takes is what it takes of the node; nil means not known.
	pod   *corev1.Pod
	takes requests.Amounts
}

// ask finds out whether the pod fits on the node. The error is a Reason if it does not
// fit, and an *AbortError if the scheduler gives up. ask does not change any holdings.
func (c *Cluster) ask(ctx context.Context, d *demand, n *node) (offer, error) {
	if refusals := n.refusals(d, c.deviceResources()); len(refusals) > 0 {
		return offer{}, Reason(textOf(refusals))
	}
	return c.askDevices(ctx, d, n)
}

// askDevices is the part of ask that is about devices.
func (c *Cluster) askDevices(ctx context.Context, d *demand, n *node) (offer, error) {
	if err := n.refresh(ctx, c); err != nil {
		return offer{}, err
	}
	known, ok := n.answers[d.number]
	if !ok {
		known, ok = n.shape.recall(d, n.version)
	}
	switch {
	case n.late[d.number] != nil:
		return offer{}, &AbortError{keyOf(d.pod).String(), n.Name, n.late[d.number]}
	case ok && known.can && !c.gates[gateNodeAllocatable]:
		return offer{node: n, alternatives: known.alternatives}, nil
	case ok && !known.can:
		return offer{}, errCannotAllocate
	}
	o, err := c.allocate(ctx, d, n)
	if found, ok := n.answers[d.number]; ok {
		n.shape.learn(d, n.version, found)
	}
	return o, err
}

// deviceResources returns the extended resources that devices provide, with their
// classes.
func (c *Cluster) deviceResources() map[corev1.ResourceName]*resourceapi.DeviceClass {
	if c.gates[gateExtendedResource] {
		return c.extended
	}
	return nil
}

// errLate is the scheduler's error for a search that takes too long.
var errLate = fmt.Errorf("timed out trying to allocate devices: %w", context.DeadlineExceeded)

// errCut says that a search was ended early: it might have found an answer later.
var errCut = fmt.Errorf("no answer within %s, because other searches have taken too long; the scheduler has %s: %w", shortTimeout, filterTimeout, context.DeadlineExceeded)

// errCannotAllocate is the scheduler's reason. Explanations give a better one.
const errCannotAllocate = Reason("cannot allocate all claims")

// allocate asks the allocator, unless the answer is known to be no.
func (c *Cluster) allocate(ctx context.Context, d *demand, n *node) (offer, error) {
	if d.harmless && c.hopeless(d, n) {
		n.answers[d.number] = answer{}
		return offer{}, errCannotAllocate
	}
	o := offer{node: n, claims: d.toAllocate()}
	if special := c.extendedClaim(d, n); special != nil {
		o.claims = append(o.claims, special)
	}
	if len(o.claims) == 0 {
		return c.withResources(d, o)
	}
	if err := c.endless(o.claims); err != nil {
		return offer{}, &AbortError{keyOf(d.pod).String(), n.Name, err}
	}
	limit, late := filterTimeout, errLate
	if c.atMost(limit) < limit {
		limit, late = shortTimeout, errCut
	}
	limited, cancel := ctx, context.CancelFunc(func() {})
	if c.gates[gateFilterTimeout] {
		limited, cancel = context.WithTimeout(ctx, limit)
	}
	defer cancel()
	began := time.Now()
	allocations, err := c.search(limited, n, o.claims)
	c.spent(began)
	switch {
	case ctx.Err() != nil:
		return offer{}, ctx.Err()
	case err != nil && c.minor >= 38 && allocation.IsAboutPool(err):
		return offer{}, reason("%v", err)
	case errors.Is(err, allocation.ErrOnNode):
		return offer{}, errCannotAllocate // the error says only that some pool is invalid
	case errors.Is(err, context.DeadlineExceeded):
		n.late[d.number] = late
		return offer{}, &AbortError{keyOf(d.pod).String(), n.Name, late}
	case err != nil:
		return offer{}, &AbortError{keyOf(d.pod).String(), n.Name, err}
	}
	if len(allocations) != len(o.claims) {
		n.answers[d.number] = answer{}
		return offer{}, errCannotAllocate
	}
	o.alternatives = c.alternatives(o.claims, allocations)
	n.answers[d.number] = answer{true, o.alternatives}
	for i := range allocations {
		requests.Settle(o.claims[i], &allocations[i])
		c.names.Restore(&allocations[i])
	}
	o.allocations = allocations
	return c.withResources(d, o)
}

// alternatives returns what the scheduler's score has for the alternatives that the claims
// get.
func (c *Cluster) alternatives(claims []*resourceapi.ResourceClaim, allocations []resourceapi.AllocationResult) int64 {
	if !c.gates[gatePrioritizedList] {
		return 0
	}
	return score.Alternatives(claims, allocations)
}

// quickSearch is a number of combinations that the allocator can try in a fraction of
// its time limit.
const quickSearch = 10_000

// hopeless reports whether it is certain that the allocator soon says no. Then some
// request finds fewer devices than it wants even when it is alone, and the requests
// before it leave few combinations to try. If there are many combinations, the
// allocator may run out of time instead, which is a different answer.
func (c *Cluster) hopeless(d *demand, n *node) bool {
	hope, combinations := c.prospects(d, n)
	return !hope && combinations <= quickSearch
}

// prospects reports whether every request finds enough devices when it is alone, and
// how many combinations there are to try, up to the first request that does not. The
// number is at most quickSearch+1.
func (c *Cluster) prospects(d *demand, n *node) (hope bool, combinations int) {
	combinations = 1
	for _, claim := range d.toAllocate() {
		for _, request := range claim.Spec.Devices.Requests {
			hope, ways := false, 0
			for _, a := range requests.Alternatives(request) {
				found := c.candidates(a, n)
				hope = hope || found >= int(a.Count)
				ways += power(found, int(a.Count))
			}
			if !hope {
				return false, combinations
			}
			combinations = min(combinations*ways, quickSearch+1)
		}
	}
	return true, combinations
}

// power returns base^exponent, but at most quickSearch+1.
func power(base, exponent int) int {
	product := 1
	for range exponent {
		product = min(product*base, quickSearch+1)
	}
	return product
}

// candidates counts the devices that are selected, that no claim holds as a whole, and
// that have the requested capacity before rounding.
func (c *Cluster) candidates(a requests.Alternative, n *node) (found int) {
	for i := range n.Devices {
		d := &n.Devices[i]
		if n.state.HeldWhole(d.ID) || !c.hasRoom(a, d, n) {
			continue
		}
		if matches, err := c.passes(a, d); err == nil && matches { // a harmless demand has no errors
			found++
		}
	}
	return found
}

func (c *Cluster) hasRoom(a requests.Alternative, d *inventory.Device, n *node) bool {
	for name, asked := range a.Amounts() {
		capacity, has := d.Capacity[name]
		if !has {
			return false
		}
		if taken := n.state.Consumed(d.ID, name); taken != nil {
			asked.Add(*taken)
		}
		if asked.Cmp(capacity.Value) > 0 {
			return false
		}
	}
	return true
}
