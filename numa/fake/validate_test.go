package fake

import (
	"strings"
	"testing"
)

func TestImpossibleMachinesAreRefused(t *testing.T) {
	card := ConnectX("0000:3b:00.0", 0, "eth0", 0, 4)
	with := func(change func(*Function)) Machine {
		f := card
		change(&f)
		return Machine{MemoryBytes: gib, PCI: []Function{f}}
	}
	for _, row := range []struct {
		machine Machine
		reason  string
	}{
		{Machine{CoresPerSocket: 9, ZonesPerSocket: 2}, "ZonesPerSocket is 2, which does not divide the 9 cores"},
		{Machine{CoresPerSocket: 8, L3sPerSocket: 3}, "L3sPerSocket is 3, which does not divide"},
		{Machine{Sockets: 9000}, "Sockets is 9000, allowed are 1-8192"},
		{Machine{Sockets: 8192, CoresPerSocket: 8192}, "67108864 CPUs, allowed are 1-8192"},
		{Machine{DiesPerSocket: -1}, "DiesPerSocket is -1"},
		{Machine{Threads: 3}, "Threads is 3"},
		{Machine{Sockets: 2, Hybrid: &Hybrid{Efficient: 4}}, "a hybrid is an Intel with one socket"},
		{Machine{Hybrid: &Hybrid{Efficient: -4}}, "-4 efficient and 0 low-power cores"},
		{Machine{CoresPerSocket: 4, Offline: "2-4"}, "Offline has cpu 4, the machine has 0-3"},
		{Machine{CoresPerSocket: 4, Isolated: "x"}, `Isolated: cpulist "x"`},
		{Machine{CoresPerSocket: 4, Offline: "2", Absent: "2-3"}, "cpus 2 are offline and absent"},
		{Machine{CoresPerSocket: 4, Offline: "0"}, "x86 needs cpu 0 online"},
		{Machine{Make: Arm, Offline: "0"}, "no cpu is online"},
		{Machine{Sockets: 2, ZoneIDs: []int{1}}, "ZoneIDs are [1], want 2"},
		{Machine{Sockets: 2, ZoneIDs: []int{1, 1}}, "zone 1 appears twice"},
		{Machine{ZoneIDs: []int{1024}}, "zone 1024, allowed are 0-1023"},
		{Machine{PossibleZones: 1, Sockets: 2}, "PossibleZones is 1, allowed are 2-1024"},
		{Machine{ExtraZones: []Zone{{ID: 1, Near: 7, MemoryBytes: gib}}}, "zone 1 is near zone 7, which is not a zone with CPUs"},
		{Machine{ExtraZones: []Zone{{ID: 1, MemoryBytes: gib, GPU: "0000:01:00.0"}}}, "zone 1 has memory of GPU"},
		{Machine{ExtraZones: []Zone{{ID: 1, Kind: GPU, MemoryBytes: gib, GPU: "0000:01:00.0"}}}, "which is not a declared function"},
		{Machine{ExtraZones: []Zone{{ID: 1, Kind: Initiator, MemoryBytes: gib}}}, "zone 1 has 1073741824 bytes, which does not fit its kind"},
		{Machine{ExtraZones: []Zone{{ID: 1}}}, "zone 1 has 0 bytes, which does not fit its kind"},
		{Machine{NoNUMA: true, Sockets: 2}, "a kernel without NUMA support has no zones but zone 0"},
		{Machine{MemoryBytes: gib + 1}, "1073741825 bytes, which is not 0 or whole pages"},
		{Machine{MemoryBytes: mib}, "1048576 bytes, which is not 0 or whole pages from 67108864"},
		{Machine{PageBytes: 12288}, "PageBytes is 12288"},
		{Machine{ZoneMemory: map[int]uint64{1: gib}}, "ZoneMemory has zone 1"},
		{Machine{MemoryBytes: gib, Hugepages: []Hugepages{{gib, 2, 0}}}, "zone 0 has 2147483648 bytes of hugepages in 1073741824"},
		{Machine{MemoryBytes: gib, Hugepages: []Hugepages{{2 * mib, 1, 2}}}, "more free pages than pages"},
		{Machine{Sockets: 2, Distances: [][]int{{10, 20}}}, "Distances have 1 rows for 2 zones"},
		{Machine{Sockets: 2, Distances: [][]int{{10, 20}, {20}}}, "Distances of zone 1 have 1 columns for 2 zones"},
		{Machine{Sockets: 2, Distances: [][]int{{10, 9}, {20, 10}}}, "zone 0 is 9 from zone 1"},
		{Machine{Resctrl: &Resctrl{Ways: 4, CLOSIDs: 1, ShareableMask: 0x10}}, "resctrl"},
		{with(func(f *Function) { f.Zone = 2 }), "PCI function 0000:3a:01.0 is on zone 2, which the machine does not have"},
		{with(func(f *Function) { f.Address = "3b:00.0" }), `PCI address "3b:00.0" is not like 0000:3b:00.0`},
		{with(func(f *Function) { f.Address = "0000:3B:00.0" }), `PCI address "0000:3B:00.0" is not like`},
		{with(func(f *Function) { f.Address = "0000:3b:20.0" }), `PCI address "0000:3b:20.0" is not like`},
		{with(func(f *Function) { f.Address = "0000:00:02.0" }), "0000:00:02.0 is not below port"},
		{with(func(f *Function) { f.Port = &Function{Address: "0000:3b:01.0"} }), "0000:3b:00.0 is not below port 0000:3b:01.0"},
		{with(func(f *Function) { f.VFs = 9 }), "0000:3b:00.0 has 9 virtual functions, allowed are 0-8"},
		{with(func(f *Function) { f.TotalVFs = 256 }), "0000:3b:00.0 has 256 virtual functions, more than its bus has room for"},
		{Machine{PCI: []Function{card, card}}, "PCI function 0000:3b:00.0 appears twice"},
		{Machine{PCI: []Function{NVMe("0000:02:00.0", 0, 0), NVMe("0000:01:00.0", 0, 1)}}, "PCI function 0000:01:00.0 is on the bus of port 0000:01:01.0"},
	} {
		err := row.machine.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), "fake machine: ") || !strings.Contains(err.Error(), row.reason) || strings.Contains(err.Error(), "\n") {
			t.Errorf("Validate = %v, want %q", err, row.reason)
			continue
		}
		if row.machine.Files() != nil || row.machine.Links() != nil || row.machine.Write(t.TempDir()) == nil {
			t.Errorf("%q: it is written", row.reason)
		}
	}
	if err := (Machine{}).Validate(); err != nil {
		t.Errorf("the zero machine: %v", err)
	}
}

func TestVirtualFunctionsFollowThePhysicalOnes(t *testing.T) {
	first, second := ConnectX("0000:3b:00.0", 0, "eth0", 0, 2), ConnectX("0000:3b:00.1", 0, "eth1", 1, 3)
	m := mustRead(t, Machine{MemoryBytes: gib, PCI: []Function{second, first}})
	want := map[string]string{
		"0000:3b:00.0": "[0000:3b:00.2 0000:3b:00.3]", // room for 8
		"0000:3b:00.1": "[0000:3b:01.2 0000:3b:01.3 0000:3b:01.4]",
	}
	for _, f := range m.PCI {
		if w, physical := want[f.Address]; physical && w != sprint(f.VirtFns) {
			t.Errorf("virtual functions of %s are %v, want %s", f.Address, f.VirtFns, w)
		}
	}
	if len(m.PCI) != 8 {
		t.Errorf("%d functions", len(m.PCI))
	}
}

func sprint(list []string) string { return "[" + strings.Join(list, " ") + "]" }
