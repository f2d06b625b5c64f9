package simulate

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/funnel"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
)

// refused returns the refusals of a node as obstacles, with the pods that take what is
// missing. The prefix comes before each sentence.
func (c *Cluster) refused(prefix string, refusals []refusal, n *node) (list []funnel.Obstacle) {
	var pods []placedPod
	for _, r := range refusals {
		o := funnel.Obstacle{Stage: funnel.StageNode, Sentence: prefix + r.text}
		if r.resource != "" {
			if pods == nil {
				pods = c.podsOn(n)
			}
			o.HeldBy = takersOf(r.resource, pods, n.running)
		}
		list = append(list, o)
	}
	return list
}

// podsOn returns the pods on the node, those of the snapshot first.
func (c *Cluster) podsOn(n *node) (pods []placedPod) {
	for _, pod := range n.scored.Pods[:n.running] {
		pods = append(pods, placedPod{pod, requests.Running(pod, c.gates[gateNodeAllocatable])})
	}
	return append(pods, n.placed...)
}

// takersOf returns the pods that take the resource, those that take the most first. Only
// the first of the pods run; the others are assumed to.
func takersOf(resource corev1.ResourceName, pods []placedPod, running int) (takers []funnel.Holder) {
	order := make([]int, len(pods))
	for i := range pods {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(pods[b].takes[resource], pods[a].takes[resource]), cmp.Compare(keyOf(pods[a].pod).String(), keyOf(pods[b].pod).String()))
	})
	for _, i := range order {
		if amount := pods[i].takes[resource]; amount > 0 {
			takers = append(takers, funnel.Holder{
				Resource: string(resource), Amount: requests.Text(resource, amount), Pods: []string{keyOf(pods[i].pod).String()}, Assumed: i >= running,
			})
		}
	}
	return takers
}

// addUsers adds to holders of devices the pods that use their claims.
func (c *Cluster) addUsers(obstacles []funnel.Obstacle) {
	for _, o := range obstacles {
		for i := range o.HeldBy {
			h := &o.HeldBy[i]
			claim := c.claims[h.ClaimName()]
			if claim == nil {
				continue
			}
			h.Assumed = len(claim.Status.ReservedFor) > 0
			for _, user := range claim.Status.ReservedFor {
				name := claim.Namespace + "/" + user.Name
				h.Pods = append(h.Pods, name)
				h.Assumed = h.Assumed && c.assumed[name]
			}
		}
	}
}
