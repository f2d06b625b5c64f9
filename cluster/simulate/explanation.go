package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/funnel"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
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
	e := NodeExplanation{Node: node, Obstacles: obstacles}
	if len(obstacles) > 0 {
		first := obstacles[0]
		e.Blocks, e.Request, e.Sentence, e.Hint = first.Stage, first.Request, first.Sentence, first.Hint
	}
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

// unknown says why it is not known where pods fit.
func (c *Cluster) unknown() string {
	return "it is not known on which nodes it fits, because you may not list " + strings.Join(c.hidden, ", ")
}

func (c *Cluster) explainNodes(ctx context.Context, d *demand, e Explanation) (Explanation, error) {
	if len(c.hidden) > 0 {
		e.Sentence = c.unknown()
		e.Scheduler = rejectionOf(d.pod)
		return e, nil
	}
	var offers []offer
	var preempted []string
	for _, n := range c.nodes {
		facts, err := c.factsOf(ctx, d, n)
		if err != nil {
			return e, err
		}
		node := facts.explain(n.Name)
		if node.Feasible {
			offers = append(offers, facts.offer)
		}
		if c.preempts(d, n, &facts) {
			preempted = append(preempted, n.Name)
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
		e.Sentence = "fits on no node: " + string(noNodes)
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
	e.Blocked, e.Notes = e.Node == "", append(e.Notes, d.waits...)
	if e.Blocked && aborts < 0 && len(preempted) > 0 {
		e.Notes = append(e.Notes, fmt.Sprintf("the scheduler may preempt pods of lower priority on %s, which is not simulated", message.First(preempted, 3)))
	}
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
