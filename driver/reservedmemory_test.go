package driver

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// The machine has 16 MiB of hugepages 2Mi, and none of 1Gi, on each of the NUMA nodes 0
// and 1. NUMA node 2 has no hugepages.
func TestReservedMemory(t *testing.T) {
	const kubelet = "reservedMemory:\n- {numaNode: 1, limits: {memory: 1Mi, hugepages-2Mi: 4Mi}}\n- {numaNode: 0, limits: {hugepages-2Mi: 2Mi}}\n"
	entry := func(nodes, size, amount string) []deviceclasses.HugepageReservation {
		return []deviceclasses.HugepageReservation{{NUMANodes: nodes, Size: size, Amount: amount}}
	}
	some, none := ptr.To(resource.MustParse("3Mi")), ptr.To(resource.MustParse("0"))
	for _, row := range []struct {
		memory        *resource.Quantity
		hugepages     []deviceclasses.HugepageReservation
		kubelet, want string
	}{
		{nil, nil, "", "0: 0 0; 1: 0 0; 2: 0 0"},
		{nil, nil, "kind: KubeletConfiguration\n", "0: 0 0; 1: 0 0; 2: 0 0"},
		{nil, nil, kubelet, "0: 0 2Mi; 1: 1Mi 4Mi; 2: 0 0"},
		{some, nil, kubelet, "0: 3Mi 2Mi; 1: 3Mi 4Mi; 2: 3Mi 0"},
		{none, nil, kubelet, "0: 0 2Mi; 1: 0 4Mi; 2: 0 0"},
		{nil, entry("", "2Mi", "8Mi"), kubelet, "0: 0 8Mi; 1: 1Mi 8Mi; 2: 0 8Mi"},
		{nil, entry("1", "2048Ki", "16Mi"), kubelet, "0: 0 0; 1: 1Mi 16Mi; 2: 0 0"},
		{nil, []deviceclasses.HugepageReservation{}, kubelet, "0: 0 0; 1: 1Mi 0; 2: 0 0"},
		{some, entry("0", "2Mi", "2Mi"), "reservedMemory: nonsense", "0: 3Mi 2Mi; 1: 3Mi 0; 2: 3Mi 0"}, // not read

		{nil, entry("0-7", "2Mi", "2Mi"), "", "[0].numaNodes: the machine has no NUMA node 3-7, allowed are 0-2"},
		{nil, entry("", "4Mi", "4Mi"), "", "[0].size: the kernel has no hugepages of 4Mi, allowed are 2Mi, 1Gi"},
		{nil, entry("", "2Mi", "3Mi"), "", `[0].amount: "3Mi", want a multiple of the size 2Mi`},
		{nil, nil, "reservedMemory: [{numaNode: 0, limits: {hugepages-2Mi: 3Mi}}]", `kubelet configuration reservedMemory[0] (hugepages-2Mi): amount: "3Mi", want a multiple of the size 2Mi`},
		{nil, nil, "reservedMemory: [{numaNode: 0, limits: {hugepages-4Mi: 4Mi}}]", "kubelet configuration reservedMemory[0] (hugepages-4Mi): size: the kernel has no hugepages of 4Mi, allowed are 2Mi, 1Gi"},
		{nil, nil, "reservedMemory: [{numaNode: 9, limits: {memory: 4Mi}}]", "kubelet configuration reservedMemory[0] (memory): the machine has no NUMA node 9, allowed are 0-2"},
		{nil, nil, "reservedMemory: [{numaNode: -1, limits: {memory: 4Mi}}]", "kubelet configuration reservedMemory[0] (memory): numaNodes: cpulist"},
		{nil, nil, "reservedMemory: [{numaNode: 0, limits: {memory: -4Mi}}]", "kubelet configuration reservedMemory[0] (memory): -4Mi, want a quantity of 0 or more"},
		{nil, nil, "reservedMemory: [{numaNode: 0, limits: {swap: 4Mi}}]", `kubelet configuration reservedMemory[0] (swap): size: "swap", want the size of a hugepage`},
		{nil, nil, "reservedMemory: nonsense", "kubelet configuration: error unmarshaling JSON"},
	} {
		hugepages, err := ReservedHugepages(testMachine(), row.hugepages)
		var reserved zones.Reservations
		if err == nil {
			reserved, err = ReservedMemory(testMachine(), row.memory, hugepages, []byte(row.kubelet))
		}
		var parts []string
		for node := range 3 {
			parts = append(parts, fmt.Sprintf("%d: %s %s", node, binary(reserved.Bytes(node, "")), binary(reserved.Bytes(node, "2Mi"))))
		}
		got := strings.Join(parts, "; ")
		if err != nil {
			got = err.Error()
		}
		if err == nil && got != row.want || err != nil && !strings.HasPrefix(got, row.want) || strings.Contains(got, "\n") {
			t.Errorf("memory %s, hugepages %v, kubelet %q:\n%s, want\n%s", row.memory, row.hugepages, row.kubelet, got, row.want)
		}
	}
}

// TestReservedPagesThatAreNotThere: pools are often filled after the daemon has started.
func TestReservedPagesThatAreNotThere(t *testing.T) {
	for _, row := range []struct{ nodes, size, amount, want string }{
		{"0-2", "2Mi", "2Mi", "NUMA node 2 has 0 of hugepages 2Mi, reserved are 2Mi"},
		{"1", "2Mi", "18Mi", "NUMA node 1 has 16Mi of hugepages 2Mi, reserved are 18Mi"},
		{"", "2Mi", "18Mi", "NUMA node 0 has 16Mi of hugepages 2Mi, reserved are 18Mi\nNUMA node 1 has 16Mi of hugepages 2Mi, reserved are 18Mi"},
		{"", "2Mi", "16Mi", ""},
		{"", "1Gi", "1Gi", "no NUMA node has hugepages of 1Gi, reserved are 1Gi"},
	} {
		reserved, err := ReservedHugepages(testMachine(), []deviceclasses.HugepageReservation{{NUMANodes: row.nodes, Size: row.size, Amount: row.amount}})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := CheckReservedPages(testMachine(), append(reserved, zones.Reservation{Bytes: 1 << 50})); err != nil {
			got = err.Error()
		}
		if got != row.want {
			t.Errorf("%s of %s: %q, want %q", row.amount, row.size, got, row.want)
		}
	}
}

func TestReservedHugepagesAreNotPublished(t *testing.T) {
	for reserved, want := range map[uint64]string{0: "16Mi", 4 << 20: "12Mi", 16 << 20: "", 32 << 20: ""} { // the pool may become smaller later
		config := testConfig()
		config.ReservedMemory = zones.Reservations{{Nodes: cpuset.New(1), Size: "2Mi", Bytes: reserved}}
		for _, device := range Devices(testMachine(), config, nil) {
			capacity, published := device.Capacity["hugepages2Mi"]
			switch got := capacity.Value.String(); {
			case device.Name == "numa-0" && got != "16Mi":
				t.Errorf("%d bytes of NUMA node 1 reserved, numa-0 has %s", reserved, got)
			case device.Name == "numa-1" && (published != (want != "") || published && got != want):
				t.Errorf("%d bytes reserved, numa-1 publishes %s (%t), want %q", reserved, got, published, want)
			}
		}
	}
}
