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

// Gates says which feature gates are on.
type Gates map[string]bool

// DefaultGates returns the defaults of Kubernetes 1.37 (pkg/features/kube_features.go).
func DefaultGates() Gates {
	return Gates{
		gateAdminAccess:        true,
		gateCompatibility:      false,
		gateConsumableCapacity: true,
		gateDerivedAttributes:  false,
		gateBindingConditions:  true,
		gateDeviceTaints:       true,
		gateDeviceTaintRules:   true,
		gateExtendedResource:   true,
		gateFractionalRange:    false, // stays off while the minimum compatibility version is 1.36
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

// Observed returns the gates with the values that a cluster reports. It ignores gates
// that do not change placements.
func (g Gates) Observed(said map[string]bool) Gates {
	gates := maps.Clone(g)
	for name := range gates {
		if on, known := said[name]; known {
			gates[name] = on
		}
	}
	return gates
}

// ParseGates reads a list in the format of Kubernetes' flag --feature-gates, such as
// "DRAConsumableCapacity=false,DRAListTypeAttributes=true", and applies it to base. A
// gate is off if it depends on a gate that is off.
func ParseGates(text string, base Gates) (Gates, error) {
	gates, asked := maps.Clone(base), Gates{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		on, err := strconv.ParseBool(value)
		if err != nil {
			return nil, fmt.Errorf("feature gate %q: want NAME=true or NAME=false", part)
		}
		if _, known := gates[name]; !known {
			return nil, fmt.Errorf("feature gate %q is not simulated, allowed are %s", name,
				strings.Join(slices.Sorted(maps.Keys(gates)), ", "))
		}
		gates[name], asked[name] = on, on
	}
	for gate, needed := range needs() {
		if gates[needed] {
			continue
		}
		if asked[gate] {
			return nil, fmt.Errorf("feature gate %s=true needs %s=true", gate, needed)
		}
		gates[gate] = false
	}
	return gates, nil
}

// features returns the features of the allocator, as the scheduler derives them
// (AllocatorFeatures of its plugin dynamicresources).
func (g Gates) features() allocation.Features {
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
