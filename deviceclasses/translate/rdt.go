package translate

import (
	"errors"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/manifest"
)

// cacheWays is the extended resource of the RMD operator: the most ways of a container.
const cacheWays corev1.ResourceName = "intel.com/l3_cache_ways"

// Annotations of the RMD operator, after the name of the container. Its README has a table
// of them.
const (
	rmdMin        = "_cache_min"
	rmdPolicy     = "_policy"
	rmdRatio      = "_pstate_ratio" // of branch misses
	rmdMonitoring = "_pstate_monitoring"
	rmdPercentage = "_mba_percentage"
	rmdMBps       = "_mba_mbps"
)

// rmdAnnotations are those that change the claim.
var rmdAnnotations = []string{rmdMin, rmdPolicy, rmdPercentage, rmdMBps}

// Classes of the pools of caches.
const (
	guaranteedClass = "gold.dra.numa"
	bestEffortClass = "silver.dra.numa"
	sharedClass     = "bronze.dra.numa"
)

// takeCache adds what the RMD operator would give the container. As there, annotations
// count only for a container that asks for ways.
func (t *translation) takeCache(container *corev1.Container, wish *manifest.Wish) error {
	ways, has := container.Resources.Limits[cacheWays]
	if !has {
		return nil
	}
	delete(container.Resources.Limits, cacheWays)
	delete(container.Resources.Requests, cacheWays)
	said := func(suffix string) (string, bool) {
		value, has := t.pod.Annotations[container.Name+suffix]
		return value, has && value != ""
	}
	number := func(suffix string, most int64) (int64, error) {
		value, has := said(suffix)
		if !has {
			return 0, nil
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 || n > most {
			return 0, fmt.Errorf("annotation %s: %q, allowed are 0 to %d", container.Name+suffix, value, most)
		}
		return n, nil
	}
	most := ways.Value()
	if most < 0 || most > deviceclasses.MaxWays {
		return fmt.Errorf("%s: %d, allowed are 0 to %d", cacheWays, most, deviceclasses.MaxWays)
	}
	least, err := number(rmdMin, most)
	if err != nil {
		return err
	}
	cache := &manifest.Cache{Class: sharedClass}
	switch {
	case most > 0 && least == most:
		cache.Class, cache.Ways = guaranteedClass, most
	case most > 0:
		cache.Class, cache.Ways, wish.Config.Cache.MaxWays = bestEffortClass, least, int(most)
	}
	if policy, has := said(rmdPolicy); has {
		classes := map[string]string{"gold": guaranteedClass, "silver": bestEffortClass, "bronze": sharedClass}
		class, known := classes[policy]
		if !known {
			return fmt.Errorf("annotation %s: %q, allowed are gold, silver, bronze", container.Name+rmdPolicy, policy)
		}
		// A policy decides all numbers of the cache.
		*cache, wish.Config.Cache = manifest.Cache{Class: class}, deviceclasses.CacheConfig{}
	}
	if cache.BandwidthPercent, err = number(rmdPercentage, deviceclasses.MaxBandwidthPercent); err != nil {
		return err
	}
	if cache.BandwidthMBps, err = number(rmdMBps, deviceclasses.MaxBandwidthMBps); err != nil {
		return err
	}
	if cache.Class == sharedClass && cache.BandwidthPercent+cache.BandwidthMBps > 0 {
		return errors.New("a bandwidth is only for ways of its own, and the container shares its ways")
	}
	t.ways = most
	wish.Cache, wish.Config.Cache.CPUs = cache, container.Name
	_, ratio := said(rmdRatio)
	if _, monitored := said(rmdMonitoring); ratio || monitored {
		t.note(container, "has no frequency that follows its branch misses, as its P-state annotations want: a PerformanceConfig has fixed limits")
	}
	return nil
}
