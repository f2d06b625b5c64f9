package zones

import (
	"fmt"
	"strings"
	"testing"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

func TestSort(t *testing.T) {
	zones := []Zone{
		{Device: "0", Nodes: []int{0}, CPUs: cpuset.New(0, 1, 2, 3)},
		{Device: "1", Nodes: []int{1}, CPUs: cpuset.New(4, 5, 6, 7)},
		{Device: "2", Nodes: []int{2}},
		{Device: "3", Nodes: []int{3}, CPUs: cpuset.New(8, 9)},
		{Device: "4", Nodes: []int{4}, CPUs: cpuset.New(10, 11, 12, 13)},
	}
	const static, pack, spread = deviceclasses.ZoneOrderStatic, deviceclasses.ZoneOrderPack, deviceclasses.ZoneOrderSpread
	for _, row := range []struct {
		taken, pci string // CPUs that are, and NUMA nodes that have PCI devices
		by, want   string
	}{
		{"", "", "", "0 1 2 3 4"},
		{"", "", static, "0 1 2 3 4"},
		{"", "", pack, "3 0 1 4 2"},
		{"", "", spread, "0 1 4 3 2"},
		{"", "0-1", "", "2 3 4 0 1"},
		{"", "0-1", pack, "3 4 2 0 1"},
		{"", "0-1", spread, "4 3 2 0 1"},
		{"0-3", "", "", "1 2 3 4 0"},
		{"0-3", "", pack, "3 1 4 2 0"},
		{"0-3", "", spread, "1 4 3 2 0"},
		{"0-3,8-9", "0-1", static, "2 4 1 3 0"}, // what is full and near a device is the last of all
		{"4-6", "", static, "0 1 2 3 4"},
		{"4-6", "", pack, "1 3 0 4 2"},
		{"4-6", "", spread, "0 4 3 1 2"},
		{"0-13", "", static, "2 0 1 3 4"},
		{"0-13", "", pack, "2 0 1 3 4"},
		{"0-13", "", spread, "2 0 1 3 4"},
	} {
		taken, err := cpuset.Parse(row.taken)
		if err != nil {
			t.Fatal(err)
		}
		near, err := cpuset.Parse(row.pci)
		if err != nil {
			t.Fatal(err)
		}
		var devices, pci []resourceapi.Device
		for _, i := range []int{3, 0, 4, 2, 1} {
			devices = append(devices, resourceapi.Device{Name: fmt.Sprint(i)})
		}
		for node := range near.All() {
			pci = append(pci, resourceapi.Device{Name: "pci", Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{
				deviceclasses.AttributeNUMANode: {IntValue: ptr.To(int64(node))},
			}})
		}
		Sort(devices, zones, pci, taken, row.by)
		var names []string
		for _, device := range devices {
			names = append(names, device.Name)
		}
		if got := strings.Join(names, " "); got != row.want {
			t.Errorf("taken %q, devices near %q, %s: %s, want %s", row.taken, row.pci, row.by, got, row.want)
		}
	}
	Sort(nil, zones, nil, cpuset.Set{}, spread)
}
