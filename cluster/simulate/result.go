package simulate

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// Result says what happened to all pods that had no node.
type Result struct {
	Pods          []Placed        `json:"pods"`
	Unschedulable []Unschedulable `json:"unschedulable"`
	// Aborted are the pods of Unschedulable on which the scheduler gives up.
	Aborted []*AbortError `json:"-"`
}

// Placed is a pod with a node.
type Placed struct {
	Pod           string   `json:"pod"` // namespace/name
	Node          string   `json:"node"`
	FeasibleNodes []string `json:"feasibleNodes"` // sorted by name; only Node if not all nodes were asked
	Claims        []Claim  `json:"claims"`
	Choice

	pod *corev1.Pod // as the scheduler leaves it, but without the node
}

// Claim is a claim that a pod uses.
type Claim struct {
	Name        string       `json:"name"`
	PodClaim    string       `json:"podClaim,omitempty"` // name in the pod; "" for extended resources
	Allocations []Allocation `json:"allocations"`
}

// Allocation is a device, or a share of a device.
type Allocation struct {
	Request          string                                          `json:"request"`
	Driver           string                                          `json:"driver"`
	Pool             string                                          `json:"pool"`
	Device           string                                          `json:"device"`
	ShareID          string                                          `json:"shareID,omitempty"`
	ConsumedCapacity map[resourceapi.QualifiedName]resource.Quantity `json:"consumedCapacity,omitempty"`
	AdminAccess      bool                                            `json:"adminAccess,omitempty"`
	Ways             *Ways                                           `json:"ways,omitempty"` // of a cache, in the pool besteffort
}

// Unschedulable is a pod without a node.
type Unschedulable struct {
	Pod     string    `json:"pod"`
	Reasons []Refusal `json:"reasons"`
}

// Run places the pods one after the other. A later pod cannot get what an earlier pod
// got.
func (c *Cluster) Run(ctx context.Context, pods []*corev1.Pod, o Options) (Result, error) {
	result := Result{Pods: []Placed{}, Unschedulable: []Unschedulable{}}
	for i, pod := range pods {
		placement, err := c.Place(ctx, pod, o)
		if err != nil {
			return Result{}, err
		}
		name := keyOf(pod).String()
		if placement.Node == "" {
			result.Unschedulable = append(result.Unschedulable, Unschedulable{name, placement.Refusals})
		} else {
			result.Pods = append(result.Pods, Placed{name, placement.Node, placement.Feasible, c.claimsOf(placement), placement.Choice, placement.bound})
		}
		if placement.Aborted != nil {
			result.Aborted = append(result.Aborted, placement.Aborted)
		}
		if o.Progress != nil {
			o.Progress(i+1, len(pods))
		}
	}
	return result, nil
}

func (c *Cluster) claimsOf(p Placement) []Claim {
	list := []Claim{}
	for _, placed := range p.Claims {
		claim := Claim{placed.Claim.Name, placed.Entry, []Allocation{}}
		for i, result := range placed.Claim.Status.Allocation.Devices.Results {
			claim.Allocations = append(claim.Allocations, Allocation{
				Request: result.Request, Driver: result.Driver, Pool: result.Pool, Device: result.Device,
				ShareID:          string(ptr.Deref(result.ShareID, "")),
				ConsumedCapacity: result.ConsumedCapacity,
				AdminAccess:      ptr.Deref(result.AdminAccess, false),
				Ways:             c.ways(p, placed, i),
			})
		}
		list = append(list, claim)
	}
	return list
}
