package driver

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/caches"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/ways"
)

// cacheWish is the part of a cache that was allocated to a claim.
type cacheWish struct {
	result resourceapi.DeviceRequestAllocationResult
	asked  map[resourceapi.QualifiedName]resource.Quantity // that the request of the claim names
	class  string                                          // of the request
	known  *ledger.CacheShare                              // what is on record for the request; nil for nothing

	ask    caches.Ask
	unit   resourceapi.QualifiedName // of ask.Bandwidth
	config deviceclasses.CacheConfig
	cpus   string // the request for the zone whose CPUs get the ways
}

// cacheWish reads the allocation of a device of a cache.
func (p *planner) cacheWish(claim *resourceapi.ResourceClaim, result resourceapi.DeviceRequestAllocationResult) cacheWish {
	w := cacheWish{result: result}
	w.class, w.asked = askedOf(claim, result.Request)
	recorded, _ := p.grants.Find(claim.UID)
	for _, share := range recorded.Shares {
		if share.Request == result.Request && share.Device == result.Device {
			w.known = share.Cache()
		}
	}
	return w
}

// askedOf returns the DeviceClass of a request of a claim, and the capacities that it names,
// as devices publish them.
func askedOf(claim *resourceapi.ResourceClaim, request string) (class string, asked map[resourceapi.QualifiedName]resource.Quantity) {
	class, requirements := deviceclasses.RequestOf(claim, request)
	if requirements == nil {
		return class, nil
	}
	asked = make(map[resourceapi.QualifiedName]resource.Quantity)
	for spelled, amount := range requirements.Requests {
		asked[spelling.Capacity(Name, spelled)] = amount
	}
	return class, asked
}

// configured accepts a claim that has its ways already, whatever became of the pools.
func (w cacheWish) configured(p *planner, _, config deviceclasses.RequestConfig) (wanted, error) {
	w.config = config.Cache
	if err := w.config.CheckRequest(w.class, w.asked); err != nil && w.known == nil {
		return w, err
	}
	node, err := p.dividing.Current().Get()
	if err == nil {
		w.ask, err = node.Ask(w.result, w.config)
		if node.Bandwidth != nil {
			w.unit = node.Bandwidth.Capacity
		}
	}
	if err != nil && w.known != nil {
		w.ask = caches.Ask{Device: w.result.Device, Cache: w.known.L3, Pool: w.known.Pool, MinWays: w.known.Ways, MaxWays: w.known.Most()}
		err = nil
	}
	return w, err
}

func (w cacheWish) refreshed(_ *planner, _ types.UID, _ wish, kind ledger.Kind) (ledger.Kind, error) {
	return kind, nil
}

func (w cacheWish) fulfilledBy(kind ledger.Kind) bool {
	share, same := kind.(*ledger.CacheShare)
	return same && share.L3 == w.ask.Cache && share.Pool == w.ask.Pool && share.Ways == w.ask.MinWays
}

// plan leaves the group open: chooseGroups chooses it.
func (w cacheWish) plan(*planner, types.UID, wish, cpuset.Set) (ledger.Kind, error) {
	share := &ledger.CacheShare{L3: w.ask.Cache, Pool: w.ask.Pool, CPUs: w.cpus, Ways: w.ask.MinWays}
	if w.ask.Pool == ways.BestEffort {
		share.MaxWays = w.ask.MaxWays
	}
	if w.unit == deviceclasses.CapacityBandwidthMBps {
		share.BandwidthMBps = w.ask.Bandwidth
	} else {
		share.BandwidthPercent = w.ask.Bandwidth
	}
	share.Asked = w.rounded(share)
	return share, nil
}

// rounded returns the amounts that the request names and that the share does not have: the
// scheduler and the kernel round them up. A limit of all of the bandwidth is none.
func (w cacheWish) rounded(share *ledger.CacheShare) (asked deviceclasses.CacheAmounts) {
	differs := func(name resourceapi.QualifiedName, given, most int) int {
		amount, named := w.asked[name]
		if value := int(amount.Value()); named && value != given && (given != 0 || value < most) {
			return value
		}
		return 0
	}
	if w.ask.Pool != ways.Shared {
		asked.Ways = differs(deviceclasses.CapacityWays, share.Ways, 0)
		asked.BandwidthPercent = differs(deviceclasses.CapacityBandwidthPercent, share.BandwidthPercent, deviceclasses.MaxBandwidthPercent)
		asked.BandwidthMBps = differs(deviceclasses.CapacityBandwidthMBps, share.BandwidthMBps, deviceclasses.MaxBandwidthMBps)
	}
	return asked
}

