package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
)

// Stage is a step at which devices drop out, in the order in which they do.
type Stage string

// Stages. StageNode is about the node as a whole, StageTogether about requests
// that could each be met alone.
const (
	StageNode       Stage = "node"
	StageDriver     Stage = "driver"
	StageClass      Stage = "class"
	StageSelector   Stage = "selector"
	StageTaint      Stage = "taint"
	StageInUse      Stage = "inUse"
	StageCapacity   Stage = "capacity"
	StageConstraint Stage = "constraint"
	StageTogether   Stage = "together"
	StageAbort      Stage = "abort"
)

// Explanation is why a pod, or a claim of its own, can or cannot run where.
type Explanation struct {
	Pod   string `json:"pod,omitempty"`   // namespace/name
	Claim string `json:"claim,omitempty"` // namespace/name, if it is about a claim without its pod
	// Node is where the pod would go; "" is nowhere.
	Node string `json:"node,omitempty"`
	// Sentence is the answer.
	Sentence string   `json:"sentence"`
	Hints    []string `json:"hints,omitempty"`
	// Nodes are all there are, by name.
	Nodes []NodeExplanation `json:"nodes"`
}

// SameNodes puts nodes together that differ only in their names, in the order of
// the first of them.
func (e Explanation) SameNodes() (groups [][]NodeExplanation) {
	index := make(map[string]int)
	for _, node := range e.Nodes {
		bare := node
		bare.Node = ""
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

// NodeExplanation is about one node.
type NodeExplanation struct {
	Node     string `json:"node"`
	Feasible bool   `json:"feasible"`
	// Blocks is the first stage that does, Request the first request that it
	// does it to, as claim/request.
	Blocks   Stage  `json:"blocks,omitempty"`
	Request  string `json:"request,omitempty"`
	Sentence string `json:"sentence,omitempty"`
	Hint     string `json:"hint,omitempty"`
	// Requests are in the order in which the allocator meets them. There are
	// none if the node is no place for the pod anyway.
	Requests []RequestExplanation `json:"requests,omitempty"`
}

// RequestExplanation counts the devices that are left for a request, or for one
// alternative of it, after each stage.
type RequestExplanation struct {
	Claim   string `json:"claim"`   // its name in the pod
	Request string `json:"request"` // request, or request/subrequest
	Wanted  int    `json:"wanted"`  // devices
	Devices int    `json:"devices"` // that the node can see
	Left    Left   `json:"left"`
	Blocks  Stage  `json:"blocks,omitempty"`
	// Sentence is about Blocks.
	Sentence string `json:"sentence,omitempty"`

	hint string
}

// Left is how many devices passed each stage and those before it.
type Left struct {
	Driver     int `json:"driver"`
	Class      int `json:"class"`
	Selector   int `json:"selector"`
	Taint      int `json:"taint"`
	InUse      int `json:"inUse"`
	Capacity   int `json:"capacity"`
	Constraint int `json:"constraint"`
}

// ExplainPod says what every node thinks of the pod now. It books nothing.
func (c *Cluster) ExplainPod(ctx context.Context, pod *corev1.Pod) (Explanation, error) {
	e := Explanation{Pod: keyOf(pod).String(), Nodes: []NodeExplanation{}}
	d, err := c.demandOf(pod)
	var why Reason
	if errors.As(err, &why) {
		e.Sentence = string(why)
		return e, nil
	}
	if err != nil {
		return e, err
	}
	return c.explainNodes(ctx, d, e)
}

// ExplainClaim does so for a claim as if a pod had nothing else.
func (c *Cluster) ExplainClaim(ctx context.Context, claim *resourceapi.ResourceClaim) (Explanation, error) {
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = claim.Namespace, claim.Name
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: claim.Name, ResourceClaimName: &claim.Name}}
	e, err := c.ExplainPod(ctx, pod)
	e.Pod, e.Claim = "", e.Pod
	return e, err
}

