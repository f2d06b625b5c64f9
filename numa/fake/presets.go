package fake

import "fmt"

// Preset is a machine with a name. The name is valid in a file name.
type Preset struct {
	Name    string
	Machine Machine
}

const (
	mib = 1 << 20
	gib = 1 << 30
)

// Presets returns machines like those on the market, and some unusual ones, in a fixed
// order. Each call makes new values.
func Presets() []Preset {
	return []Preset{
		{"rig", rig()},
		{"intel-2s", intel2S(1)},
		{"intel-2s-snc2", intel2S(2)},
		{"intel-2s-snc3", intel2S(3)},
		{"xeon-max-cache", xeonMaxCache()},
		{"epyc-2s-nps1", epyc2S(1, 32)},
		{"epyc-2s-nps4", epyc2S(4, 64)},
		{"epyc-mi300x", epycMI300X()},
		{"dgx-h100", dgxH100()},
		{"grace-hopper", graceHopper()},
		{"hybrid-laptop", hybridLaptop()},
		{"hybrid-laptop-lowpower", hybridLaptopLowPower()},
		{"cxl-expander", cxlExpander()},
		{"offline-and-hotplug", offlineAndHotplug()},
		{"sparse-nodes", sparseNodes()},
		{"no-numa", noNUMA()},
		{"512cpus", cpus512()},
		{"1024cpus-16nodes", cpus1024()},
	}
}

// rig is the default node of the test cluster, test/rig/topology/machines/default.yaml.
// It is QEMU with an emulated processor, which hides that a socket has two dies. Zones
// 1 and 3 each have a network card behind a host bridge of its own.
func rig() Machine {
	card := func(root, zone int) Function {
		return Function{
			Address: fmt.Sprintf("0000:%02x:00.0", root+1), Zone: zone, Class: 0x020000, Driver: "e1000e",
			Vendor: 0x8086, Device: 0x10d3, SubVendor: 0x8086, SpeedGTps: 2.5, Width: 1,
			Port: &Function{
				Address: fmt.Sprintf("0000:%02x:00.0", root), Zone: zone, Class: 0x060400, Driver: "pcieport",
				Vendor: 0x1b36, Device: 0x000c, SubVendor: 0x1b36, SpeedGTps: 2.5, Width: 1, MaxSpeedGTps: 16, MaxWidth: 32,
			},
		}
	}
	return Machine{
		Sockets: 2, ZonesPerSocket: 2, L3sPerSocket: 2, CoresPerSocket: 4, Threads: 2, Numbering: Adjacent,
		MemoryBytes: gib, Hugepages: []Hugepages{{2 * mib, 16, 16}},
		Distances: [][]int{{10, 12, 32, 32}, {12, 10, 32, 32}, {32, 32, 10, 12}, {32, 32, 12, 10}},
		PCI:       []Function{card(0x20, 1), card(0x30, 3)}, Full: true,
	}
}

// intel2S has zones that split a socket, but share its L3.
func intel2S(zonesPerSocket int) Machine {
	last := 2*zonesPerSocket - 1
	m := Machine{
		Sockets: 2, ZonesPerSocket: zonesPerSocket, CoresPerSocket: 24, Threads: 2, MaxMHz: 3700, BaseMHz: 2200,
		MemoryBytes: 384 * gib / uint64(zonesPerSocket), Hugepages: []Hugepages{{2 * mib, 1024, 1000}, {gib, 16, 12}},
		Performance: &Performance{ReadMiBps: 262144, WriteMiBps: 176128, ReadNs: 90, WriteNs: 96},
		PCI: []Function{
			NVIDIA("0000:17:00.0", 0, 0), NVIDIA("0000:2a:00.0", 0, 1), NVIDIA("0000:bd:00.0", last, 2), NVIDIA("0000:ca:00.0", last, 3),
			ConnectX("0000:3b:00.0", 0, "ens1f0np0", 0, 8), ConnectX("0000:3b:00.1", 0, "ens1f1np1", 1, 4),
			ConnectX("0000:a8:00.0", last, "ens2np0", 2, 0), NVMe("0000:01:00.0", 0, 0), NVMe("0000:81:00.0", last, 1),
		},
		IOMMU: true, Resctrl: intelResctrl(),
	}
	if zonesPerSocket == 1 {
		m.Numbering = Interleaved
	}
	return m
}

