package simulate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
)

// Feature gates of the scheduler that change placements.
const (
	gateAdminAccess        = "DRAAdminAccess"
	gateCompatibility      = "DRADeviceCompatibilityGroups"
	gateConsumableCapacity = "DRAConsumableCapacity"
	gateDerivedAttributes  = "DRADerivedAttributes"
	gateBindingConditions  = "DRADeviceBindingConditions"
	gateDeviceTaints       = "DRADeviceTaints"
	gateDeviceTaintRules   = "DRADeviceTaintRules"
	gateExtendedResource   = "DRAExtendedResource"
	gateFractionalRange    = "DRAFractionalCapacityRange"
	gateListAttributes     = "DRAListTypeAttributes"
	gateNodeAllocatable    = "DRANodeAllocatableResources"
	gatePartitionable      = "DRAPartitionableDevices"
	gatePrioritizedList    = "DRAPrioritizedList"
	gateDeviceStatus       = "DRAResourceClaimDeviceStatus"
	gateFilterTimeout      = "DRASchedulerFilterTimeout"
)

// gates says which feature gates are on.
type gates map[string]bool

// gatesOf returns the defaults of Kubernetes 1.minor (pkg/features/kube_features.go).
func gatesOf(minor int) gates {
	return gates{
		gateAdminAccess:        true,
		gateCompatibility:      false,
		gateConsumableCapacity: true,
		gateDerivedAttributes:  false,
		gateBindingConditions:  true,
		gateDeviceTaints:       true,
		gateDeviceTaintRules:   minor >= 37, // needs an API that 1.36 does not serve by default
		gateExtendedResource:   true,
		gateFractionalRange:    minor >= 38, // stays off in 1.37 while the minimum compatibility version is 1.36
		gateListAttributes:     false,
		gateNodeAllocatable:    false,
		gatePartitionable:      true,
		gatePrioritizedList:    true,
		gateDeviceStatus:       true,
		gateFilterTimeout:      true,
	}
}

// needs returns the gates that depend on another gate, each with that other gate.
func needs() map[string]string {
	return map[string]string{
		gateBindingConditions: gateDeviceStatus,
		gateCompatibility:     gatePartitionable,
		gateDeviceTaintRules:  gateDeviceTaints,
		gateFractionalRange:   gateConsumableCapacity,
	}
}

// observed returns the gates with the values that a cluster reports. It ignores gates
// that do not change placements.
func (g gates) observed(said map[string]bool) gates {
	g = maps.Clone(g)
	for name := range g {
		if on, known := said[name]; known {
			g[name] = on
		}
	}
	return g
}

// with reads a list in the format of Kubernetes' flag --feature-gates, such as
// "DRAConsumableCapacity=false,DRAListTypeAttributes=true", and returns the gates with it.
// A gate is off if it depends on a gate that is off.
func (g gates) with(list string) (gates, error) {
	g, asked := maps.Clone(g), gates{}
	for part := range strings.SplitSeq(list, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		on, err := strconv.ParseBool(value)
		if err != nil {
			return nil, fmt.Errorf("feature gate %q: want NAME=true or NAME=false", part)
		}
		if _, known := g[name]; !known {
			return nil, fmt.Errorf("feature gate %q is not simulated, allowed are %s", name,
				strings.Join(slices.Sorted(maps.Keys(g)), ", "))
		}
		g[name], asked[name] = on, on
	}
	for gate, needed := range needs() {
		if g[needed] {
			continue
		}
		if asked[gate] {
			return nil, fmt.Errorf("feature gate %s=true needs %s=true", gate, needed)
		}
		g[gate] = false
	}
	return g, nil
}

// features returns the features of the allocator, as the scheduler derives them
// (AllocatorFeatures of its plugin dynamicresources).
func (g gates) features() allocation.Features {
	return allocation.Features{
		AdminAccess:             g[gateAdminAccess],
		CompatibilityGroups:     g[gateCompatibility],
		ConsumableCapacity:      g[gateConsumableCapacity],
		DerivedAttributes:       g[gateDerivedAttributes],
		DeviceBindingAndStatus:  g[gateBindingConditions] && g[gateDeviceStatus],
		DeviceTaints:            g[gateDeviceTaints],
		FractionalCapacityRange: g[gateFractionalRange],
		ListTypeAttributes:      g[gateListAttributes],
		PartitionableDevices:    g[gatePartitionable],
		PrioritizedList:         g[gatePrioritizedList],
	}
}
