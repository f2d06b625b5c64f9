package simulate

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/funnel"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
)

// taker is a pod on a node, and what it takes of the node.
type taker struct {
	pod     string // namespace/name
	takes   requests.Amounts
	assumed bool // it does not run there yet
}

// takersOf returns the pods that take what the node has too little of for the pod, those that
// take the most first.
func (c *Cluster) takersOf(causes []funnel.Cause, n *node, pod *corev1.Pod) map[corev1.ResourceName][]funnel.Holder {
	holders := make(map[corev1.ResourceName][]funnel.Holder)
	var pods []taker
	for _, cause := range causes {
		lacks, is := cause.(funnel.TooLittle)
		if !is {
			continue
		}
		if pods == nil {
			pods = c.podsOn(n, pod)
		}
		name := lacks.Resource
		slices.SortFunc(pods, func(a, b taker) int {
			return cmp.Or(cmp.Compare(b.takes[name], a.takes[name]), cmp.Compare(a.pod, b.pod))
		})
		for _, p := range pods {
			if amount := p.takes[name]; amount > 0 {
				holders[name] = append(holders[name], funnel.Holder{Resource: string(name), Amount: requests.Text(name, amount), Pods: []string{p.pod}, Assumed: p.assumed})
			}
		}
	}
	return holders
}

func (c *Cluster) podsOn(n *node, asking *corev1.Pod) (pods []taker) {
	for _, pod := range n.scored.Pods[:n.running] {
		pods = append(pods, taker{keyOf(pod).String(), requests.Running(pod, c.gates[gateNodeAllocatable]), false})
	}
	for _, p := range n.placed {
		pods = append(pods, taker{keyOf(p.pod).String(), p.takes, true})
	}
	for _, pod := range n.keptFor(asking) {
		pods = append(pods, taker{keyOf(pod).String(), requests.Waiting(pod), true})
	}
	return pods
}

// holds returns what claims hold of the node's devices, with the pods that use the claims.
func (c *Cluster) holds(n *node) map[allocation.DeviceID][]funnel.Hold {
	all := make(map[allocation.DeviceID][]funnel.Hold)
	for device, list := range c.held.ByDevice(n.Pools) {
		for _, held := range list {
			holder := funnel.Holder{Claim: held.Claim.String()}
			if claim := c.claims[held.Claim]; claim != nil {
				holder.Assumed = len(claim.Status.ReservedFor) > 0
				for _, user := range claim.Status.ReservedFor {
					name := claim.Namespace + "/" + user.Name
					holder.Pods = append(holder.Pods, name)
					holder.Assumed = holder.Assumed && c.assumed[name]
				}
			}
			all[device] = append(all[device], funnel.Hold{Holder: holder, Capacity: held.Capacity})
		}
	}
	return all
}