// intelResctrl returns what a Xeon of the Sapphire Rapids generation offers.
func intelResctrl() *Resctrl {
	return &Resctrl{
		CLOSIDs: 15, Ways: 15, ShareableMask: 0x6000, MinBandwidth: 10, BandwidthStep: 10,
		RMIDs: 320, Features: []string{"llc_occupancy", "mbm_total_bytes", "mbm_local_bytes"},
	}
}

// xeonMaxCache has high-bandwidth memory as a cache in front of the ordinary memory,
// and four zones per socket.
func xeonMaxCache() Machine {
	return Machine{
		Sockets: 2, ZonesPerSocket: 4, CoresPerSocket: 32, Threads: 2, MaxMHz: 3500, BaseMHz: 1900,
		MemoryBytes: 128 * gib, SideCacheBytes: 16 * gib,
		Performance: &Performance{ReadMiBps: 65536, WriteMiBps: 65536, ReadNs: 110, WriteNs: 110},
		Resctrl:     intelResctrl(),
	}
}

// epyc2S has eight dies with cores per socket, each with an L3 of its own. On this
// generation the kernel does not count them as dies.
func epyc2S(zonesPerSocket, coresPerSocket int) Machine {
	zones := 2 * zonesPerSocket
	return Machine{
		Make: AMD, Sockets: 2, ZonesPerSocket: zonesPerSocket, L3sPerSocket: 8, CoresPerSocket: coresPerSocket, Threads: 2,
		MemoryBytes: 1024 * gib / uint64(zones), Hugepages: []Hugepages{{2 * mib, 0, 0}, {gib, 8, 8}}, MaxMHz: 3675,
		PCI: []Function{
			NVIDIA("0000:01:00.0", zones/4, 0), NVIDIA("0000:25:00.0", 0, 1), NVIDIA("0000:81:00.0", zones-1, 2),
			ConnectX("0000:41:00.0", 0, "enp65s0np0", 0, 16), ConnectX("0000:c1:00.0", zones/2, "enp193s0np0", 1, 16),
			NVMe("0000:61:00.0", 0, 0), NVMe("0000:64:00.0", 0, 1), NVMe("0000:e1:00.0", zones/2, 2),
		},
		IOMMU: true,
		Resctrl: &Resctrl{
			CLOSIDs: 16, Ways: 16, Sparse: true, MinBandwidth: 1, BandwidthStep: 1,
			RMIDs: 256, Features: []string{"llc_occupancy", "mbm_total_bytes", "mbm_local_bytes"},
		},
	}
}

// dgxH100 has eight GPUs. Each GPU has a network card and a drive under the same host
// bridge, as if a PCIe switch connected them. Two more network cards have virtual
// functions. A console and the drives of the system are on socket 0.
func dgxH100() Machine {
	m := Machine{
		Sockets: 2, CoresPerSocket: 56, Threads: 2, MaxMHz: 3800, BaseMHz: 2000, MemoryBytes: 1024 * gib,
		Hugepages: []Hugepages{{gib, 32, 32}},
		PCI:       []Function{ASPEED("0000:02:00.0", 0), NVMe("0000:04:00.0", 0, 0), NVMe("0000:06:00.0", 0, 1)},
		IOMMU:     true, Resctrl: intelResctrl(),
	}
	for i, root := range []int{0x15, 0x2a, 0x3a, 0x58, 0x97, 0xab, 0xbd, 0xd7} {
		zone := i / 4
		gpu := NVIDIA(fmt.Sprintf("0000:%02x:00.0", root+1), zone, i)
		card := ConnectX(fmt.Sprintf("0000:%02x:00.0", root+3), zone, fmt.Sprintf("ibp%ds0", root+3), i, 0)
		card.Class, card.Device, card.SpeedGTps, card.LinkMbps, card.TotalVFs = 0x020700, 0x1021, 32, 400_000, 16
		drive := NVMe(fmt.Sprintf("0000:%02x:00.0", root+5), zone, i+2)
		for slot, f := range []Function{gpu, card, drive} {
			f.Port = &Function{
				Address: fmt.Sprintf("0000:%02x:%02x.0", root, 2*slot+1), Zone: zone, Class: 0x060400, Driver: "pcieport",
				Vendor: 0x8086, Device: 0x352a, SpeedGTps: f.SpeedGTps, Width: f.Width, MaxSpeedGTps: 32, MaxWidth: 16,
			}
			m.PCI = append(m.PCI, f)
		}
	}
	m.PCI = append(m.PCI, ConnectX("0000:0c:00.0", 0, "enp12s0np0", 8, 8), ConnectX("0000:e2:00.0", 1, "enp226s0np0", 9, 8))
	return m
}

