package holdings

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
)

// share returns one result of an allocation, with what the driver reported about it.
func (inv *inventory) share(claim *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult) Share {
	s := Share{
		Claim: claim.Namespace + "/" + claim.Name, Request: result.Request, Driver: result.Driver, Pool: result.Pool, Device: result.Device,
		ShareID: string(ptr.Deref(result.ShareID, "")), Admin: ptr.Deref(result.AdminAccess, false), Node: inv.nodeOf(result),
	}
	if !s.Admin && len(result.ConsumedCapacity) > 0 {
		s.Amounts = make(map[string]resource.Quantity, len(result.ConsumedCapacity))
		for name, amount := range spelling.Amounts(result.Driver, result.ConsumedCapacity) {
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
