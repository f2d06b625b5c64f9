package simulate

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
)

// Evict changes the cluster as if a running pod was deleted. The node gets back what the
// pod took. Claims that no other pod uses are no longer allocated. restore undoes the
// change. Undo evictions in reverse order, and before anything else changes the cluster.
func (c *Cluster) Evict(pod *corev1.Pod) (restore func()) {
	var undo []func()
	if i, found := c.find(pod.Spec.NodeName); found {
		n, taken := c.nodes[i], requests.Running(pod, c.gates[gateNodeAllocatable])
		n.removePod(taken)
		undo = append(undo, func() { n.addPod(taken) })
	}
	for _, claim := range c.usedBy(pod) {
		key := keyOf(claim)
		left := claim.DeepCopy()
		left.Status.ReservedFor = slices.DeleteFunc(left.Status.ReservedFor, func(user resourceapi.ResourceClaimConsumerReference) bool {
			return user.UID == pod.UID
		})
		freed := len(left.Status.ReservedFor) == 0
		if freed {
			c.held.Remove(claim)
			left.Status.Allocation = nil
		}
		c.claims[key] = left
		undo = append(undo, func() {
			c.claims[key] = claim
			if freed {
				c.held.Add(claim, c.features.ConsumableCapacity)
			}
		})
	}
	return func() {
		for _, f := range slices.Backward(undo) {
			f()
		}
	}
}

// usedBy returns the claims that are reserved for the pod.
func (c *Cluster) usedBy(pod *corev1.Pod) (list []*resourceapi.ResourceClaim) {
	if c.users == nil {
		c.users = make(map[types.NamespacedName][]types.NamespacedName)
		for key, claim := range c.claims {
			for _, user := range claim.Status.ReservedFor {
				name := types.NamespacedName{Namespace: key.Namespace, Name: user.Name}
				c.users[name] = append(c.users[name], key)
			}
		}
	}
	for _, key := range c.users[keyOf(pod)] {
		if resourceclaim.IsReservedForPod(pod, c.claims[key], false) {
			list = append(list, c.claims[key])
		}
	}
	return list
}

// Feasible returns the names of the nodes on which the pod fits now, sorted. If
// nodeName is not "", it asks only that node. Feasible changes nothing. The error is a
// Reason if the pod has to wait on every node, and an *AbortError if the scheduler
// would give up on it.
func (c *Cluster) Feasible(ctx context.Context, pod *corev1.Pod, nodeName string) (names []string, err error) {
	d, err := c.demandOf(pod)
	if err != nil {
		return nil, err
	}
	nodes := c.nodes
	if nodeName != "" {
		i, found := c.find(nodeName)
		if !found {
			return nil, reason("there is no Node %q", nodeName)
		}
		nodes = nodes[i : i+1]
	}
	for _, n := range nodes {
		_, err := c.ask(ctx, d, n)
		var why Reason
		switch {
		case errors.As(err, &why):
		case err != nil:
			return nil, err
		default:
			names = append(names, n.Name)
		}
	}
	return names, nil
}