// epycMI300X has eight AMD GPUs, a network card with virtual functions on each socket,
// and a drive for which the firmware gives no zone.
func epycMI300X() Machine {
	m := Machine{
		Make: AMD, Sockets: 2, L3sPerSocket: 12, CoresPerSocket: 96, Threads: 2, MemoryBytes: 1152 * gib, MaxMHz: 3700,
		PCI: []Function{
			ConnectX("0000:09:00.0", 0, "enp9s0np0", 0, 8), ConnectX("0000:89:00.0", 1, "enp137s0np0", 1, 8),
			NVMe("0000:41:00.0", 0, 0), NVMe("0000:c1:00.0", NoZone, 1),
		},
		IOMMU: true,
	}
	for i, bus := range []int{0x05, 0x15, 0x65, 0x75, 0x85, 0x95, 0xe5, 0xf5} {
		m.PCI = append(m.PCI, MI300X(fmt.Sprintf("0000:%02x:00.0", bus), i/4, i))
	}
	return m
}

// graceHopper has one zone with CPUs, a zone with the memory of the GPU, and seven more
// initiators for slices of the GPU.
func graceHopper() Machine {
	const gpu = "0009:01:00.0"
	m := Machine{
		Make: Arm, CoresPerSocket: 72, MemoryBytes: 480 * gib, PageBytes: 64 << 10, MaxMHz: 3456,
		Performance: &Performance{ReadMiBps: 380000, WriteMiBps: 350000, ReadNs: 130, WriteNs: 130},
		ExtraZones: []Zone{{
			ID: 1, Kind: GPU, GPU: gpu, MemoryBytes: 96 * gib,
			Performance: &Performance{ReadMiBps: 290000, WriteMiBps: 280000, ReadNs: 800, WriteNs: 800},
		}},
		Distances: [][]int{{10}},
		PCI: []Function{
			NVIDIA(gpu, 0, 0), ConnectX("0000:01:00.0", 0, "enp1s0np0", 0, 0), NVMe("0004:01:00.0", 0, 0),
		},
	}
	for id := 2; id <= 8; id++ {
		m.ExtraZones = append(m.ExtraZones, Zone{ID: id, Kind: Initiator})
	}
	for range m.ExtraZones { // 80 from the CPUs; parts of the GPU cannot reach each other
		size := len(m.Distances)
		row := make([]int, size+1)
		for i := range m.Distances {
			row[i] = 255
			if i == 0 {
				row[i] = 80
			}
			m.Distances[i] = append(m.Distances[i], row[i])
		}
		row[size] = 10
		m.Distances = append(m.Distances, row)
	}
	return m
}

func hybridLaptop() Machine {
	return Machine{
		CoresPerSocket: 6, Threads: 2, Hybrid: &Hybrid{Efficient: 8, EfficientMaxMHz: 3500}, Numbering: Adjacent,
		MemoryBytes: 32 * gib, MaxMHz: 4700, BaseMHz: 2700,
		PCI: []Function{NVMe("0000:02:00.0", NoZone, 0)}, IOMMU: true,
	}
}

// hybridLaptopLowPower has three kinds of cores, all without thread siblings.
func hybridLaptopLowPower() Machine {
	return Machine{
		CoresPerSocket: 6, Hybrid: &Hybrid{Efficient: 8, LowPower: 2, EfficientMaxMHz: 4400}, Numbering: Adjacent,
		MemoryBytes: 32 * gib, MaxMHz: 5100, BaseMHz: 2000,
		PCI: []Function{NVMe("0000:02:00.0", NoZone, 0)},
	}
}

