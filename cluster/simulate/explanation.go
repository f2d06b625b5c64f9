package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/funnel"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
)

// Explanation says on which nodes a pod, or a claim without its pod, fits, and why not on
// the others.
type Explanation struct {
	Pod   string `json:"pod,omitempty"`   // namespace/name
	Claim string `json:"claim,omitempty"` // namespace/name, if this is about a claim without its pod
	// Workload is set if the question was about a workload. Pod is then one of its pods
	// that does not run, or one as its template makes it, or "" if all run.
	Workload *Workload `json:"workload,omitempty"`
	// Node is where the pod would go; "" means nowhere.
	Node string `json:"node,omitempty"`
	// Choice is why it would go there, if several nodes are feasible. It is empty for a
	// claim without its pod, and if something is unseen.
	Choice
	// Blocked says that something keeps the pod, the claim or the workload's pods from
	// getting a node or from starting. It is false for a pod that has ended or is being
	// deleted.
	Blocked bool `json:"blocked"`
	// Sentence is the answer. It comes after the name of the pod or claim.
	Sentence string   `json:"sentence"`
	Hints    []string `json:"hints,omitempty"`
	// Scheduler is what the scheduler said at its last attempt. It is there only if
	// something is unseen, and the answer does not say why the pod does not fit.
	Scheduler string `json:"scheduler,omitempty"`
	// Unseen is what the reader of the cluster may not list. There may be more obstacles
	// than the answer has.
	Unseen []string `json:"unseen,omitempty"`
	// Notes say what the answer does not consider.
	Notes []string `json:"notes,omitempty"`
	// Assumed are pods without a node that are placed before this pod, as the scheduler
	// would. What they would take is not free for this pod.
	Assumed []Placed `json:"assumed,omitempty"`
	// Nodes are all nodes, sorted by name.
	Nodes []NodeExplanation `json:"nodes"`
}

// SameNodes groups nodes that differ only in their names, and in who holds what is
// missing. The groups are in the order of their first nodes.
func (e Explanation) SameNodes() (groups [][]NodeExplanation) {
	index := make(map[string]int)
	for _, node := range e.Nodes {
		bare := node
		bare.Node, bare.Obstacles = "", slices.Clone(node.Obstacles)
		for i := range bare.Obstacles {
			bare.Obstacles[i].HeldBy = nil
		}
		key := fmt.Sprintf("%+v", bare)
		i, known := index[key]
		if !known {
			i = len(groups)
			index[key] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], node)
	}
	return groups
}

// NodeExplanation is the answer for one node.
type NodeExplanation struct {
	Node     string `json:"node"`
	Feasible bool   `json:"feasible"`
	// Blocks is the first stage that blocks. Request is the first request that this
	// stage blocks, as claim/request. These and the next two are those of the first
	// obstacle.
	Blocks   funnel.Stage `json:"blocks,omitempty"`
	Request  string       `json:"request,omitempty"`
	Sentence string       `json:"sentence,omitempty"`
	Hint     string       `json:"hint,omitempty"`
	// Obstacles are all that has to change, in the order of the stages. There are none
	// if the pod fits.
	Obstacles []funnel.Obstacle `json:"obstacles,omitempty"`
	// Requests are in the order in which the allocator tries them.
	Requests []funnel.Request `json:"requests,omitempty"`
}

// NotOn is the answer for a node with obstacles.
func NotOn(node string, obstacles []funnel.Obstacle) NodeExplanation {
	e := NodeExplanation{Node: node}
	e.add(obstacles...)
	return e
}

// Workload is a controller of pods, and why it has not created all of them.
type Workload struct {
	Kind     string `json:"kind"`
	Name     string `json:"name"`     // namespace/name
	Sentence string `json:"sentence"` // comes after kind and name
	// Obstacles are what the controller says of its pods, if some are missing.
	Obstacles []funnel.Obstacle `json:"obstacles,omitempty"`
}

// ExplainPod asks every node about the pod. It changes nothing.
func (c *Cluster) ExplainPod(ctx context.Context, pod *corev1.Pod) (Explanation, error) {
	return c.explain(ctx, pod, Explanation{Pod: keyOf(pod).String(), Nodes: []NodeExplanation{}})
}

