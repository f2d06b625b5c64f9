package caches

import (
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/ways"
)

// suggestedMembers is how many claims the suggested pool shared can have, as in the example of
// docs/cache.md.
const suggestedMembers = 10

// Suggest returns pools that the caches of a machine have room for, and a zoneBy with which each
// zone is in one cache, if the default is none. The error says why the machine has no caches for
// claims, as that of [Of].
func Suggest(machine *numa.Machine) (settings deviceclasses.NodeSettings, err error) {
	cache, _, err := level3(machine)
	if err != nil {
		return settings, err
	}
	amounts, err := ways.Fit(cache)
	if err != nil {
		return settings, err
	}
	least := max(1, cache.MinBits)
	pools := deviceclasses.CachePools{
		OS:         &deviceclasses.CacheWays{Ways: amounts.OS},
		Guaranteed: &deviceclasses.GuaranteedPool{ExclusivePool: deviceclasses.ExclusivePool{Ways: amounts.Guaranteed}, DefaultWays: max(least, amounts.Guaranteed/3)},
	}
	if amounts.BestEffort > 0 {
		pools.BestEffort = &deviceclasses.BestEffortPool{
			ExclusivePool:  deviceclasses.ExclusivePool{Ways: amounts.BestEffort},
			DefaultMinWays: least, DefaultMaxWays: max(least, amounts.BestEffort/2),
		}
	}
	if amounts.Shared > 0 {
		pools.Shared = &deviceclasses.SharedPool{Ways: amounts.Shared, Members: suggestedMembers}
	}
	settings.Cache = &pools
	if _, err := cachesOfZones(machine, ""); err != nil {
		settings.ZoneBy = deviceclasses.ZoneByL3
	}
	_, err = Of(machine, Settings{ZoneBy: settings.ZoneBy, Pools: pools})
	return settings, err
}