func (c *Cluster) explainNodes(ctx context.Context, d *demand, e Explanation) (Explanation, error) {
	feasible := 0
	for _, n := range c.nodes {
		node, err := c.explainNode(ctx, d, n)
		if err != nil {
			return e, err
		}
		if node.Feasible {
			if feasible++; e.Node == "" {
				e.Node = n.Name
			}
		}
		e.hint(node.Hint)
		e.Nodes = append(e.Nodes, node)
	}
	aborts := slices.IndexFunc(e.Nodes, func(n NodeExplanation) bool { return n.Blocks == StageAbort })
	switch {
	case aborts >= 0:
		e.Node, e.Sentence = "", fmt.Sprintf("no node can have it, because of %s %s", e.Nodes[aborts].Node, e.Nodes[aborts].Sentence)
	case len(e.Nodes) == 0:
		e.Sentence = "there are no nodes"
	case feasible > 0:
		e.Sentence = fmt.Sprintf("%d of %d nodes can have it, %s is the first", feasible, len(c.nodes), e.Node)
		e.Hints = nil
	case len(c.nodes) == 1:
		e.Sentence = "the only node cannot have it"
		e.hint(initHint(d.pod))
	default:
		e.Sentence = fmt.Sprintf("none of the %d nodes can have it", len(c.nodes))
		e.hint(initHint(d.pod))
	}
	return e, nil
}

// hint adds one that is not there yet.
func (e *Explanation) hint(text string) {
	if text != "" && !slices.Contains(e.Hints, text) {
		e.Hints = append(e.Hints, text)
	}
}

// explainNode asks the node as Place does, and says what is in the way.
func (c *Cluster) explainNode(ctx context.Context, d *demand, n *node) (NodeExplanation, error) {
	_, err := c.ask(ctx, d, n)
	var why Reason
	var abort *AbortError
	switch {
	case err == nil:
		return NodeExplanation{Node: n.Name, Feasible: true, Requests: c.funnels(d, n)}, nil
	case errors.As(err, &abort):
		return NodeExplanation{Node: n.Name, Blocks: StageAbort, Sentence: abort.onNode(), Hint: abort.Hint()}, nil
	case errors.As(err, &why) && why != errCannotAllocate:
		return NodeExplanation{Node: n.Name, Blocks: StageNode, Sentence: string(why)}, nil
	case errors.As(err, &why):
		return c.explainDevices(ctx, d, n)
	}
	return NodeExplanation{}, err
}

// explainDevices is for a node whose devices are what the pod lacks.
func (c *Cluster) explainDevices(ctx context.Context, d *demand, n *node) (NodeExplanation, error) {
	e := NodeExplanation{Node: n.Name, Requests: c.funnels(d, n)}
	if blocked := firstBlocked(e.Requests); blocked != nil {
		e.Blocks, e.Request = blocked.Blocks, blocked.Claim+"/"+blocked.Request
		e.Sentence, e.Hint = blocked.Sentence, blocked.hint
		if base := baseRequest(blocked.Request); base != blocked.Request {
			e.Sentence = fmt.Sprintf("no alternative of request %s can be met; nearest to it, %s", base, blocked.Sentence)
		}
		return e, nil
	}
	var err error
	e.Blocks = StageTogether
	e.Sentence, e.Hint, err = c.explainTogether(ctx, d, n)
	return e, err
}

// firstBlocked is the first request that cannot be met; of one with alternatives
// all have to be blocked, and the one that gets furthest says why.
func firstBlocked(requests []RequestExplanation) *RequestExplanation {
	type name struct{ claim, request string }
	furthest := make(map[name]*RequestExplanation)
	open := make(map[name]bool)
	var order []name
	for i := range requests {
		r := &requests[i]
		id := name{r.Claim, baseRequest(r.Request)}
		if furthest[id] == nil {
			order = append(order, id)
			furthest[id] = r
		}
		open[id] = open[id] || r.Blocks == ""
		if r.Blocks.order() > furthest[id].Blocks.order() {
			furthest[id] = r
		}
	}
	for _, id := range order {
		if !open[id] {
			return furthest[id]
		}
	}
	return nil
}

func (s Stage) order() int {
	return slices.Index([]Stage{
		StageNode, StageDriver, StageClass, StageSelector, StageTaint, StageInUse, StageCapacity, StageConstraint, StageTogether, StageAbort,
	}, s)
}

// reasonFor is the sentence for a node that cannot allocate the demand. The same
// demand has the same one until something is given away.
func (c *Cluster) reasonFor(ctx context.Context, d *demand, n *node) (string, error) {
	reasons := n.reasonsOf(d)
	if sentence := reasons[d.number]; sentence != "" {
		return sentence, nil
	}
	e, err := c.explainDevices(ctx, d, n)
	reasons[d.number] = e.Sentence
	return e.Sentence, err
}