func (c *Cluster) explain(ctx context.Context, pod *corev1.Pod, e Explanation) (Explanation, error) {
	d, err := c.demandOf(pod)
	var why Reason
	if errors.As(err, &why) {
		e.Blocked, e.Sentence = true, string(why)
		return e, nil
	}
	if err != nil {
		return e, err
	}
	return c.explainNodes(ctx, d, e)
}

// ExplainClaim asks every node about a claim, as if a pod had only this claim.
func (c *Cluster) ExplainClaim(ctx context.Context, claim *resourceapi.ResourceClaim) (Explanation, error) {
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = claim.Namespace, claim.Name
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: claim.Name, ResourceClaimName: &claim.Name}}
	return c.explain(ctx, pod, Explanation{Claim: keyOf(claim).String(), Nodes: []NodeExplanation{}})
}

func (c *Cluster) explainNodes(ctx context.Context, d *demand, e Explanation) (Explanation, error) {
	if len(c.hidden) > 0 {
		e.Sentence = "it is not known on which nodes it fits, because you may not list " + strings.Join(c.hidden, ", ")
		e.Scheduler = rejectionOf(d.pod)
		return e, nil
	}
	var offers []offer
	for _, n := range c.nodes {
		node, offered, err := c.explainNode(ctx, d, n)
		if err != nil {
			return e, err
		}
		if node.Feasible {
			offers = append(offers, offered)
		}
		for _, obstacle := range node.Obstacles {
			if node.Blocks != funnel.StageNode || obstacle.Stage != funnel.StageDriver { // such a node may have no driver on purpose
				e.hint(obstacle.Hint)
			}
		}
		e.Nodes = append(e.Nodes, node)
	}
	aborts := slices.IndexFunc(e.Nodes, func(n NodeExplanation) bool { return n.Blocks == funnel.StageAbort })
	switch {
	case aborts >= 0:
		e.Node, e.Sentence = "", fmt.Sprintf("fits on no node: on node %s, %s", e.Nodes[aborts].Node, e.Nodes[aborts].Sentence)
	case len(e.Nodes) == 0:
		e.Sentence = "fits on no node: the cluster has no nodes"
	case len(offers) > 0:
		c.chooseFor(d, offers, &e)
		e.Hints = nil
		switch {
		case c.partial:
			e.Sentence, e.Scheduler = "may fit"+strings.TrimPrefix(e.Sentence, "fits"), rejectionOf(d.pod)
		case rejectionOf(d.pod) != "":
			e.hint(againHint)
		}
	case len(c.nodes) == 1:
		e.Sentence = "does not fit on the only node"
		e.hint(funnel.InitHint(d.pod))
	default:
		e.Sentence = fmt.Sprintf("does not fit on any of the %d nodes", len(c.nodes))
		e.hint(funnel.InitHint(d.pod))
	}
	e.Blocked = e.Node == ""
	return e, nil
}

// GivesUp returns why the scheduler gives up on the pod, or nil if it does not. Such a pod
// gets no node, even if it fits on other nodes.
func (e Explanation) GivesUp() *funnel.Obstacle {
	for _, node := range e.Nodes {
		if node.Blocks == funnel.StageAbort {
			return &node.Obstacles[0]
		}
	}
	return nil
}

// againHint is for a pod that would get a node if the scheduler tried again. According
// to the code of Kubernetes 1.37 (GatherAllocatedState), the scheduler can count a
// claim twice against a shared device while the claim is both in flight and in its cache.
const againHint = "the scheduler rejected the pod at its last attempt: it tries again when something changes, and at the latest after 5 minutes"

// rejectionOf returns why the scheduler rejected the pod at its last attempt, or "".
func rejectionOf(pod *corev1.Pod) string {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse && condition.Reason == corev1.PodReasonUnschedulable {
			return cmp.Or(condition.Message, condition.Reason)
		}
	}
	return ""
}

// hint adds a hint, unless the explanation already has it.
func (e *Explanation) hint(text string) {
	if text != "" && !slices.Contains(e.Hints, text) {
		e.Hints = append(e.Hints, text)
	}
}

