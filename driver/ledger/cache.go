package ledger

import (
	"fmt"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/caches"
	"github.com/dra-driver-numa/dra-driver-numa/driver/resctrl"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/ways"
)

// CacheShare is what a share holds of a level-3 cache: a class of the kernel with a number
// of ways, and a limit of bandwidth. They are for the CPUs of another share of the claim.
// Which ways these are is not recorded: they may move, and the kernel knows.
type CacheShare struct {
	L3    int    `json:"l3"`    // id of the cache
	Pool  string `json:"pool"`  // ways.Guaranteed, ways.BestEffort or ways.Shared
	Group int    `json:"group"` // number of its group in resctrl
	CPUs  string `json:"cpus"`  // the request, "main" or "main/sub", of the zone whose CPUs have the ways

	Ways             int `json:"ways,omitempty"`             // that the claim always has; 0 in the pool shared
	MaxWays          int `json:"maxWays,omitempty"`          // up to which it grows; 0 except in the pool besteffort
	BandwidthPercent int `json:"bandwidthPercent,omitempty"` // limit of each core; 0 for none
	BandwidthMBps    int `json:"bandwidthMBps,omitempty"`    // limit of the claim; 0 for none

	Before CountedBytes               `json:"before,omitzero"` // what was counted for its group before it was prepared
	Asked  deviceclasses.CacheAmounts `json:"asked,omitzero"`  // amounts that the request named and that were rounded; 0 for those that were not
}

var _ Kind = (*CacheShare)(nil)

// Equal compares every field.
func (c *CacheShare) Equal(other Kind) bool {
	o, same := other.(*CacheShare)
	return same && *c == *o
}

func (c *CacheShare) validate() error {
	if _, _, ok := caches.Parse(c.device()); !ok {
		return fmt.Errorf("cache.pool: %q of cache %d, allowed are %s, %s and %s of a cache from 0", c.Pool, c.L3, ways.Guaranteed, ways.BestEffort, ways.Shared)
	}
	for field, row := range map[string]struct{ value, least, most int }{
		"group":            {c.Group, 0, 1 << 16},
		"ways":             {c.Ways, 0, deviceclasses.MaxWays},
		"maxWays":          {c.MaxWays, 0, deviceclasses.MaxWays},
		"bandwidthPercent": {c.BandwidthPercent, 0, deviceclasses.MaxBandwidthPercent},
		"bandwidthMBps":    {c.BandwidthMBps, 0, deviceclasses.MaxBandwidthMBps},

		"asked.ways":             {c.Asked.Ways, 0, deviceclasses.MaxWays},
		"asked.bandwidthPercent": {c.Asked.BandwidthPercent, 0, deviceclasses.MaxBandwidthPercent},
		"asked.bandwidthMBps":    {c.Asked.BandwidthMBps, 0, deviceclasses.MaxBandwidthMBps},
	} {
		if row.value < row.least || row.value > row.most {
			return fmt.Errorf("cache.%s: %d, allowed are %d to %d", field, row.value, row.least, row.most)
		}
	}
	if shared := c.Pool == ways.Shared; shared != (c.Ways == 0) {
		return fmt.Errorf("cache.ways: %d in the pool %s", c.Ways, c.Pool)
	}
	return nil
}

// GroupName returns the name of its group in resctrl.
func (c *CacheShare) GroupName() string { return resctrl.Name(c.Group) }

// device returns the name of the device of the pool.
func (c *CacheShare) device() string { return fmt.Sprintf("cache-%d-%s", c.L3, c.Pool) }

// excludes reports whether the two need the same masks, and may not have the same.
func (c *CacheShare) excludes(other *CacheShare) bool {
	return c.L3 == other.L3 && c.Group == other.Group && (c.Pool != ways.Shared || other.Pool != ways.Shared)
}

func (c *CacheShare) hold(held *held) (twice string) {
	for _, other := range held.caches {
		if c.excludes(other) {
			twice = c.text()
		}
	}
	held.caches = append(held.caches, c)
	return twice
}

func (c *CacheShare) conflict(other Kind) string {
	if o, same := other.(*CacheShare); same && c.excludes(o) {
		return o.text()
	}
	return ""
}

// text names what conflicts.
func (c *CacheShare) text() string {
	return fmt.Sprintf("class %s of cache %d is", c.GroupName(), c.L3)
}

func (c *CacheShare) honoured(machine *numa.Machine, _ cpuset.Set) bool {
	for i := range machine.L3s {
		if machine.L3s[i].ID == c.L3 {
			return true
		}
	}
	return false
}

// fault is empty: what the kernel makes of the ways is known only where resctrl is read.
func (c *CacheShare) fault(*numa.Machine) string { return "" }

// stray is false: a pool that has become smaller has the same device.
func (c *CacheShare) stray(string, *numa.Machine, []zones.Zone) bool { return false }

func (c *CacheShare) withheld(string) (held []zones.Held, d []resourceapi.Device) { return nil, nil }

func (c *CacheShare) record(share *recordedShare) { share.Cache = c }

func (c *CacheShare) appendText(text []byte) []byte {
	return appendField(text, "cache", c)
}

func (c *CacheShare) spec(bool) cdi.ShareKind { return &cdi.Cache{L3: c.L3} }

func (c *CacheShare) interfaces() []string { return nil }

func (c *CacheShare) cdiDevices(own string) []string { return []string{own} }

func (c *CacheShare) attributes() map[string]resourceapi.DeviceAttribute {
	attributes := make(map[string]resourceapi.DeviceAttribute, 12) // has room for the published ones
	for name, value := range map[string]int{
		"ways": c.Ways, "maxWays": c.MaxWays, string(deviceclasses.CapacityBandwidthPercent): c.BandwidthPercent, string(deviceclasses.CapacityBandwidthMBps): c.BandwidthMBps,
	} {
		if value != 0 {
			attributes[deviceclasses.DriverName+"/"+name] = intAttribute(value)
		}
	}
	return attributes
}

func (c *CacheShare) status() any {
	return deviceclasses.CacheStatus{
		Pool: c.Pool, L3: c.L3, Group: c.GroupName(), Request: c.CPUs, Ways: c.Ways, MaxWays: c.MaxWays,
		BandwidthPercent: c.BandwidthPercent, BandwidthMBps: c.BandwidthMBps, Asked: c.Asked,
	}
}

// Cache is what the share holds of a level-3 cache; nil if the share is of another kind.
func (s Share) Cache() *CacheShare {
	cache, _ := s.Kind.(*CacheShare)
	return cache
}

// CountedBytes is what the kernel has counted for a group in one cache. A counter that did
// not run is 0: the kernel starts it from there.
type CountedBytes struct {
	Total uint64 `json:"total,omitempty"` // from and to any memory
	Local uint64 `json:"local,omitempty"` // from and to the near memory
}

// Most returns the largest number of ways that the claim gets.
func (c *CacheShare) Most() int { return max(c.Ways, c.MaxWays) }
