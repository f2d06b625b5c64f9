package manifest

import (
	"errors"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// Cache is a part of the level-3 cache of each share. An amount of 0 is the default of the
// pool.
type Cache struct {
	Class            string
	Ways             int64
	BandwidthPercent int64 // of each core; only one of the two
	BandwidthMBps    int64 // of the share
}

// check refuses what the driver or the scheduler would refuse of the wish with a cache.
func (c *Cache) check(w Wish) error {
	switch {
	case c == nil && isSet(w.Config.Cache):
		return errors.New("maxWays is a setting of a cache: want ways, a bandwidth or a class of caches as well")
	case c == nil:
		return nil
	case w.CPUs == 0:
		return errors.New("a cache is for CPUs: want cpus as well")
	case c.Class == "":
		return errors.New("there is no class for the cache: want a name")
	case c.Ways < 0 || c.Ways > deviceclasses.MaxWays:
		return fmt.Errorf("%d ways: want 1 to %d", c.Ways, deviceclasses.MaxWays)
	case c.BandwidthPercent < 0 || c.BandwidthPercent > deviceclasses.MaxBandwidthPercent:
		return fmt.Errorf("a bandwidth of %d%%: want 1%% to %d%%", c.BandwidthPercent, deviceclasses.MaxBandwidthPercent)
	case c.BandwidthMBps < 0 || c.BandwidthMBps > deviceclasses.MaxBandwidthMBps:
		return fmt.Errorf("a bandwidth of %d MBps: want 1 to %d", c.BandwidthMBps, deviceclasses.MaxBandwidthMBps)
	case c.BandwidthPercent != 0 && c.BandwidthMBps != 0:
		return errors.New("a bandwidth in percent and in MBps: want one of them")
	case len(w.Places) > 0 && w.Parts > 1:
		return fmt.Errorf("a cache with %d parts: a cache is for the CPUs of one NUMA node", w.Parts)
	case c.capacity() == nil:
		return nil
	}
	return w.Config.Cache.CheckRequest("", c.capacity().Requests)
}

// addTo adds a request for a cache for each zone, puts the two into one cache and, if there
// are several zones, says which one the cache is for.
func (c *Cache) addTo(devices *resourceapi.DeviceClaim, zones []string, config deviceclasses.CacheConfig) {
	for i, zone := range zones {
		name := "cache"
		if len(zones) > 1 {
			name, config.CPUs = fmt.Sprintf("cache-%d", i), zone
		}
		if isSet(config) {
			config.TypeMeta = typeOf(deviceclasses.CacheConfigKind)
			devices.Config = append(devices.Config, resourceapi.DeviceClaimConfiguration{Requests: []string{name}, DeviceConfiguration: opaque(config)})
		}
		devices.Requests = append(devices.Requests, resourceapi.DeviceRequest{
			Name: name, Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: c.Class, Capacity: c.capacity()},
		})
		devices.Constraints = append(devices.Constraints, resourceapi.DeviceConstraint{Requests: []string{zone, name}, MatchAttribute: new(deviceclasses.FullName(deviceclasses.AttributeL3))})
	}
}

// capacity is nil if the pool decides everything.
func (c *Cache) capacity() *resourceapi.CapacityRequirements {
	requests := map[resourceapi.QualifiedName]resource.Quantity{}
	for name, amount := range map[resourceapi.QualifiedName]int64{
		deviceclasses.CapacityWays:             c.Ways,
		deviceclasses.CapacityBandwidthPercent: c.BandwidthPercent,
		deviceclasses.CapacityBandwidthMBps:    c.BandwidthMBps,
	} {
		if amount != 0 {
			requests[name] = *resource.NewQuantity(amount, resource.DecimalSI)
		}
	}
	if len(requests) == 0 {
		return nil
	}
	return &resourceapi.CapacityRequirements{Requests: requests}
}
