package quota

import (
	"math/rand/v2"
	"slices"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/probe"
	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
)

// TestExcludedDevicesNeverMatch compares what package probe proves of random selectors with
// what upstream says of published devices.
func TestExcludedDevicesNeverMatch(t *testing.T) {
	t.Logf("seed %d: repeat it with -args -seed %[1]d", *caseSeed)
	w := newWorld(t, *caseSeed)
	w.random = random{rand.New(rand.NewPCG(*caseSeed, 1))}
	excluded, matched := 0, 0
	for range min(*caseCount, 600) {
		n := pick(w.random, w.nodes...)
		expression := n.selector(w.random)
		compiled, err := w.cache.Compile(expression)
		if err != nil {
			t.Fatalf("%s: %v", expression, err)
		}
		possible, err := w.probe.Possible(nil, selecting(expression), nil)
		if err != nil {
			t.Fatalf("%s: %v", expression, err)
		}
		for _, d := range n.devices {
			matches, _, err := compiled.Matches(t.Context(), allocation.NewDevice(d.driver, &d.Device))
			switch {
			case d.isPossible(possible):
				if matches && err == nil {
					matched++
				}
			case matches && err == nil:
				t.Fatalf("seed %d: %s\nselects %s of %s; possible are only %+v", *caseSeed, expression, d.Name, d.driver, possible)
			default:
				excluded++
			}
		}
	}
	t.Logf("%d excluded, %d matched", excluded, matched)
	if min(excluded, matched) < 1000 {
		t.Error("the selectors are too much alike")
	}
}

func (d device) isPossible(possible probe.Possible) bool {
	switch {
	case d.driver != deviceclasses.DriverName:
		return possible.Foreign
	case d.isZone():
		return possible.Zones
	case d.kind() == deviceclasses.KindCache:
		return slices.Contains(possible.Pools, ptr.Deref(deviceclasses.Attribute(d.Attributes, deviceclasses.AttributePool).StringValue, ""))
	}
	return possible.Functions
}
