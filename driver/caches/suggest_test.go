package caches

import (
	"errors"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

// What is suggested is valid in a NodeConfig, and the machine publishes all of it.
func TestSuggestedPoolsFit(t *testing.T) {
	divided := 0
	sample.Each(t, func(t *testing.T, machine numa.Machine) {
		settings, err := Suggest(&machine)
		if errors.Is(err, ErrNotSupported) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		divided++
		if err := settings.Cache.Validate(); err != nil {
			t.Errorf("%+v: %v", settings.Cache, err)
		}
		node, err := Of(&machine, Settings{ZoneBy: settings.ZoneBy, Pools: *settings.Cache})
		if err != nil || len(node.Pools) != 3*len(machine.L3s) {
			t.Errorf("%d pools of %d caches, %v", len(node.Pools), len(machine.L3s), err)
		}
		if _, byNode := Of(&machine, Settings{Pools: *settings.Cache}); (byNode == nil) != (settings.ZoneBy == "") {
			t.Errorf("zoneBy is %q; without it: %v", settings.ZoneBy, byNode)
		}
	})
	if divided < 2 {
		t.Errorf("%d machines divide their caches: not much of a test", divided)
	}
}

// The numbers are those that a cache of 15 ways takes, of which devices use 2.
func TestSuggestedPoolsOfFifteenWays(t *testing.T) {
	machine := twoCaches(t)
	machine.Resctrl = &numa.Resctrl{Caches: []numa.CacheAllocation{{Name: "L3", CLOSIDs: 16, Mask: 0x7fff, MinBits: 1, ShareableMask: 0x6000}}}
	settings, err := Suggest(&machine)
	if err != nil {
		t.Fatal(err)
	}
	c := settings.Cache
	if c.OS.Ways != 1 || c.Guaranteed.Ways != 7 || c.Guaranteed.DefaultWays != 2 || c.BestEffort.Ways != 5 || c.BestEffort.DefaultMaxWays != 2 || c.Shared.Ways != 2 {
		t.Errorf("os %+v, guaranteed %+v, besteffort %+v, shared %+v", c.OS, c.Guaranteed, c.BestEffort, c.Shared)
	}
	machine.Resctrl = nil
	if _, err := Suggest(&machine); !errors.Is(err, ErrNotSupported) {
		t.Errorf("without resctrl: %v", err)
	}
}