// explainNode lists what makes the pod not fit on the node. A node that the scheduler
// would not ask for devices is asked only if the answer is quick and cannot be an error.
func (c *Cluster) explainNode(ctx context.Context, d *demand, n *node) (NodeExplanation, offer, error) {
	refusals := n.refusals(d, c.deviceResources())
	e := NodeExplanation{Node: n.Name}
	e.add(c.refused("", refusals, n)...)
	if err := n.refresh(ctx, c); err != nil {
		return e, offer{}, err
	}
	requests, obstacles := c.requestsOf(d, n)
	e.Requests = requests
	if len(refusals) > 0 && !c.isQuick(d, n) {
		e.add(obstacles...)
		return e, offer{}, nil
	}
	offered, err := c.askDevices(ctx, d, n)
	var why Reason
	var abort *AbortError
	var shortage *shortageError
	switch {
	case err == nil:
	case errors.As(err, &abort):
		e.Requests = nil
		e.add(funnel.Obstacle{Stage: funnel.StageAbort, Sentence: abort.reasonOnNode(), Hint: abort.Hint()})
	case errors.As(err, &shortage):
		e.add(c.refused("with the devices of its claims, ", shortage.lacking, n)...)
	case errors.As(err, &why) && why != errCannotAllocate:
		e.add(funnel.Obstacle{Stage: funnel.StageNode, Sentence: string(why)})
	case errors.As(err, &why):
		err := c.addDevices(ctx, d, n, &e, obstacles)
		return e, offer{}, err
	default:
		return e, offer{}, err
	}
	e.Feasible = len(e.Obstacles) == 0
	return e, offered, nil
}

// isQuick reports whether the allocator soon answers yes or no.
func (c *Cluster) isQuick(d *demand, n *node) bool {
	if !d.harmless {
		return false
	}
	_, combinations := c.prospects(d, n)
	return combinations <= quickSearch
}

// add adds obstacles. The first of them is that of the node.
func (e *NodeExplanation) add(obstacles ...funnel.Obstacle) {
	e.Obstacles = append(e.Obstacles, obstacles...)
	if len(e.Obstacles) > 0 {
		first := e.Obstacles[0]
		e.Blocks, e.Request, e.Sentence, e.Hint = first.Stage, first.Request, first.Sentence, first.Hint
	}
}

// requestsOf returns the requests of the claims that are not allocated, and the obstacles
// of each request alone.
func (c *Cluster) requestsOf(d *demand, n *node) ([]funnel.Request, []funnel.Obstacle) {
	requests, obstacles := c.view(n).Requests(c.unallocated(d, n))
	c.addUsers(obstacles)
	return requests, obstacles
}

// addDevices adds why the devices of a node are not enough: the obstacles of each request
// alone or, if there are none, what does not fit together.
func (c *Cluster) addDevices(ctx context.Context, d *demand, n *node, e *NodeExplanation, alone []funnel.Obstacle) (err error) {
	if e.add(alone...); len(alone) > 0 {
		return nil
	}
	sentence, hint := funnel.Together(d.pod, c.unallocated(d, n), func(claims ...*resourceapi.ResourceClaim) bool {
		limited, cancel := context.WithTimeout(ctx, c.atMost(time.Second))
		defer cancel()
		defer c.spent(time.Now())
		allocations, allocateErr := n.allocator.Allocate(limited, n.Node, claims)
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return allocateErr == nil && len(allocations) == len(claims)
	})
	e.add(funnel.Obstacle{Stage: funnel.StageTogether, Sentence: sentence, Hint: hint})
	return err
}

// view returns the node in the form that package funnel needs.
func (c *Cluster) view(n *node) *funnel.View {
	return &funnel.View{
		Local: n.Local, State: n.state, Features: c.features, Classes: c.classes, Selectors: c.selectors, Kinds: c.kinds,
		Holds: sync.OnceValue(func() map[structured.DeviceID][]inventory.Hold { return c.held.ByDevice(n.Pools) }),
	}
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

// reasonFor returns a sentence that says why a node cannot allocate the demand. The
// sentence for a demand stays the same until the holdings change.
func (c *Cluster) reasonFor(ctx context.Context, d *demand, n *node) (string, error) {
	reasons := n.reasonsOf(d)
	if sentence := reasons[d.number]; sentence != "" {
		return sentence, nil
	}
	var e NodeExplanation
	_, alone := c.requestsOf(d, n)
	err := c.addDevices(ctx, d, n, &e, alone)
	reasons[d.number] = e.Sentence
	return e.Sentence, err
}
