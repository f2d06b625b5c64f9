package numa

import (
	"maps"
	"testing"
)

// memoryZones are the rig's files without the CPUs of the nodes 1 to 3.
func memoryZones(changes files) files {
	f := files{"sys/devices/system/cpu/online": "0-3"}
	maps.Copy(f, changes)
	return with(f)
}

const node = "sys/devices/system/node/node" // and its number

func TestZonesAreOfTheKindThatTheirDevicesTell(t *testing.T) {
	const region = "sys/devices/platform/ACPI0017:00/root0/decoder0.0/region0/dax_region0/dax0.0"
	const nvdimm = "sys/devices/LNXSYSTM:00/LNXSYBUS:00/ACPI0012:00/ndbus0/region5/dax5.1/dax5.0"
	const noMemory = "Node 3 MemTotal: 0 kB"
	for name, row := range map[string]struct {
		changes files
		want    [4]ZoneKind
	}{
		"nothing known":    {nil, [4]ZoneKind{CPUZone, MemoryZone, MemoryZone, MemoryZone}},
		"no memory either": {files{node + "3/meminfo": noMemory}, [4]ZoneKind{CPUZone, MemoryZone, MemoryZone, EmptyZone}},
		"GPU driver": {files{
			"proc/driver/nvidia/gpus/0004:05:00.0/numa_status": "Node:      2\nStatus:    online",
			"proc/driver/nvidia/gpus/0004:06:00.0/numa_status": "Node:      -1\nStatus:    disabled",
		}, [4]ZoneKind{CPUZone, MemoryZone, GPUZone, MemoryZone}},
		"generic initiators": {files{
			"sys/devices/system/node/has_generic_initiator": "0,2-3", node + "3/meminfo": noMemory,
		}, [4]ZoneKind{CPUZone, MemoryZone, GPUZone, InitiatorZone}},
		"own best initiator": {files{
			node + "1/access0/initiators/node1": "-> ../../../node1", node + "1/access1/initiators/node0": "-> ../../../node0",
			node + "2/access0/initiators/node0": "-> ../../../node0", node + "2/access0/initiators/node3": "-> ../../../node3",
		}, [4]ZoneKind{CPUZone, GPUZone, MemoryZone, MemoryZone}},
		"DAX devices": {files{
			"sys/bus/dax/devices/dax0.0": "-> ../../../../" + region, region + "/target_node": "2",
			"sys/bus/dax/devices/dax5.0": "-> ../../../../" + nvdimm, nvdimm + "/target_node": "3",
		}, [4]ZoneKind{CPUZone, MemoryZone, CXLZone, MemoryZone}},
		"DAX devices of the CPUs' own node": {files{
			"sys/bus/dax/devices/dax0.0": "-> ../../../../" + region, region + "/target_node": "0",
		}, [4]ZoneKind{CPUZone, MemoryZone, MemoryZone, MemoryZone}},
		"a DAX device without a node": {files{
			"sys/bus/dax/devices/dax0.0": "-> ../../../../" + region, region + "/target_node": "-1",
		}, [4]ZoneKind{CPUZone, MemoryZone, MemoryZone, MemoryZone}},
	} {
		t.Run(name, func(t *testing.T) {
			var got [4]ZoneKind
			for i, zone := range mustRead(t, memoryZones(row.changes)).Zones {
				got[i] = zone.Kind
			}
			sameJSON(t, "kinds", got, row.want)
		})
	}
}

func TestNearestZoneWithCPUs(t *testing.T) {
	const gpu = "sys/bus/pci/devices/0004:05:00.0/"
	two := files{"sys/devices/system/cpu/online": "4-11"} // nodes 1 and 2 have CPUs
	for name, row := range map[string]struct {
		changes files
		want    [4]any
	}{
		"distance":                {nil, [4]any{1, 1, 2, 2}},
		"the lowest id of equals": {files{node + "0/distance": "10 20 20 20"}, [4]any{1, 1, 2, 2}},
		"no distance":             {files{node + "0/distance": ""}, [4]any{nil, 1, 2, 2}},
		"initiators of class 1 before 0": {files{
			node + "0/access1/initiators/node2": "-> ../../../node2", node + "0/access0/initiators/node1": "-> ../../../node1",
		}, [4]any{2, 1, 2, 2}},
		"an initiator without CPUs": {files{
			node + "0/access1/initiators/node3": "-> ../../../node3", node + "0/access0/initiators/node2": "-> ../../../node2",
		}, [4]any{2, 1, 2, 2}},
		"the nearer of two initiators": {files{
			node + "0/access1/initiators/node1": "-> ../../../node1", node + "0/access1/initiators/node2": "-> ../../../node2",
			node + "0/distance": "10 30 20 20",
		}, [4]any{2, 1, 2, 2}},
		"initiators without distances": {files{
			node + "0/access1/initiators/node1": "-> ../../../node1", node + "0/access1/initiators/node2": "-> ../../../node2",
			node + "0/distance": "",
		}, [4]any{1, 1, 2, 2}},
		"where the GPU is plugged in": {files{
			"proc/driver/nvidia/gpus/0004:05:00.0/numa_status": "Node: 0", gpu + "class": "0x030200", gpu + "local_cpus": "ff0",
			gpu + "numa_node": "2",
		}, [4]any{2, 1, 2, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			maps.Copy(two, files{})
			f := with(two)
			for file, text := range row.changes {
				f[file] = text
			}
			var got [4]any
			for i, zone := range mustRead(t, f).Zones {
				got[i] = zone.Nearest
			}
			sameJSON(t, "nearest", got, row.want)
		})
	}
}

func TestPerformanceIsThatOfTheNearestCPUs(t *testing.T) {
	const first, second = node + "1/access1/initiators/", node + "1/access0/initiators/"
	f := memoryZones(files{
		first + "node0": "-> ../../../node0", first + "read_bandwidth": "30720", first + "write_bandwidth": "24576",
		first + "read_latency": "250", first + "write_latency": "0", // the firmware does not tell
		second + "node1": "-> ../../../node1", second + "read_bandwidth": "999",
		node + "2/access0/initiators/node0": "-> ../../../node0", node + "2/access0/initiators/read_latency": "110",
		node + "3/access0/initiators/node3": "-> ../../../node3", node + "3/access0/initiators/read_latency": "7", // its own
		node + "0/access0/initiators/node0": "-> ../../../node0", node + "0/access0/initiators/read_latency": "0",
	})
	var got []*Performance
	for _, zone := range mustRead(t, f).Zones {
		got = append(got, zone.Performance)
	}
	sameJSON(t, "performance", got, []*Performance{
		nil,
		{ReadBandwidthMiBps: new(uint64(30720)), WriteBandwidthMiBps: new(uint64(24576)), ReadLatencyNs: new(uint64(250))},
		{ReadLatencyNs: new(uint64(110))},
		nil,
	})
}

func TestSideCachesByLevel(t *testing.T) {
	const folder = node + "1/memory_side_cache/"
	m := mustRead(t, with(files{
		folder + "index2/size": "1073741824", folder + "index2/line_size": "64", folder + "index1/size": "0",
		folder + "index1/indexing": "0", folder + "uevent": "x",
	}))
	sameJSON(t, "side caches", m.Zones[1].SideCaches, []SideCache{{Level: 1}, {2, new(uint64(1 << 30)), new(uint64(64))}})
	sameJSON(t, "side caches of zone 0", m.Zones[0].SideCaches, nil)
}
