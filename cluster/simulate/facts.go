package simulate

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulinghelper "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/funnel"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
)

// An explanation has the three passes of package funnel: factsOf asks about each node, judge
// finds the obstacles in the facts, and funnel.Say has the sentences.

// facts are what is known about a pod on a node.
type facts struct {
	refusals []funnel.Cause                          // other than devices
	lacking  []funnel.Cause                          // what the node has not enough of with the devices of the pod's claims
	takers   map[corev1.ResourceName][]funnel.Holder // of the resources that the node has not enough of
	devices  *funnel.Facts
	asked    bool  // whether the allocator was asked for devices
	answer   error // what it says; nil means yes
	offer    offer // if the answer is yes
}

// factsOf asks about a pod on a node. A node that the scheduler would not ask for devices
// is asked only if the answer is quick and cannot be an error.
func (c *Cluster) factsOf(ctx context.Context, d *demand, n *node) (f facts, err error) {
	if err = n.refresh(ctx, c); err != nil {
		return f, err
	}
	f.refusals, f.devices = n.refusals(d, c.deviceResources()), c.devicesOf(d, n)
	if len(f.refusals) == 0 || c.isQuick(d, n) {
		f.asked = true
		f.offer, f.answer = c.askDevices(ctx, d, n)
	}
	var why Reason
	var abort *AbortError
	var shortage *shortageError
	switch {
	case errors.As(f.answer, &abort):
		f.devices = &funnel.Facts{} // the scheduler does not get to the requests
	case errors.As(f.answer, &shortage):
		f.lacking = shortage.lacking
	case errors.Is(f.answer, errCannotAllocate):
		err = c.askTogether(ctx, d, n, f.devices)
	case f.answer != nil && !errors.As(f.answer, &why):
		err = f.answer
	}
	f.takers = c.takersOf(slices.Concat(f.refusals, f.lacking), n, d.pod)
	return f, err
}

// preempts reports whether the pod lacks only resources of the node, and would fit if the
// scheduler preempted all pods of lower priority there.
func (c *Cluster) preempts(d *demand, n *node, f *facts) bool {
	other := func(cause funnel.Cause) bool {
		switch cause.(type) {
		case funnel.TooLittle, funnel.TooManyPods:
			return false
		}
		return true
	}
	never := ptr.Deref(d.pod.Spec.PreemptionPolicy, "") == corev1.PreemptNever
	if never || !f.asked || f.answer != nil || len(f.refusals) == 0 || slices.ContainsFunc(f.refusals, other) {
		return false
	}
	for _, pod := range n.scored.Pods[:n.running] {
		if schedulinghelper.PodPriority(pod) < schedulinghelper.PodPriority(d.pod) {
			takes := requests.Running(pod, c.gates[gateNodeAllocatable])
			n.removePod(takes)
			defer n.addPod(takes)
		}
	}
	return len(n.shortages(d, d.requests, c.deviceResources())) == 0
}

// isQuick reports whether the allocator soon answers yes or no.
func (c *Cluster) isQuick(d *demand, n *node) bool {
	if !d.harmless {
		return false
	}
	_, combinations := c.prospects(d, n)
	return combinations <= quickSearch
}

// devicesOf asks how the node's devices stand to the requests that are not allocated, each
// request alone.
func (c *Cluster) devicesOf(d *demand, n *node) *funnel.Facts {
	view := funnel.View{
		Local: n.Local, State: n.state, Features: c.features, Classes: c.classes, Selectors: c.selectors, Kinds: c.kinds,
		Holds: func() map[allocation.DeviceID][]funnel.Hold { return c.holds(n) },
	}
	return view.Ask(c.unallocated(d, n))
}

// askTogether finds out what does not fit together, if all requests fit alone.
func (c *Cluster) askTogether(ctx context.Context, d *demand, n *node, f *funnel.Facts) (err error) {
	if !f.FitAlone() {
		return nil
	}
	f.Apart = funnel.Together(d.pod, c.unallocated(d, n), func(claims ...*resourceapi.ResourceClaim) bool {
		limited, cancel := context.WithTimeout(ctx, c.atMost(time.Second))
		defer cancel()
		defer c.spent(time.Now())
		allocations, allocateErr := n.allocator.Allocate(limited, n.Node, claims)
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return allocateErr == nil && len(allocations) == len(claims)
	})
	return err
}

// unallocated returns the claims that the allocator would have to allocate.
func (c *Cluster) unallocated(d *demand, n *node) (list []funnel.Claim) {
	for _, used := range d.claims {
		if used.claim.Status.Allocation == nil {
			list = append(list, funnel.Claim{Entry: used.entry, Claim: used.claim})
		}
	}
	if special := c.extendedClaim(d, n); special != nil {
		list = append(list, funnel.Claim{Entry: "extended-resources", Claim: special})
	}
	return list
}

// judge returns what makes the pod not fit on the node. others are about alternatives of
// requests, as those of funnel.Facts.Judge.
func (f *facts) judge() (obstacles, others []funnel.Finding) {
	for _, why := range f.refusals {
		obstacles = append(obstacles, f.judgeNode(why))
	}
	for _, why := range f.lacking {
		found := f.judgeNode(why)
		found.Why = funnel.WithClaims{Cause: why}
		obstacles = append(obstacles, found)
	}
	devices, others := f.devices.Judge()
	var why Reason
	var abort *AbortError
	switch {
	case !f.asked, errors.Is(f.answer, errCannotAllocate):
		return append(obstacles, devices...), others
	case errors.As(f.answer, &abort):
		obstacles = append(obstacles, funnel.Finding{Stage: funnel.StageAbort, Why: abort.cause()})
	case len(f.lacking) == 0 && errors.As(f.answer, &why):
		obstacles = append(obstacles, funnel.Finding{Stage: funnel.StageNode, Why: funnel.Other{Text: string(why)}})
	}
	return obstacles, append(devices, others...)
}

func (f *facts) judgeNode(why funnel.Cause) funnel.Finding {
	found := funnel.Finding{Stage: funnel.StageNode, Why: why}
	if lacks, is := why.(funnel.TooLittle); is {
		found.HeldBy = f.takers[lacks.Resource]
	}
	return found
}

// explain says what the facts mean.
func (f *facts) explain(node string) NodeExplanation {
	obstacles, others := f.judge()
	e := NotOn(node, funnel.Say(obstacles))
	e.Requests = f.devices.SayRequests(append(obstacles, others...))
	e.Feasible = f.asked && len(obstacles) == 0
	return e
}

// reasonFor returns a sentence that says why a node cannot allocate the demand. The
// sentence for a demand stays the same until the holdings change.
func (c *Cluster) reasonFor(ctx context.Context, d *demand, n *node) (string, error) {
	reasons := n.reasonsOf(d)
	if sentence := reasons[d.number]; sentence != "" {
		return sentence, nil
	}
	devices := c.devicesOf(d, n)
	err := c.askTogether(ctx, d, n, devices)
	obstacles, _ := devices.Judge()
	reasons[d.number] = funnel.Say(obstacles[:1])[0].Sentence
	return reasons[d.number], err
}
