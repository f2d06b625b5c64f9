// Package score gives nodes the scores by which the scheduler chooses among those on which
// a pod fits. It has the score plugins of the default profile of Kubernetes 1.37, with
// their default weights and arguments. It does not decide on which nodes a pod fits.
//
// The plugins' own code is not called. It takes pods, Services and controllers from a
// scheduler with its informers, feature gates are global variables there, and the score of
// alternatives is not exported. test/scheduler compares the scores with the choices of the
// real scheduler.
package score

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
)

// highest is the highest score that a plugin gives, before it is weighted (MaxNodeScore).
const highest = 100

// Node is a node as the plugins see it.
type Node struct {
	*corev1.Node
	Allocatable requests.Amounts
	Taken       requests.Amounts // by the pods on the node; the caller changes it
	Pods        []*corev1.Pod    // on the node; Add appends to them

	// scored is cpu and memory of Taken, with defaults for pods that do not request them.
	scored requests.Amounts
	social []socialPod // those of Pods with affinity to other pods, or anti-affinity
	avoids []term      // the required anti-affinity of Pods
}

// NewNode returns a node without pods.
func NewNode(object *corev1.Node, allocatable, taken requests.Amounts) *Node {
	return &Node{Node: object, Allocatable: allocatable, Taken: taken, scored: make(requests.Amounts)}
}

// Add adds a pod to the node. scored is what requests.Scored returns for the pod.
func (n *Node) Add(pod *corev1.Pod, scored requests.Amounts) {
	n.Pods = append(n.Pods, pod)
	for name, amount := range scored {
		n.scored[name] += amount
	}
	if social := newSocialPod(pod); len(social.terms) > 0 {
		n.social = append(n.social, social)
	}
	if affinity := pod.Spec.Affinity; affinity != nil && affinity.PodAntiAffinity != nil {
		for _, required := range affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			n.avoids = append(n.avoids, newTerm(pod, required, 0))
		}
	}
}

// Cluster contains all nodes. Plugins compare the candidates with them.
type Cluster struct {
	nodes  []*Node
	images map[string]image
}

// NewCluster returns a cluster with these nodes.
func NewCluster(nodes []*Node) *Cluster {
	return &Cluster{nodes, imagesOn(nodes)}
}

// Limit returns how many feasible nodes the scheduler looks for, of all that there are. If
// more nodes are feasible, it does not score them (numFeasibleNodesToFind).
func Limit(nodes int) int {
	const least = 100
	percentage := max(50-nodes/125, 5)
	return min(nodes, max(nodes*percentage/100, least))
}

// Candidate is a node on which the pod fits.
type Candidate struct {
	*Node
	Alternatives int64 // what Alternatives returns for the claims that the pod would have there
}

// question is a pod and the nodes to score for it.
type question struct {
	*Cluster
	pod        *corev1.Pod
	candidates []Candidate
	unknown    []string
}

// cannotTell says what a plugin would have to know.
func (q *question) cannotTell(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(q.unknown, text) {
		q.unknown = append(q.unknown, text)
	}
}

// plugin scores nodes.
type plugin struct {
	name   string
	weight int64
	// scores returns a score from 0 to highest for each candidate. It returns nil if the
	// plugin does not score nodes for the pod.
	scores func(*question) []int64
}

// plugins returns the score plugins of the default profile with their weights
// (getDefaultPlugins). VolumeBinding is missing: it needs to know volumes.
func plugins() []plugin {
	return []plugin{
		{"TaintToleration", 3, taintToleration},
		{"NodeAffinity", 2, nodeAffinity},
		{"NodeResourcesFit", 1, leastAllocated},
		{"PodTopologySpread", 2, topologySpread},
		{"InterPodAffinity", 2, interPodAffinity},
		{"DynamicResources", 2, prioritizedList},
		{"NodeResourcesBalancedAllocation", 1, balancedAllocation},
		{"ImageLocality", 1, imageLocality},
	}
}

// Ranking contains the scores of the candidates, in their order.
type Ranking struct {
	Totals []int64
	// Unknown is what plugins would have to know about the pod or other pods, and what the
	// objects do not say. The scores leave it out.
	Unknown []string

	plugins []plugin // those that give a node more than 0
	scores  [][]int64
}

// Score is the score of a node.
type Score struct {
	Total int64 `json:"total"`
	// Plugins are the parts of the total, by the name of the plugin. Plugins that give all
	// nodes 0 are missing.
	Plugins map[string]int64 `json:"plugins"`
}

// Rank scores the candidates for the pod.
func (c *Cluster) Rank(pod *corev1.Pod, candidates []Candidate) Ranking {
	q := &question{Cluster: c, pod: pod, candidates: candidates}
	r := Ranking{Totals: make([]int64, len(candidates))}
	for _, p := range plugins() {
		scores := p.scores(q)
		if len(scores) == 0 || slices.Max(scores) == 0 {
			continue
		}
		for i := range scores {
			scores[i] *= p.weight
			r.Totals[i] += scores[i]
		}
		r.plugins, r.scores = append(r.plugins, p), append(r.scores, scores)
	}
	r.Unknown = q.unknown
	return r
}

// Score returns the score of a candidate with its parts.
func (r *Ranking) Score(candidate int) Score {
	s := Score{r.Totals[candidate], make(map[string]int64, len(r.plugins))}
	for i, p := range r.plugins {
		s.Plugins[p.name] = r.scores[i][candidate]
	}
	return s
}

// each returns a score for each candidate.
func (q *question) each(score func(Candidate) int64) []int64 {
	scores := make([]int64, len(q.candidates))
	for i := range q.candidates {
		scores[i] = score(q.candidates[i])
	}
	return scores
}

// normalize scales scores so that the largest is highest (DefaultNormalizeScore).
func normalize(scores []int64) []int64 {
	if most := slices.Max(scores); most > 0 {
		for i := range scores {
			scores[i] = highest * scores[i] / most
		}
	}
	return scores
}
