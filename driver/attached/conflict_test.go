package attached

import (
	"slices"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	samples "github.com/dra-driver-numa/dra-driver-numa/test/sample"
)

const here = "node-1"

// published is a slice of a driver with one device at an address.
func published(driver, node, address string, change ...func(*resourceapi.ResourceSlice)) *resourceapi.ResourceSlice {
	slice := &resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{
		Driver: driver, NodeName: &node,
		Devices: []resourceapi.Device{{Name: "theirs", Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
			deviceclasses.AttributePCIBusID: {StringValue: &address},
		}}, {Name: "bare"}},
	}}
	for _, change := range change {
		change(slice)
	}
	return slice
}

// publishers returns the driver of the slice by the addresses that it publishes here.
func publishers(slice *resourceapi.ResourceSlice) map[string]string {
	drivers := map[string]string{}
	for _, address := range Addresses(here, slice) {
		drivers[address] = slice.Spec.Driver
	}
	return drivers
}

// under publishes the address under another key than the standard one.
func under(key resourceapi.QualifiedName) func(*resourceapi.ResourceSlice) {
	return func(slice *resourceapi.ResourceSlice) {
		attributes := slice.Spec.Devices[0].Attributes
		attributes[key] = attributes[deviceclasses.AttributePCIBusID]
		delete(attributes, deviceclasses.AttributePCIBusID)
	}
}

func TestWhatAnotherDriverPublishesIsLeftOut(t *testing.T) {
	perDevice := func(node string) func(*resourceapi.ResourceSlice) {
		return func(slice *resourceapi.ResourceSlice) {
			slice.Spec.NodeName, slice.Spec.Devices[0].NodeName = nil, &node
		}
	}
	machine := samples.Machine(t, "intel-2s") // a8:00.0 is a card, 3b:00.1 one with virtual functions from 3b:01.2 to 3b:01.5
	for name, row := range map[string]struct {
		slice *resourceapi.ResourceSlice
		want  string // devices that are left out
	}{
		"the same function":             {published("dra.net", here, "0000:a8:00.0"), "nic-0000-a8-00-0"},
		"in capitals":                   {published("dra.net", here, "0000:A8:00.0"), "nic-0000-a8-00-0"},
		"on another node":               {published("dra.net", "node-2", "0000:a8:00.0"), ""},
		"this driver":                   {published(deviceclasses.DriverName, here, "0000:a8:00.0"), ""},
		"a node for each device":        {published("dra.net", "", "0000:a8:00.0", perDevice(here)), "nic-0000-a8-00-0"},
		"another node for each device":  {published("dra.net", "", "0000:a8:00.0", perDevice("node-2")), ""},
		"a virtual function":            {published("sriov", here, "0000:3b:01.3"), "nic-0000-3b-01-3 nic-0000-3b-00-1"},
		"the physical one":              {published("dra.net", here, "0000:3b:00.1"), "nic-0000-3b-01-2 nic-0000-3b-01-3 nic-0000-3b-01-4 nic-0000-3b-01-5 nic-0000-3b-00-1"},
		"dranet":                        {published("dra.net", here, "0000:a8:00.0", under("dra.net/pciAddress")), "nic-0000-a8-00-0"},
		"dranet without its name":       {published("dra.net", here, "0000:a8:00.0", under("pciAddress")), "nic-0000-a8-00-0"},
		"AMD's driver":                  {published("gpu.amd.com", here, "0000:a8:00.0", under("gpu.amd.com/pciAddr")), "nic-0000-a8-00-0"},
		"AMD's driver without its name": {published("gpu.amd.com", here, "0000:a8:00.0", under("pciAddr")), "nic-0000-a8-00-0"},
		"the SR-IOV driver":             {published("sriovnetwork.k8snetworkplumbingwg.io", here, "0000:a8:00.0", under("pciAddress")), "nic-0000-a8-00-0"},
		"no address":                    {published("dra.net", here, "0000:a8:00.0 cpus"), ""},
		"the key of another driver":     {published("gpu.example.com", here, "0000:a8:00.0", under("pciAddr")), ""},
		"a function that is not chosen": {published("gpu.nvidia.com", here, "0000:17:00.0"), ""},
	} {
		devices := Devices(machine, selected(t, deviceclasses.DeviceSelection{Presets: []string{"nic", "vf"}}))
		zone := resourceapi.Device{Name: "numa-0"}
		kept, conflicts := WithoutConflicts(machine, append([]resourceapi.Device{zone}, devices...), publishers(row.slice))
		var left []string
		for _, conflict := range conflicts {
			left = append(left, conflict.Device)
		}
		if got := strings.Join(left, " "); got != row.want || kept[0].Name != "numa-0" || len(kept)+len(left) != 1+len(devices) {
			t.Errorf("%s: left out %s, want %s; %d of %d kept", name, got, row.want, len(kept), len(devices))
		}
		for _, name := range left {
			if slices.Contains(names(kept), name) {
				t.Errorf("%s is kept", name)
			}
		}
	}
}

// A virtual function that another driver has is one that this one may not know.
func TestAPhysicalFunctionIsLeftOutForAVirtualOneThatIsNotSelected(t *testing.T) {
	machine := samples.Machine(t, "intel-2s")
	devices := Devices(machine, selected(t, deviceclasses.DeviceSelection{Presets: []string{"nic"}}))
	_, conflicts := WithoutConflicts(machine, devices, publishers(published("sriov", here, "0000:3b:01.3")))
	want := "device nic-0000-3b-00-1 is left out: driver sriov publishes PCI function 0000:3b:01.3; exclude one of them"
	if len(conflicts) != 1 || conflicts[0].String() != want {
		t.Errorf("conflicts are %v, want %s", conflicts, want)
	}
}
