package kubeletplugin

import (
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

func TestCompareSlices(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*resourceapi.ResourceSlice)
		want   string
	}{
		"same":   {func(*resourceapi.ResourceSlice) {}, ""},
		"shared": {func(s *resourceapi.ResourceSlice) { s.Spec.Devices[0].AllowMultipleAllocations = nil }, gateConsumableCapacity},
		"policy": {func(s *resourceapi.ResourceSlice) {
			s.Spec.Devices[0].Capacity["cpu"] = resourceapi.DeviceCapacity{Value: resource.MustParse("4")}
		}, gateConsumableCapacity},
		"device": {func(s *resourceapi.ResourceSlice) { s.Spec.Devices[0].Name = "numa-7" }, "does not have the current devices of this node yet"},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := wantedSlices(node, driver.Resources(node, testDevices()))
			stored := wanted[0].DeepCopy()
			row.change(stored)
			err := compareSlices(node, wanted, []*resourceapi.ResourceSlice{stored})
			if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("error %v, want %q", err, row.want)
			}
		})
	}
	t.Run("counters", func(t *testing.T) {
		wanted := wantedSlices(node, driver.Resources(node, cardDevices()))
		if len(wanted) != 2 || len(wanted[1].Spec.SharedCounters) != 1 {
			t.Fatalf("%d slices for a function and its virtual one", len(wanted))
		}
		stored := []*resourceapi.ResourceSlice{wanted[0].DeepCopy(), wanted[1].DeepCopy()}
		stored[0].Name, stored[1].Name = "0", "1"
		if err := compareSlices(node, wanted, stored); err != nil {
			t.Error(err)
		}
		stored[1].Spec.SharedCounters = nil
		if err := compareSlices(node, wanted, stored); err == nil || !strings.Contains(err.Error(), "DRAPartitionableDevices") {
			t.Errorf("error without counters: %v", err)
		}
	})
	if err := compareSlices(node, wantedSlices(node, driver.Resources(node, testDevices())), nil); err == nil {
		t.Error("no slices are taken for published ones")
	}
}
