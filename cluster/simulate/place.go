package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
)

// Placement says where a pod went, or why it went nowhere.
type Placement struct {
	Pod *corev1.Pod
	// Node is "" if the pod has no node.
	Node string
	// Feasible nodes are sorted by name. Without Options.AllNodes, it is only Node.
	Feasible []string
	// Choice is why it is this node. It is empty if another strategy chose the node.
	Choice Choice
	// Claims are the pod's claims in the order of the pod, with their allocations. The
	// claim for extended resources is last.
	Claims []PlacedClaim
	// Refusals are the reasons of all nodes, if no node is feasible. A refusal without
	// a node is about the pod itself, or says that there is no node.
	Refusals []Refusal
	// Aborted is set if the scheduler would give up on the pod.
	Aborted *AbortError

	bound *corev1.Pod // Pod with what the scheduler writes to its status; nil without a node
}

// PlacedClaim is a claim that a pod uses.
type PlacedClaim struct {
	Entry string // name in pod.spec.resourceClaims; "" for extended resources
	Claim *resourceapi.ResourceClaim

	isNew bool // it was allocated for this pod
}

// noNodes is why a pod has no node in a cluster without nodes, or in files that have only
// the ResourceSlices of a node.
const noNodes = Reason("there is no object of the kind Node: ResourceSlices alone are not enough")

// Refusal says why a pod does not fit on a node.
type Refusal struct {
	Node   string `json:"node,omitempty"`
	Reason string `json:"reason"`
}

// Options say how to place pods.
type Options struct {
	// Node is the only node to consider; "" means all nodes.
	Node string
	// AllNodes asks all nodes, to find every feasible one.
	AllNodes bool
	// Strategy chooses one of the feasible nodes; "" means Scheduler.
	Strategy Strategy
	// Choose, if it is not nil, chooses the node instead.
	Choose func(pod *corev1.Pod, feasible []string) string
	// Progress, if it is not nil, is called by Run with the number of pods that are done.
	Progress func(done, total int)
}

// Place finds a node for the pod, and adds to the node what the pod takes. The error is
// about the context or this program. The placement says what the scheduler decides
// about the pod.
func (c *Cluster) Place(ctx context.Context, pod *corev1.Pod, o Options) (Placement, error) {
	p := Placement{Pod: pod}
	d, err := c.demandOf(pod)
	var why Reason
	if errors.As(err, &why) {
		p.Refusals = []Refusal{{Reason: string(why)}}
		return p, nil
	}
	if err != nil {
		return p, err
	}
	switch {
	case len(c.hidden) > 0:
		p.Refusals = []Refusal{{Reason: c.unknown()}}
		return p, nil
	case len(c.nodes) == 0:
		p.Refusals = []Refusal{{Reason: string(noNodes)}}
		return p, nil
	}
	offers, err := c.survey(ctx, d, o, &p)
	if err != nil {
		return p, err
	}
	if len(offers) == 0 {
		return p, c.explainRefusals(ctx, d, p.Refusals)
	}
	chosen := c.choose(d, offers, o, &p)
	if chosen.takes == nil {
		if chosen, err = c.allocate(ctx, d, chosen.node); err != nil {
			return p, fmt.Errorf("allocate devices of node %s again: %w", chosen.Name, err)
		}
	}
	p.Refusals, p.Node = nil, chosen.Name
	if !o.AllNodes {
		p.Feasible = []string{chosen.Name} // other nodes, which were not asked, may be feasible too
	}
	p.Claims, p.bound = c.bind(d, chosen), chosen.pod
	return p, nil
}

// survey asks the nodes and records their answers in p. It asks all nodes only if that
// is necessary.
func (c *Cluster) survey(ctx context.Context, d *demand, o Options, p *Placement) (offers []offer, err error) {
	onlyFirst := d.harmless && !o.AllNodes && o.Choose == nil && o.Strategy == First
	for _, n := range c.nodes {
		if o.Node != "" && n.Name != o.Node {
			continue
		}
		if onlyFirst && len(offers) > 0 {
			break
		}
		offered, err := c.ask(ctx, d, n)
		var why Reason
		switch {
		case errors.As(err, &p.Aborted):
			p.Feasible, p.Refusals = nil, []Refusal{{n.Name, p.Aborted.cause().String()}}
			return nil, nil
		case errors.As(err, &why):
			p.Refusals = append(p.Refusals, Refusal{n.Name, string(why)})
		case err != nil:
			return nil, err
		default:
			offers = append(offers, offered)
			p.Feasible = append(p.Feasible, n.Name)
		}
	}
	return offers, nil
}

// explainRefusals replaces the scheduler's reason, which is always the same, with a
// better one.
func (c *Cluster) explainRefusals(ctx context.Context, d *demand, refusals []Refusal) (err error) {
	for i := range refusals {
		if r := &refusals[i]; r.Reason == string(errCannotAllocate) {
			index, _ := c.find(r.Node)
			if r.Reason, err = c.reasonFor(ctx, d, c.nodes[index]); err != nil {
				return err
			}
		}
	}
	return nil
}

// find returns the index of a node.
func (c *Cluster) find(name string) (index int, found bool) {
	return slices.BinarySearchFunc(c.nodes, name, func(n *node, name string) int { return cmp.Compare(n.Name, name) })
}

// bind adds to the node what the pod takes, and returns the pod's claims.
func (c *Cluster) bind(d *demand, o offer) (placed []PlacedClaim) {
	o.addPod(o.takes)
	key := keyOf(d.pod).String()
	c.assumed[key], c.avoided[key] = true, c.scored.Avoids(d.pod)
	if i, found := c.find(d.pod.Status.NominatedNodeName); found {
		n := c.nodes[i]
		n.nominated = slices.DeleteFunc(n.nominated, func(pod *corev1.Pod) bool { return pod == d.pod })
	}
	o.scored.Add(d.pod, requests.Scored(o.pod, c.gates[gateNodeAllocatable]))
	o.placed = append(o.placed, placedPod{d.pod, o.takes})
	allocations := o.allocations
	for i := range d.claims {
		claim := d.claims[i].claim.DeepCopy()
		isNew := claim.Status.Allocation == nil
		if isNew {
			claim.Status.Allocation, allocations = &allocations[0], allocations[1:]
			c.held.Add(claim, c.features.ConsumableCapacity)
		}
		placed = append(placed, PlacedClaim{d.claims[i].entry, c.reserve(claim, d.pod), isNew})
	}
	if len(allocations) > 0 {
		special := o.claims[len(o.claims)-1]
		special.Status.Allocation = &allocations[0]
		c.held.Add(special, c.features.ConsumableCapacity)
		placed = append(placed, PlacedClaim{"", c.reserve(special, d.pod), true})
	}
	return placed
}

// reserve records in the claim that the pod uses it.
func (c *Cluster) reserve(claim *resourceapi.ResourceClaim, pod *corev1.Pod) *resourceapi.ResourceClaim {
	if !resourceclaim.IsReservedForPod(pod, claim, false) {
		claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{
			Resource: "pods", Name: pod.Name, UID: pod.UID,
		})
	}
	c.claims[keyOf(claim)], c.users = claim, nil
	return claim
}
