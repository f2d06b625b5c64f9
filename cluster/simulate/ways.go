package simulate

import (
	"cmp"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
	"github.com/dra-driver-numa/dra-driver-numa/numa/ways"
)

// Ways is how many ways of a cache a claim of the pool besteffort has.
type Ways struct {
	Min int `json:"min"` // it always has them
	// Reachable is what it has if it starts now: the claims that pods have reserved share the
	// pool. Min ≤ Reachable ≤ Max, or 0 if the objects do not say.
	Reachable int `json:"reachable,omitempty"`
	Max       int `json:"max,omitempty"` // up to which it grows; 0 if the objects do not say
}

// ways returns the ways of a result of a placed claim; nil if it is not of a pool besteffort.
func (c *Cluster) ways(p Placement, placed PlacedClaim, result int) *Ways {
	index, _ := c.find(p.Node)
	n := c.nodes[index]
	given := &placed.Claim.Status.Allocation.Devices.Results[result]
	pool := bestEffortOf(n, given)
	if pool == nil || ptr.Deref(given.AdminAccess, false) {
		return nil
	}
	own := pool.ask(placed.Claim, result)
	w := &Ways{Min: own.Min, Max: own.Max}
	if !placed.isNew || c.partial || pool.grown == 0 {
		return w // others may have come before and after it, are not known, or do not grow
	}
	claims := pool.sharing(c, n, p)
	sizes, err := ways.Area{Usable: 1<<pool.ways - 1, Growing: true}.Sizes(claims)
	if err == nil {
		w.Reachable = sizes[slices.Index(claims, own)]
	}
	return w
}

// bestEffort is a pool besteffort of a cache, as it is published.
type bestEffort struct {
	id    allocation.DeviceID
	ways  int // that claims can have
	grown int // up to which claims grow that name no maximum; 0 if that is not published
}

// bestEffortOf returns the pool of an allocation result; nil if it is none.
func bestEffortOf(n *node, result *resourceapi.DeviceRequestAllocationResult) *bestEffort {
	if result.Driver != deviceclasses.DriverName {
		return nil
	}
	id := allocation.MakeDeviceID(result.Driver, result.Pool, result.Device)
	at := slices.IndexFunc(n.Devices, func(d inventory.Device) bool { return d.ID == id })
	if at < 0 {
		return nil
	}
	value := func(name resourceapi.QualifiedName) resourceapi.DeviceAttribute {
		return deviceclasses.Attribute(n.Devices[at].Attributes, name)
	}
	if ptr.Deref(value(deviceclasses.AttributeKind).StringValue, "") != deviceclasses.KindCache ||
		ptr.Deref(value(deviceclasses.AttributePool).StringValue, "") != deviceclasses.PoolBestEffort {
		return nil
	}
	pool := &bestEffort{id: id}
	for name, capacity := range n.Devices[at].Capacity {
		if amount, is := capacity.Value, spelling.Capacity(result.Driver, name) == deviceclasses.CapacityWays; is && isWays(amount.Value()) {
			pool.ways = int(amount.Value())
		}
	}
	if grown := ptr.Deref(value(deviceclasses.AttributeDefaultMaxWays).IntValue, 0); isWays(grown) {
		pool.grown = int(grown)
	}
	return pool
}

func isWays(number int64) bool { return number >= 1 && number <= deviceclasses.MaxWays }

// sharing returns what claims ask of the pool: those that pods have reserved, and last those
// that were allocated for the placed pod. What another claim does not say makes it unlike any
// that the driver prepares, so Sizes refuses it.
func (b *bestEffort) sharing(c *Cluster, n *node, p Placement) (list []ways.Claim) {
	var claims, last []*resourceapi.ResourceClaim
	for _, placed := range p.Claims {
		if placed.isNew {
			last = append(last, placed.Claim)
		}
	}
	for _, hold := range c.held.ByDevice(n.Pools)[b.id] {
		if claim := c.claims[hold.Claim]; claim != nil && len(claim.Status.ReservedFor) > 0 && !slices.Contains(last, claim) {
			claims = append(claims, claim)
		}
	}
	for _, claim := range append(claims, last...) {
		for i := range claim.Status.Allocation.Devices.Results {
			result := &claim.Status.Allocation.Devices.Results[i]
			if b.id == allocation.MakeDeviceID(result.Driver, result.Pool, result.Device) && !ptr.Deref(result.AdminAccess, false) {
				list = append(list, b.ask(claim, i))
			}
		}
	}
	return list
}

// ask returns what a claim asks of the pool by an allocation result. Its minimum or its
// maximum is 0 if the driver would not prepare it, or the objects do not say.
func (b *bestEffort) ask(claim *resourceapi.ResourceClaim, result int) ways.Claim {
	given := &claim.Status.Allocation.Devices.Results[result]
	ask := ways.Claim{ID: fmt.Sprintf("%s/%d", keyOf(claim), result)}
	if amount := spelling.Amounts(given.Driver, given.ConsumedCapacity)[deviceclasses.CapacityWays]; isWays(amount.Value()) {
		ask.Min = int(amount.Value())
	}
	if prepared := preparedWays(claim, given); prepared != 0 {
		ask.Max = prepared // also if the pool was another one then
		return ask
	}
	class, _ := deviceclasses.RequestOf(claim, given.Request)
	_, config, err := deviceclasses.ConfigOf(given.Request, class, claim.Status.Allocation.Devices.Config)
	if most := cmp.Or(config.Cache.MaxWays, b.grown); err == nil && most >= ask.Min && config.Cache.MaxWays <= b.ways {
		ask.Max = most
	}
	return ask
}

// preparedWays returns up to how many ways the driver lets a claim grow that it has prepared;
// 0 if it has not.
func preparedWays(claim *resourceapi.ResourceClaim, result *resourceapi.DeviceRequestAllocationResult) int {
	for i := range claim.Status.Devices {
		d := &claim.Status.Devices[i]
		if d.Driver != result.Driver || d.Pool != result.Pool || d.Device != result.Device || ptr.Deref(d.ShareID, "") != string(ptr.Deref(result.ShareID, "")) || d.Data == nil {
			continue
		}
		if status, err := deviceclasses.ReadShareStatus(d.Data.Raw); err == nil && status.Cache != nil && isWays(int64(status.Cache.MaxWays)) {
			return status.Cache.MaxWays
		}
	}
	return 0
}
