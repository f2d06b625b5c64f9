package holdings

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// claim returns a claim and what it holds.
func (inv *inventory) claim(claim *resourceapi.ResourceClaim) Claim {
	c := Claim{
		Namespace: claim.Namespace, Name: claim.Name, Deleting: claim.DeletionTimestamp != nil,
		Allocated: claim.Status.Allocation != nil,
		Users:     []User{}, Requests: requestsOf(claim.Spec.Devices), Constraints: constraintsOf(claim.Spec.Devices),
		Parameters: []string{}, Shares: []Share{},
	}
	for _, reference := range claim.Status.ReservedFor {
		user := User{Resource: reference.Resource, Name: reference.Name}
		if pod := inv.pods[reference.UID]; pod != nil {
			user.Node, user.Phase = pod.Spec.NodeName, string(pod.Status.Phase)
		}
		c.Users = append(c.Users, user)
	}
	if !c.Allocated {
		return c
	}
	devices := claim.Status.Allocation.Devices
	for _, config := range devices.Config {
		if config.Opaque != nil {
			c.Parameters = append(c.Parameters, fmt.Sprintf("%s, from the %s: %s", config.Opaque.Driver, sourceName(config.Source), config.Opaque.Parameters.Raw))
		}
	}
	for i := range devices.Results {
		c.Shares = append(c.Shares, inv.share(claim, &devices.Results[i]))
	}
	return c
}

func sourceName(from resourceapi.AllocationConfigSource) string {
	if from == resourceapi.AllocationConfigSourceClass {
		return "class"
	}
	return "claim"
}

func requestsOf(claim resourceapi.DeviceClaim) []Request {
	list := []Request{}
	add := func(name, class string, mode resourceapi.DeviceAllocationMode, count int64, capacity *resourceapi.CapacityRequirements, selectors []resourceapi.DeviceSelector) *Request {
		r := Request{Name: name, Class: class, Count: max(count, 1)}
		if mode == resourceapi.DeviceAllocationModeAll {
			r.Count = 0
		}
		if capacity != nil {
			r.Capacity = make(map[string]resource.Quantity, len(capacity.Requests))
			for key, amount := range capacity.Requests {
				r.Capacity[string(key)] = amount.DeepCopy()
			}
		}
		for _, selector := range selectors {
			if selector.CEL != nil {
				r.Selectors = append(r.Selectors, selector.CEL.Expression)
			}
		}
		list = append(list, r)
		return &list[len(list)-1]
	}
	for i := range claim.Requests {
		request := &claim.Requests[i]
		if exactly := request.Exactly; exactly != nil {
			add(request.Name, exactly.DeviceClassName, exactly.AllocationMode, exactly.Count, exactly.Capacity, exactly.Selectors).Admin = ptr.Deref(exactly.AdminAccess, false)
		}
		for j := range request.FirstAvailable {
			sub := &request.FirstAvailable[j]
			add(request.Name+"/"+sub.Name, sub.DeviceClassName, sub.AllocationMode, sub.Count, sub.Capacity, sub.Selectors)
		}
	}
	return list
}

func constraintsOf(claim resourceapi.DeviceClaim) []string {
	list := []string{}
	for i := range claim.Constraints {
		constraint := &claim.Constraints[i]
		who := "all requests"
		if len(constraint.Requests) > 0 {
			who = strings.Join(constraint.Requests, ", ")
		}
		if constraint.MatchAttribute != nil {
			list = append(list, fmt.Sprintf("%s: devices with the same %s", who, *constraint.MatchAttribute))
		}
		if constraint.DistinctAttribute != nil {
			list = append(list, fmt.Sprintf("%s: devices that all differ in %s", who, *constraint.DistinctAttribute))
		}
	}
	return list
}

// pending returns the pods that wait for a node and use claims.
func pending(s *snapshot.Snapshot) []Pending {
	list := []Pending{}
	for _, pod := range s.Waiting() {
		if len(pod.Spec.ResourceClaims) == 0 && pod.Status.ExtendedResourceClaimStatus == nil {
			continue
		}
		p := Pending{Namespace: pod.Namespace, Name: pod.Name, Claims: []PodClaim{}}
		for _, claim := range pod.Spec.ResourceClaims {
			name, _, _ := resourceclaim.Name(pod, &claim) // nil if there is no claim yet
			p.Claims = append(p.Claims, PodClaim{claim.Name, ptr.Deref(name, "")})
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
				p.Message = cmp.Or(condition.Message, condition.Reason)
			}
		}
		list = append(list, p)
	}
	return list
}
