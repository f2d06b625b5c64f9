package holdings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/internal/capacity"
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

// share returns one result of an allocation, with what the driver reported about it.
func (inv *inventory) share(claim *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult) Share {
	s := Share{
		Claim: claim.Namespace + "/" + claim.Name, Request: result.Request, Driver: result.Driver, Pool: result.Pool, Device: result.Device,
		ShareID: string(ptr.Deref(result.ShareID, "")), Admin: ptr.Deref(result.AdminAccess, false), Node: inv.nodeOf(result),
	}
	if !s.Admin && len(result.ConsumedCapacity) > 0 {
		s.Amounts = make(map[string]resource.Quantity, len(result.ConsumedCapacity))
		for name, amount := range capacity.Amounts(result.Driver, result.ConsumedCapacity) {
			s.Amounts[string(name)] = amount.DeepCopy()
		}
	}
	at := slices.IndexFunc(claim.Status.Devices, func(d resourceapi.AllocatedDeviceStatus) bool {
		return d.Driver == result.Driver && d.Pool == result.Pool && d.Device == result.Device && ptr.Deref(d.ShareID, "") == s.ShareID
	})
	if at < 0 {
		return s
	}
	status := &claim.Status.Devices[at]
	s.Reported = true
	for _, c := range status.Conditions {
		s.Conditions = append(s.Conditions, Condition{c.Type, string(c.Status), c.Reason, c.Message})
	}
	if result.Driver == deviceclasses.DriverName && status.Data != nil {
		s.read(status.Data.Raw)
	}
	return s
}

// read reads what the driver reported about the share. It ignores a document that it
// cannot decode, because the author of the claim may have written it.
func (s *Share) read(document []byte) {
	status, err := deviceclasses.ReadShareStatus(document)
	if err != nil {
		return
	}
	s.Function, s.Cache = status.Function, status.Cache
	if zone := status.Zone; zone != nil {
		s.CPUs, s.Mems, s.IdleCPUs = &zone.CPUs, &zone.Mems, zone.IdleCPUs
		s.Partition, s.Scope, s.Mixed, s.Why = zone.Partition, zone.Scope, zone.Mixed, zone.Why
		s.Performance = zone.Performance
		if zone.Mixed {
			s.SharedCPUs = &zone.SharedCPUs
		}
	}
}

// nodeOf returns the node of a device. This is the node of its slice. For this driver,
// it is otherwise the name of the pool, because the driver names its pools after their
// nodes. For other drivers, it is otherwise the node of the pool.
func (inv *inventory) nodeOf(result *resourceapi.DeviceRequestAllocationResult) string {
	pool := poolID{result.Driver, result.Pool}
	if e := inv.devices[deviceID{pool, result.Device}]; e != nil {
		return e.node
	}
	if result.Driver == deviceclasses.DriverName {
		return result.Pool
	}
	return inv.poolNodes[pool]
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
