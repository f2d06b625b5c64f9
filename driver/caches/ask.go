package caches

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
	"github.com/dra-driver-numa/dra-driver-numa/numa/ways"
)

// Ask is what a claim asks for of a cache.
type Ask struct {
	Device string
	Cache  int    // numa.Cache.ID
	Pool   string // ways.Guaranteed, ways.BestEffort or ways.Shared

	// MinWays ≤ MaxWays. They are equal in the pool guaranteed, and 0 in the pool shared,
	// whose claims all have the same ways.
	MinWays, MaxWays int
	// Bandwidth is a limit as [Bandwidth.Round] returns it, 0 for none.
	Bandwidth int
}

// Parse splits the name of a device into the id of the cache and the pool. ok is false if
// Devices does not give this name on any machine.
func Parse(deviceName string) (cache int, pool string, ok bool) {
	rest, isCache := strings.CutPrefix(deviceName, "cache-")
	id, pool, _ := strings.Cut(rest, "-")
	cache, err := strconv.Atoi(id)
	if !isCache || err != nil || strconv.Itoa(cache) != id || !slices.Contains(deviceclasses.ClaimPools(), pool) {
		return 0, "", false
	}
	return cache, pool, true
}

// Ask reads the allocation of a device of a cache. config is what the claim and its
// class configure for the request. A claim may have been allocated when other tools had
// fewer ways, so whether its ways are still there does not matter here. Errors name the
// capacity or the field, the value, and what is allowed.
func (n *Node) Ask(result resourceapi.DeviceRequestAllocationResult, config deviceclasses.CacheConfig) (Ask, error) {
	i := slices.IndexFunc(n.Pools, func(p Pool) bool { return p.Device == result.Device })
	if i < 0 {
		var known []string
		for i := range n.Pools {
			known = append(known, n.Pools[i].Device)
		}
		return Ask{}, fmt.Errorf("no such device, this node has %s", cmp.Or(strings.Join(known, ", "), "no caches"))
	}
	pool := &n.Pools[i]
	given, err := pool.consumed(result.ConsumedCapacity, n.Bandwidth)
	if err != nil {
		return Ask{}, err
	}
	ask := Ask{Device: pool.Device, Cache: pool.Cache, Pool: pool.Name}
	if config.MaxWays != 0 && pool.Name != ways.BestEffort {
		return Ask{}, fmt.Errorf("maxWays: %d, allowed is none in the pool %s", config.MaxWays, pool.Name)
	}
	if pool.Name == ways.Shared {
		return ask, nil
	}
	ask.MinWays = given[deviceclasses.CapacityWays]
	ask.MaxWays = ask.MinWays
	if pool.Name == ways.BestEffort {
		if ask.MaxWays, err = pool.maxWays(ask.MinWays, config.MaxWays); err != nil {
			return Ask{}, err
		}
	}
	if n.Bandwidth != nil {
		if limit := given[n.Bandwidth.Capacity]; limit != 0 && n.Bandwidth.Round(limit) < n.Bandwidth.Max {
			ask.Bandwidth = n.Bandwidth.Round(limit)
		}
	}
	return ask, nil
}

// maxWays returns the maximum of a claim of the pool besteffort. configured is 0 for the
// default of the pool.
func (p *Pool) maxWays(minimum, configured int) (int, error) {
	switch most := p.Mask.Ways(); {
	case configured == 0 && minimum > p.amounts.maxWays:
		return 0, fmt.Errorf("maxWays: the default of the pool %s is %d and the claim has at least %d ways, allowed are %d to %d",
			p.Name, p.amounts.maxWays, minimum, minimum, most)
	case configured == 0:
		return p.amounts.maxWays, nil
	case configured < minimum || configured > most:
		return 0, fmt.Errorf("maxWays: %d, allowed are %d to %d: from the ways that the claim always has to those of the pool %s",
			configured, minimum, most, p.Name)
	}
	return configured, nil
}

// limits are what one claim can have of a capacity.
type limits struct {
	name        resourceapi.QualifiedName
	least, most int
	optional    bool
}

func (p *Pool) limits(b *Bandwidth) []limits {
	if p.Name == ways.Shared {
		return []limits{{deviceclasses.CapacityMembers, 1, 1, false}}
	}
	list := []limits{{deviceclasses.CapacityWays, p.amounts.least, p.Mask.Ways(), false}, {deviceclasses.CapacityClasses, 1, 1, false}}
	if b != nil { // the claim may be older than the limit of bandwidth
		list = append(list, limits{b.Capacity, 1, b.Max, true})
	}
	return list
}

// consumed returns the amounts of an allocation by the names that the device publishes.
// Capacities of other domains mean nothing here.
func (p *Pool) consumed(consumed map[resourceapi.QualifiedName]resource.Quantity, b *Bandwidth) (map[resourceapi.QualifiedName]int, error) {
	known := p.limits(b)
	given := map[resourceapi.QualifiedName]int{}
	for _, spelled := range slices.Sorted(maps.Keys(consumed)) {
		name := spelling.Capacity(deviceclasses.DriverName, spelled)
		if strings.Contains(string(name), "/") {
			continue
		}
		if _, twice := given[name]; twice {
			return nil, fmt.Errorf("consumedCapacity %s: it is there with and without %s/", name, deviceclasses.DriverName)
		}
		i := slices.IndexFunc(known, func(of limits) bool { return of.name == name })
		if i < 0 {
			return nil, fmt.Errorf("consumedCapacity %s: %s has %s", spelled, p.Device, names(known))
		}
		amount, of := consumed[spelled], known[i]
		if !spelling.Countable(amount) || amount.CmpInt64(int64(of.least)) < 0 || amount.CmpInt64(int64(of.most)) > 0 {
			return nil, fmt.Errorf("consumedCapacity %s %q: allowed are %d to %d", name, amount.String(), of.least, of.most)
		}
		given[name] = int(amount.Value())
	}
	for _, of := range known {
		if _, has := given[of.name]; !has && !of.optional {
			return nil, fmt.Errorf("consumedCapacity %s: it is missing, allowed are %d to %d", of.name, of.least, of.most)
		}
	}
	return given, nil
}

// names returns "ways, classes, bandwidthPercent".
func names(list []limits) string {
	var names []string
	for _, of := range list {
		names = append(names, string(of.name))
	}
	return strings.Join(names, ", ")
}
