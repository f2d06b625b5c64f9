package trial

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/test/scale/shape"
)

// others is the namespace of pods and claims that are there before a trial. They are written as
// the scheduler would have left them, which takes less time than to have it place them.
const others = "others"

// zones is how many of its NUMA nodes the node with this index has that others hold. The first ones
// of all nodes are held before the second one of any.
func (l Load) zones(node, nodes int) int { return (max(l.Fill-node, 0) + nodes - 1) / nodes }

// full is how many of them have no CPUs left.
func (l Load) full(node, nodes int) int {
	if l.Left > 0 {
		return 0
	}
	return l.zones(node, nodes)
}

// fill is what holds NUMA nodes: a pod for each node, and a claim for each NUMA node.
func (c *Cluster) fill(s shape.Shape, load Load) (list []object) {
	for i, node := range c.Nodes {
		zones := load.zones(i, len(c.Nodes))
		if zones == 0 {
			continue
		}
		cpus := 0
		for zone := range zones {
			cpus += c.Machine.Zones[zone].CPUs.Size() - load.Left
			if held := s.Holds(c.Machine, zone, load.Left); held != nil {
				list = append(list, c.allocated(fmt.Sprintf("%s-%d", node, zone), node, held))
			}
		}
		list = append(list, objectOf(c.Client.CoreV1().Pods(others), shape.Filler(node, cpus)))
	}
	return list
}

// allocated is a claim that holds devices of a pool.
func (c *Cluster) allocated(name, pool string, held []shape.Held) object {
	claims, claim := c.Client.ResourceV1().ResourceClaims(others), shape.Allocated(name, pool, held)
	o := objectOf(claims, claim)
	o.create = func(ctx context.Context) error {
		created, err := claims.Create(ctx, claim, metav1.CreateOptions{})
		if err == nil {
			created.Status = claim.Status
			_, err = claims.UpdateStatus(ctx, created, metav1.UpdateOptions{})
		}
		if err != nil {
			return fmt.Errorf("create claim %s and its allocation: %w", name, err)
		}
		return nil
	}
	return o
}

// have has so many claims of another driver in the cluster. They stay there for the next trial, which mostly has as many.
func (c *Cluster) have(ctx context.Context, foreign int) error {
	var calls []call
	for i := min(foreign, c.foreign); i < max(foreign, c.foreign); i++ {
		pool, held := shape.Foreign(i)
		claim := c.allocated(fmt.Sprintf("foreign-%d", i), pool, []shape.Held{held})
		if foreign > c.foreign {
			calls = append(calls, claim.create)
		} else {
			calls = append(calls, claim.remove)
		}
	}
	c.foreign = foreign
	return parallel(ctx, calls)
}
