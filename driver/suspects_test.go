package driver

import (
	"fmt"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// deviceSlice is a slice of a driver that has one device.
func deviceSlice(driver string, device resourceapi.Device) *resourceapi.ResourceSlice {
	return &resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{Driver: driver, Devices: []resourceapi.Device{device}}}
}

// slotDevice is a time slot on a CPU.
func slotDevice(prefix string, cpu int64) resourceapi.Device {
	return resourceapi.Device{Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
		resourceapi.QualifiedName(prefix + "core"): {IntValue: &cpu}, resourceapi.QualifiedName(prefix + "slotIndex"): {IntValue: ptr.To[int64](0)},
	}}
}

func TestSuspects(t *testing.T) {
	shared := func(shares *bool, capacity resourceapi.QualifiedName) resourceapi.Device {
		return resourceapi.Device{AllowMultipleAllocations: shares, Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{capacity: {}}}
	}
	core := slotDevice("", 3)
	delete(core.Attributes, "slotIndex")
	yes := ptr.To(true)
	for name, row := range map[string]struct {
		all  []*resourceapi.ResourceSlice
		want string
	}{
		"the example driver": {[]*resourceapi.ResourceSlice{deviceSlice("cpu.example.com", shared(yes, "cpu.example.com/cpu"))}, "cpu.example.com: a capacity of CPUs that claims share"},
		"with another name":  {[]*resourceapi.ResourceSlice{deviceSlice("a.example.com", shared(yes, "cpus"))}, "a.example.com: a capacity of CPUs that claims share"},
		"whole devices":      {[]*resourceapi.ResourceSlice{deviceSlice("gpu.example.com", shared(nil, "gpu.example.com/cpu"))}, ""},
		"another capacity":   {[]*resourceapi.ResourceSlice{deviceSlice("gpu.example.com", shared(yes, "memory"))}, ""},
		"a known driver":     {[]*resourceapi.ResourceSlice{deviceSlice("balloons.nri.io", shared(yes, "cpu"))}, ""},
		"ours":               {[]*resourceapi.ResourceSlice{deviceSlice(Name, shared(yes, "cpu"))}, ""},
		"named":              {[]*resourceapi.ResourceSlice{deviceSlice("named.example.com", shared(yes, "cpu"))}, ""},
		"proven by a second slice": {[]*resourceapi.ResourceSlice{
			deviceSlice("cores.example.com", shared(yes, "cpu")), rivalSlice("cores.example.com", "cpu"),
		}, ""},
		"time slots": {[]*resourceapi.ResourceSlice{
			deviceSlice("time-share.example.com", slotDevice("", 3)), deviceSlice("time-share.example.com", slotDevice("time-share.example.com/", 2)),
		}, "time-share.example.com: time slots of CPUs 2-3"},
		"time slots of a reserved CPU": {[]*resourceapi.ResourceSlice{deviceSlice("time-share.example.com", slotDevice("", 0))}, ""},
		"of CPUs that cannot be":       {[]*resourceapi.ResourceSlice{deviceSlice("t.example.com", slotDevice("", -1)), deviceSlice("t.example.com", slotDevice("", cpuset.MaxCPUs))}, ""},
		"of another domain":            {[]*resourceapi.ResourceSlice{deviceSlice("t.example.com", slotDevice("other.example.com/", 3))}, ""},
		"a core only":                  {[]*resourceapi.ResourceSlice{deviceSlice("cores.example.com", core)}, ""},
		"both": {[]*resourceapi.ResourceSlice{
			deviceSlice("b.example.com", slotDevice("", 3)), deviceSlice("a.example.com", shared(yes, "cpu")), deviceSlice("b.example.com", shared(yes, "cpu")),
		}, "a.example.com: a capacity of CPUs that claims share; b.example.com: a capacity of CPUs that claims share, and time slots of CPUs 3"},
	} {
		config := testConfig()
		config.Reserved, config.CPUDrivers = cpuset.New(0), []string{"named.example.com"}
		d, err := newDisk(t).tryRead(config)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, suspect := range d.Suspects(row.all) {
			got = append(got, fmt.Sprintf("%s: %s", suspect.Driver, suspect))
		}
		if text := strings.Join(got, "; "); text != row.want {
			t.Errorf("%s: %q, want %q", name, text, row.want)
		}
	}
}