// cxlExpander has the memory of a CXL card on socket 1 as zone 2.
func cxlExpander() Machine {
	return Machine{
		Sockets: 2, CoresPerSocket: 16, Threads: 2, MemoryBytes: 256 * gib, MaxMHz: 3800, BaseMHz: 2400,
		Performance: &Performance{ReadMiBps: 262144, WriteMiBps: 176128, ReadNs: 100, WriteNs: 100},
		ExtraZones: []Zone{{
			ID: 2, Kind: CXL, MemoryBytes: 128 * gib, Near: 1, Tier: 22,
			Performance: &Performance{ReadMiBps: 30720, WriteMiBps: 24576, ReadNs: 250, WriteNs: 260},
		}},
		Distances: [][]int{{10, 21, 24}, {21, 10, 14}, {24, 14, 10}},
		PCI: []Function{
			{
				Address: "0000:99:00.0", Zone: 1, Class: 0x050210, Driver: "cxl_pci", Vendor: 0x1e98, Device: 0x00ab,
				SpeedGTps: 32, Width: 8,
			},
			NVMe("0000:4c:00.0", 0, 0),
		},
		Resctrl: intelResctrl(),
	}
}

// offlineAndHotplug has a core without an online CPU (3 and 19), a core with one online
// CPU (25, while 9 is offline), and four CPUs that could be plugged in. Only the port
// of its network card tells the zone of the card.
func offlineAndHotplug() Machine {
	card := ConnectX("0000:3b:00.0", 1, "ens1np0", 0, 0)
	card.HidesZone = true
	return Machine{
		Sockets: 2, CoresPerSocket: 8, Threads: 2, Absent: "28-31", Offline: "3,9,19", Isolated: "4-5,20-21", NoHZFull: "4-5,20-21",
		MemoryBytes: 64 * gib, PossibleZones: 8, PCI: []Function{card},
	}
}

// sparseNodes has zone ids with gaps, a zone with CPUs but no memory, a zone with
// memory but no CPUs, and an empty zone.
func sparseNodes() Machine {
	return Machine{
		Sockets: 4, CoresPerSocket: 4, ZoneIDs: []int{0, 1, 33, 72}, PossibleZones: 128, MemoryBytes: 16 * gib,
		ZoneMemory: map[int]uint64{1: 0, 72: 8 * gib},
		ExtraZones: []Zone{{ID: 34, MemoryBytes: 4 * gib, Near: 33}, {ID: 45, Kind: Empty, Near: 72}},
		PCI:        []Function{NVMe("0000:02:00.0", 72, 0)},
	}
}

func noNUMA() Machine {
	return Machine{
		CoresPerSocket: 4, Threads: 2, MemoryBytes: 8 * gib, Hugepages: []Hugepages{{2 * mib, 64, 60}}, NoNUMA: true,
		PCI: []Function{NVMe("0000:02:00.0", NoZone, 0)},
	}
}

// cpus512 and cpus1024 are for measurements.
func cpus512() Machine {
	return Machine{
		Make: AMD, Sockets: 2, L3sPerSocket: 16, CoresPerSocket: 128, Threads: 2, MemoryBytes: 768 * gib,
		Hugepages: []Hugepages{{2 * mib, 4096, 4096}, {gib, 32, 32}},
		PCI:       []Function{NVIDIA("0000:01:00.0", 0, 0), ConnectX("0000:81:00.0", 1, "enp129s0np0", 0, 32)},
	}
}

func cpus1024() Machine {
	m := Machine{
		Sockets: 8, ZonesPerSocket: 2, L3sPerSocket: 8, CoresPerSocket: 64, Threads: 2, MemoryBytes: 256 * gib,
		Hugepages: []Hugepages{{2 * mib, 1024, 1024}, {gib, 4, 4}},
	}
	for zone := range 16 {
		m.PCI = append(m.PCI, NVMe(fmt.Sprintf("%04x:01:00.0", zone), zone, zone))
	}
	return m
}
