package kubeletplugin

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/resourceslice"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

const gateConsumableCapacity = "DRAConsumableCapacity"

// droppedError says that the API server does not store fields that the driver needs,
// and which feature gates it needs to store them.
type droppedError struct {
	pool  string
	gates []string
}

func (e *droppedError) Error() string {
	return fmt.Sprintf("API server drops fields of the ResourceSlices of pool %s: turn on the feature gate %s of kube-apiserver and kube-scheduler",
		e.pool, strings.Join(e.gates, " and "))
}

// wantedSlices returns the ResourceSlices that the API server should have after
// publishing.
func wantedSlices(nodeName string, resources resourceslice.DriverResources) []*resourceapi.ResourceSlice {
	pool := resources.Pools[nodeName]
	var wanted []*resourceapi.ResourceSlice
	for _, slice := range pool.Slices {
		wanted = append(wanted, &resourceapi.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "rehearsal-"},
			Spec: resourceapi.ResourceSliceSpec{
				Driver:   driver.Name,
				NodeName: &nodeName,
				Pool: resourceapi.ResourcePool{
					Name: nodeName, Generation: 1, ResourceSliceCount: int64(len(pool.Slices)),
				},
				Devices:        slice.Devices,
				SharedCounters: slice.SharedCounters,
			},
		})
	}
	return wanted
}

// compareSlices returns how the stored slices differ from the wanted ones, or nil. The
// stored slices may be in any order and have several generations.
func compareSlices(pool string, wanted, stored []*resourceapi.ResourceSlice) error {
	stored = slices.Clone(stored)
	// Names begin with the index of the slice in its pool.
	slices.SortFunc(stored, func(a, b *resourceapi.ResourceSlice) int { return strings.Compare(a.Name, b.Name) })
	if len(stored) != len(wanted) {
		return fmt.Errorf("pool %s has %d ResourceSlices instead of %d", pool, len(stored), len(wanted))
	}
	for i := range wanted {
		if stored[i].Spec.Pool.Generation != stored[0].Spec.Pool.Generation {
			return fmt.Errorf("pool %s has ResourceSlices of several generations", pool)
		}
		if err := compareSlice(pool, wanted[i], stored[i]); err != nil {
			return err
		}
	}
	return nil
}

func compareSlice(pool string, wanted, stored *resourceapi.ResourceSlice) error {
	if resourceslice.DevicesDeepEqual(wanted.Spec.Devices, stored.Spec.Devices) &&
		equality.Semantic.DeepEqual(wanted.Spec.SharedCounters, stored.Spec.SharedCounters) {
		return nil
	}
	dropped := resourceslice.DroppedFieldsError{PoolName: pool, DesiredSlice: wanted, ActualSlice: stored}
	gates := dropped.DisabledFeatures()
	if !slices.Contains(gates, gateConsumableCapacity) && policyLost(wanted, stored) {
		gates = append(gates, gateConsumableCapacity)
	}
	if len(gates) > 0 {
		return &droppedError{pool: pool, gates: gates}
	}
	return fmt.Errorf("pool %s: ResourceSlice %s does not have the current devices of this node yet", pool, stored.Name)
}

// policyLost reports whether a capacity lost its request policy. A claim that does not
// ask for that capacity would then get all of it.
func policyLost(wanted, stored *resourceapi.ResourceSlice) bool {
	devices := min(len(wanted.Spec.Devices), len(stored.Spec.Devices))
	for i := range devices {
		for name, capacity := range wanted.Spec.Devices[i].Capacity {
			now, ok := stored.Spec.Devices[i].Capacity[name]
			if ok && capacity.RequestPolicy != nil && now.RequestPolicy == nil {
				return true
			}
		}
	}
	return false
}
