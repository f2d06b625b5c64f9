package driver

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"
)

// rivalSlice has a device that maps a capacity to these resources of the node.
func rivalSlice(driver string, mapped ...corev1.ResourceName) *resourceapi.ResourceSlice {
	device := resourceapi.Device{
		Name: "d", Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"cpu": {}, "memory": {}, "gpu.example.com/cpu": {}},
		NodeAllocatableResources: map[corev1.ResourceName]resourceapi.NodeAllocatableResource{"cpu": {Overhead: &resourceapi.NodeAllocatableOverhead{}}},
	}
	for _, name := range mapped {
		device.NodeAllocatableResources[name] = resourceapi.NodeAllocatableResource{Mapping: &resourceapi.NodeAllocatableMapping{}}
	}
	return &resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{Driver: driver, Devices: []resourceapi.Device{{Name: "first"}, device}}}
}

func TestRivals(t *testing.T) {
	empty := rivalSlice("dra.cpu")
	empty.Spec.Devices = nil
	shared := func(driver string, capacity resourceapi.QualifiedName) *resourceapi.ResourceSlice {
		slice := rivalSlice(driver)
		slice.Spec.Devices[1].AllowMultipleAllocations = ptr.To(true)
		slice.Spec.Devices[1].Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{capacity: {}}
		return slice
	}
	for name, row := range map[string]struct {
		slice *resourceapi.ResourceSlice
		want  Rival
	}{
		"ours":                        {rivalSlice(Name, "cpu", "memory"), Rival{}},
		"dra.cpu":                     {rivalSlice("dra.cpu"), Rival{CPUs: true}},
		"dra.cpu without devices":     {empty, Rival{}},
		"dra.memory":                  {rivalSlice("dra.memory"), Rival{Memory: true}},
		"another driver of CPUs":      {rivalSlice("cores.example.com", "cpu"), Rival{CPUs: true}},
		"of hugepages":                {rivalSlice("pages.example.com", "hugepages-1Gi"), Rival{Memory: true}},
		"of both":                     {rivalSlice("all.example.com", "cpu", "memory"), Rival{true, true}},
		"a GPU with cores and memory": {rivalSlice("gpu.example.com"), Rival{}},
		"balloons":                    {rivalSlice("balloons.nri.io"), Rival{CPUs: true}},
		"topology-aware":              {rivalSlice("topology-aware.nri.io"), Rival{CPUs: true}},
		"another policy":              {shared("template.nri.io", "template.nri.io/cpus"), Rival{CPUs: true}},
		"a policy with a bare name":   {shared("template.nri.io", "cpu"), Rival{CPUs: true}},
		"a policy of caches":          {shared("caches.nri.io", "ways"), Rival{}},
		"a policy of whole devices":   {rivalSlice("template.nri.io"), Rival{}},
		"an example of shared CPUs":   {shared("cpu.example.com", "cpu.example.com/cpu"), Rival{}},
		"storage":                     {rivalSlice("disk.example.com", "ephemeral-storage"), Rival{}},
	} {
		if got := RivalOf(row.slice); got != row.want {
			t.Errorf("%s: %+v, want %+v", name, got, row.want)
		}
	}
}

func TestZonesWithoutMemoryKeepTheirCPUsAndGroups(t *testing.T) {
	machine := testMachine()
	all := Devices(machine, Config{Exclusivity: ExclusivityKernel, Gates: Gates{NodeAllocatable: true}, Groups: []string{"kafka"}}, nil)
	function := resourceapi.Device{Name: "gpu", Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"memory": {}}}
	before := make([]resourceapi.Device, len(all))
	for i := range all {
		all[i].DeepCopyInto(&before[i])
	}
	got := WithoutMemory(append(all, function))
	names := map[string]bool{}
	for _, device := range got {
		names[device.Name] = true
		if device.Name == "gpu" {
			continue
		}
		capacities, mapped := slices.Sorted(maps.Keys(device.Capacity)), slices.Collect(maps.Keys(device.NodeAllocatableResources))
		if !cmp.Equal(capacities, []resourceapi.QualifiedName{"cpu", "groupKafka"}) || !cmp.Equal(mapped, []corev1.ResourceName{"cpu"}) {
			t.Errorf("device %s has capacities %v, mapped are %v", device.Name, capacities, mapped)
		}
	}
	if want := (map[string]bool{"numa-0": true, "numa-1": true, "gpu": true}); !cmp.Equal(names, want) {
		t.Errorf("devices %v, want %v", names, want)
	}
	if diff := cmp.Diff(before, all); diff != "" {
		t.Errorf("the devices were changed: %s", diff)
	}
}
