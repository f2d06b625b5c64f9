package simulate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
)

// filterTimeout is how long the scheduler tries to allocate devices of one node
// for one pod (DynamicResourcesFilterTimeoutDefault).
const filterTimeout = 10 * time.Second

// AbortError is what makes the scheduler give up on a pod, although other nodes
// may suit: a request that cannot be judged on this one. It tries again later,
// with the same outcome.
type AbortError struct {
	Pod, Node string
	Err       error
}

func (e *AbortError) Error() string {
	return fmt.Sprintf("the scheduler gives up on pod %s because of node %s: %v", e.Pod, e.Node, e.Err)
}

func (e *AbortError) Unwrap() error { return e.Err }

// onNode is the error beside the names of pod and node.
func (e *AbortError) onNode() string { return "the scheduler gives up: " + e.Err.Error() }

// Hint is one thing to do about it, or "".
func (e *AbortError) Hint() string {
	text := e.Err.Error()
	switch {
	case errors.Is(e.Err, context.DeadlineExceeded):
		return "ask for what is rarest first and for many devices last: the first choice that fits is taken, and every choice costs time"
	case strings.Contains(text, "no such key"):
		_, key, _ := strings.Cut(text, "no such key: ")
		key = key[:len(key)-len(strings.TrimLeftFunc(key, isIdentifier))]
		return fmt.Sprintf(`not every device has it; guard the selector with device.driver == "NAME" && ... and read device.attributes["DOMAIN"].?%s.orValue(...)`, key)
	case strings.Contains(text, "feature is disabled"):
		return "the claim needs a feature gate that is off; see --feature-gates"
	}
	return ""
}

// isIdentifier holds for what attributes' names are made of.
func isIdentifier(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// offer is a node that can have the pod. It has one allocation for each claim
// that has none yet; if those are not known, there is nothing else in it.
type offer struct {
	*node
	claims      []*resourceapi.ResourceClaim
	allocations []resourceapi.AllocationResult
	takes       requests.Amounts // of the node, by the pod; nil is not known
}

// ask says whether the pod can run on the node; the error is a Reason if it
// cannot, an *AbortError if asking is already too much. It changes nothing.
func (c *Cluster) ask(ctx context.Context, d *demand, n *node) (offer, error) {
	if text := n.refuses(d, c.delegated()); text != "" {
		return offer{}, Reason(text)
	}
	for _, used := range d.claims {
		if used.availableOn != nil && !used.availableOn.Match(n.Node) {
			return offer{}, reason("ResourceClaim %s is allocated where this node cannot reach it", used.claim.Name)
		}
	}
	if err := n.refresh(ctx, c); err != nil {
		return offer{}, err
	}
	can, known := n.answers[d.number]
	if !known {
		can, known = n.shape.knows(d, n.version)
	}
	switch {
	case n.late[d.number]:
		return offer{}, &AbortError{keyOf(d.pod).String(), n.Name, errLate}
	case known && can && !c.gates[gateNodeAllocatable]:
		return offer{node: n}, nil
	case known && !can:
		return offer{}, errCannotAllocate
	}
	o, err := c.allocate(ctx, d, n)
	if can, known := n.answers[d.number]; known {
		n.shape.learn(d, n.version, can)
	}
	return o, err
}

// delegated are the extended resources that are devices.
func (c *Cluster) delegated() map[corev1.ResourceName]*resourceapi.DeviceClass {
	if c.gates[gateExtendedResource] {
		return c.extended
	}
	return nil
}

// errLate is the scheduler's error for a search that takes too long.
var errLate = fmt.Errorf("timed out trying to allocate devices: %w", context.DeadlineExceeded)

// errCannotAllocate is the scheduler's reason; Explain has a better one.
const errCannotAllocate = Reason("cannot allocate all claims")

// allocate asks the allocator, unless it is hopeless.
func (c *Cluster) allocate(ctx context.Context, d *demand, n *node) (offer, error) {
	if d.harmless && c.hopeless(d, n) {
		n.answers[d.number] = false
		return offer{}, errCannotAllocate
	}
	o := offer{node: n, claims: d.toAllocate()}
	if special := c.extendedClaim(d, n); special != nil {
		o.claims = append(o.claims, special)
	}
	if len(o.claims) == 0 {
		return c.counted(d, o)
	}
	limited, cancel := ctx, context.CancelFunc(func() {})
	if c.gates[gateFilterTimeout] {
		limited, cancel = context.WithTimeout(ctx, filterTimeout)
	}
	defer cancel()
	allocations, err := n.allocator.Allocate(limited, n.Node, o.claims)
	switch {
	case ctx.Err() != nil:
		return offer{}, ctx.Err()
	case errors.Is(err, structured.ErrFailedAllocationOnNode):
		return offer{}, reason("%v", err)
	case errors.Is(err, context.DeadlineExceeded):
		n.late[d.number] = true
		return offer{}, &AbortError{keyOf(d.pod).String(), n.Name, errLate}
	case err != nil:
		return offer{}, &AbortError{keyOf(d.pod).String(), n.Name, err}
	}
	n.answers[d.number] = len(allocations) == len(o.claims)
	if !n.answers[d.number] {
		return offer{}, errCannotAllocate
	}
	for i := range allocations {
		requests.Settle(o.claims[i], &allocations[i])
	}
	o.allocations = allocations
	return c.counted(d, o)
}

// quickSearch is how many combinations of devices the allocator may try, at the
// most, so that it is sure to be done in a fraction of the time it has.
const quickSearch = 10_000

// hopeless is true only if the allocator would say no, and soon: a request finds
// fewer devices than it wants, even if nothing else were asked for, and those
// before it leave few combinations to try. A long search ends in an error
// instead.
func (c *Cluster) hopeless(d *demand, n *node) bool {
	combinations := 1
	for _, claim := range d.toAllocate() {
		for _, request := range claim.Spec.Devices.Requests {
			hope, ways := false, 0
			for _, a := range requests.Alternatives(request) {
				found := c.candidates(a, n)
				hope = hope || found >= int(a.Count)
				ways += power(found, int(a.Count))
			}
			if !hope {
				return combinations <= quickSearch
			}
			combinations = min(combinations*ways, quickSearch+1)
		}
	}
	return false
}

// power is base^exponent, or more than quickSearch.
func power(base, exponent int) int {
	product := 1
	for range exponent {
		product = min(product*base, quickSearch+1)
	}
	return product
}

// candidates counts the devices that are not held whole, are selected and have,
// rounding aside, what is asked.
func (c *Cluster) candidates(a requests.Alternative, n *node) (found int) {
	for i := range n.Devices {
		d := &n.Devices[i]
		if n.state.AllocatedDevices.Has(d.ID) || !c.hasRoom(a, d, n) {
			continue
		}
		if matches, err := c.passes(a, d); err == nil && matches { // there is no error: the demand is harmless
			found++
		}
	}
	return found
}

func (c *Cluster) hasRoom(a requests.Alternative, d *inventory.Device, n *node) bool {
	if a.Capacity == nil {
		return true
	}
	used := n.state.AggregatedCapacity[d.ID]
	for name, asked := range a.Capacity.Requests {
		capacity, has := d.Capacity[name]
		if !has {
			return false
		}
		if taken := used[name]; taken != nil {
			asked.Add(*taken)
		}
		if asked.Cmp(capacity.Value) > 0 {
			return false
		}
	}
	return true
}