// pairCaches finds the CPUs that each part of a cache is for.
func (p *planner) pairCaches(wishes []wish) error {
	var zoneRequests, withoutCPUs []string
	for _, wish := range wishes {
		if zone, isZone := wish.wanted.(zoneWish); isZone && zone.cpus > 0 {
			zoneRequests = append(zoneRequests, wish.request)
		} else if isZone {
			withoutCPUs = append(withoutCPUs, wish.request)
		}
	}
	if len(zoneRequests) == 0 {
		zoneRequests = withoutCPUs
	}
	paired := make(map[string]string) // request for a cache by that for a zone
	for i := range wishes {
		want, isCache := wishes[i].wanted.(cacheWish)
		if !isCache || wishes[i].admin {
			continue
		}
		cpus, err := want.config.ZoneRequest(zoneRequests)
		if err == nil {
			err = p.checkPair(want, cpus, wishes)
		}
		if other, twice := paired[cpus]; err == nil && twice {
			err = fmt.Errorf("cpus: %q, but request %s is for the same CPUs: a claim has ways of one cache for each request for a zone", cpus, other)
		}
		if err != nil && want.known == nil {
			return fmt.Errorf("request %s: %w", wishes[i].request, err)
		}
		paired[cpus] = wishes[i].request
		want.cpus = cpus
		wishes[i].wanted = want
	}
	return nil
}

// checkPair refuses CPUs that the ways cannot be for: those of each result of the request
// have to be CPUs of the cache.
func (p *planner) checkPair(want cacheWish, cpus string, wishes []wish) error {
	node, err := p.dividing.Current().Get()
	if err != nil {
		return err
	}
	for i := range wishes {
		zone, isZone := wishes[i].wanted.(zoneWish)
		if wishes[i].request != cpus || !isZone {
			continue
		}
		switch cache, lies := node.Zones[zone.zone.Device]; {
		case wishes[i].admin:
			return fmt.Errorf("request %s has admin access, and no CPUs: a cache is for CPUs of the same claim", cpus)
		case zone.cpus == 0:
			return fmt.Errorf("request %s has no CPUs: a cache is for CPUs of the same claim", cpus)
		case !lies:
			return fmt.Errorf("%s has ways of cache %d, but zone %s of request %s does not lie in one level-3 cache",
				want.ask.Device, want.ask.Cache, zone.zone.Device, cpus)
		case cache != want.ask.Cache:
			return fmt.Errorf("%s has ways of cache %d, but the CPUs of request %s are in cache %d: add the constraint matchAttribute %s for both requests",
				want.ask.Device, want.ask.Cache, cpus, cache, deviceclasses.FullName(deviceclasses.AttributeL3))
		}
	}
	return nil
}

// chooseGroups gives each part of a cache of a new grant its group.
func (p *planner) chooseGroups(grant *ledger.Grant, wishes []wish) error {
	var own, held []caches.Use
	for _, other := range p.grants {
		if other.UID != grant.UID {
			held = appendUses(held, &other.Grant)
		}
	}
	for i := range grant.Shares {
		share := grant.Shares[i].Cache()
		if share == nil {
			continue
		}
		node, err := p.dividing.Current().Get()
		if err != nil {
			return err
		}
		want, joined := wishes[i].wanted.(cacheWish), grant.Joins(share)
		if share.Group, err = node.GroupFor(want.ask, joined, own, held); err != nil {
			return fmt.Errorf("request %s: %w", wishes[i].request, err)
		}
		own = append(own, caches.Use{Key: caches.Key{Cache: want.ask.Cache, Group: share.Group}, Joined: joined})
		share.Before = p.dividing.CountedBytes(share)
	}
	return nil
}

// appendUses appends the groups that a grant has.
func appendUses(list []caches.Use, grant *ledger.Grant) []caches.Use {
	for _, share := range grant.Shares {
		if cache := share.Cache(); cache != nil {
			list = append(list, caches.Use{Key: caches.Key{Cache: cache.L3, Group: cache.Group}, Joined: grant.Joins(cache)})
		}
	}
	return list
}
