package numa

import (
	"maps"
	"strings"
	"testing"
)

// function returns the files of a function whose real path below sys/devices is given.
func function(path string, texts files) files {
	address := path[strings.LastIndex(path, "/")+1:]
	f := files{"sys/bus/pci/devices/" + address: "-> ../../../devices/" + path, "sys/devices/" + path + "/uevent": "x"}
	for name, text := range texts {
		f["sys/devices/"+path+"/"+name] = text
	}
	return f
}

func mustReadPCI(t *testing.T, functions ...files) []PCIFunction {
	t.Helper()
	f := rigFiles()
	for _, function := range functions {
		maps.Copy(f, function)
	}
	return mustRead(t, f).PCI
}

func TestAFunctionIsDescribedWhole(t *testing.T) {
	const port = "pci0000:3a/0000:3a:00.0"
	got := mustReadPCI(t,
		function(port, files{"class": "0x060400", "vendor": "0x8086", "device": "0x352a", "driver": "-> ../../../bus/pci/drivers/pcieport"}),
		function(port+"/0000:3b:00.0", files{
			"class": "0x020000", "vendor": "0x15b3", "device": "0x101d", "numa_node": "1", "driver": "-> ../../../../bus/pci/drivers/mlx5_core",
			"sriov_totalvfs": "16", "sriov_numvfs": "2",
			"virtfn10": "-> ../0000:3b:01.4", "virtfn0": "-> ../0000:3b:00.2", "virtfn1": "-> ../0000:3b:00.3",
			"current_link_speed": "16.0 GT/s PCIe", "max_link_speed": "32.0 GT/s PCIe", "current_link_width": "8", "max_link_width": "16",
			"iommu_group":  "-> ../../../../kernel/iommu_groups/43",
			"net/ens1/mtu": "1500", "net/ens1d1/mtu": "1500", "infiniband/mlx5_0/fw_ver": "1",
		}),
		function(port+"/0000:3b:00.2", files{"class": "0x020000", "numa_node": "1", "physfn": "-> ../0000:3b:00.0", "vfio-dev/vfio3/dev": "1:1"}),
	)
	sameJSON(t, "the functions", got, []PCIFunction{
		{
			Address: "0000:3a:00.0", Kind: BridgeFunction, Class: new(uint32(0x060400)), Root: "pci0000:3a",
			Vendor: new(uint16(0x8086)), Device: new(uint16(0x352a)), Driver: "pcieport",
		},
		{
			Address: "0000:3b:00.0", Kind: NICFunction, Class: new(uint32(0x020000)), Root: "pci0000:3a", Parent: "0000:3a:00.0",
			Vendor: new(uint16(0x15b3)), Device: new(uint16(0x101d)), Driver: "mlx5_core", Zone: new(1),
			TotalVFs: new(16), VirtFns: []string{"0000:3b:00.2", "0000:3b:00.3", "0000:3b:01.4"},
			Link: &Link{new(16.0), new(8), new(32.0), new(16)}, IOMMU: new(43),
			Net: []string{"ens1", "ens1d1"}, Infiniband: []string{"mlx5_0"},
		},
		{
			Address: "0000:3b:00.2", Kind: NICFunction, Class: new(uint32(0x020000)), Root: "pci0000:3a", Parent: "0000:3a:00.0",
			Zone: new(1), PhysFn: "0000:3b:00.0", VFIO: []string{"vfio3"},
		},
	})
}

func TestFunctionsThatSayLittleAreStillThere(t *testing.T) {
	got := mustReadPCI(t,
		function("pci10000:00/10000:00:02.0", files{"driver": "-> ../../../bus/pci/drivers/virtio-pci", "virtio1/net/ens3/mtu": "1500"}),
		function("pci0000:00/0000:00:0a.0", files{"class": "0x0c0600"}),
		function("pci0000:00/0000:00:09.0", files{
			"current_link_speed": "Unknown", "max_link_speed": "5 GT/s", "current_link_width": "0", "max_link_width": "255",
		}),
		function("pci0000:00/0000:00:08.0", files{
			"class": "0x010802", "nvme/nvme12/serial": "x", "nvme/hwmon3/name": "x",
			"drm/card1/dev": "x", "drm/card/dev": "x", "drm/renderD128/dev": "x", "drm/version": "x",
		}),
		files{"sys/bus/pci/devices/2000:05:00.0/class": "0x120000"}, // no link
		files{"sys/bus/pci/devices/0001:00:00.0": "-> ../../../devices/gone"},
	)
	sameJSON(t, "the functions", got, []PCIFunction{
		{
			Address: "0000:00:08.0", Kind: NVMeFunction, Class: new(uint32(0x010802)), Root: "pci0000:00",
			NVMe: []string{"nvme12"}, DRM: []string{"card1", "renderD128"},
		},
		{Address: "0000:00:09.0", Kind: OtherFunction, Root: "pci0000:00", Link: &Link{MaxSpeedGTps: new(5.0)}},
		{Address: "0000:00:0a.0", Kind: NICFunction, Class: new(uint32(0x0c0600)), Root: "pci0000:00"},
		{Address: "0001:00:00.0", Kind: OtherFunction},
		{Address: "2000:05:00.0", Kind: GPUFunction, Class: new(uint32(0x120000))},
		{Address: "10000:00:02.0", Kind: OtherFunction, Root: "pci10000:00", Driver: "virtio-pci", Net: []string{"ens3"}},
	})
}

func TestZoneOfAFunction(t *testing.T) {
	const root, bus = "pci0000:00", "pci0000:00/pci_bus/0000:00"
	const port, end = root + "/0000:00:01.0", root + "/0000:00:01.0/0000:01:00.0"
	for name, row := range map[string]struct {
		files files // below sys/devices
		path  string
		want  any
	}{
		"its own":               {files{end + "/numa_node": "2", port + "/numa_node": "1"}, end, 2},
		"none":                  {files{end + "/numa_node": "-1"}, end, nil},
		"not online":            {files{end + "/numa_node": "7", port + "/numa_node": "1"}, end, nil},
		"its port's":            {files{end + "/numa_node": "-1", port + "/numa_node": "1", bus + "/cpulistaffinity": "8-11"}, end, 1},
		"its physical function": {files{end + "/physfn": "-> ../0000:01:00.1", port + "/0000:01:00.1/numa_node": "3"}, end, 3},
		"its root bus's list":   {files{bus + "/cpulistaffinity": "8-11", end + "/local_cpulist": "0-3"}, end, 2},
		"its root bus's mask":   {files{bus + "/cpuaffinity": "0000f000"}, end, 3},
		"a VMD's": {
			files{root + "/0000:00:05.5/numa_node": "1", root + "/0000:00:05.5/pci10000:00/pci_bus/10000:00/cpulistaffinity": "0-15"},
			root + "/0000:00:05.5/pci10000:00/10000:00:02.0", 1,
		},
		"the bus above a VMD":      {files{bus + "/cpulistaffinity": "4-7"}, root + "/0000:00:05.5/pci10000:00/10000:00:02.0", 1},
		"its CPUs":                 {files{end + "/local_cpulist": "9-10"}, end, 2},
		"its CPUs in a mask":       {files{end + "/local_cpus": "00000ff0", end + "/local_cpulist": "4"}, end, 1},
		"its CPUs, some offline":   {files{end + "/local_cpulist": "12-31"}, end, 3},
		"its CPUs, all offline":    {files{end + "/local_cpulist": "16-31"}, end, nil},
		"CPUs of more than a zone": {files{end + "/local_cpulist": "0-7"}, end, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := function(row.path, nil)
			for file, text := range row.files {
				f["sys/devices/"+file] = text
			}
			functions := mustReadPCI(t, f)
			sameJSON(t, "zone", functions[len(functions)-1].Zone, row.want)
			if got := functions[len(functions)-1].Root; got != root {
				t.Errorf("root = %s", got)
			}
		})
	}
	f := with(files{"sys/devices/system/node/": ""})
	maps.Copy(f, function(end, files{"numa_node": "-1"}))
	sameJSON(t, "zone on a machine with one", mustRead(t, f).PCI[0].Zone, 0)
}

func TestGarbageOfAFunctionIsAnErrorThatNamesTheFile(t *testing.T) {
	const device = "pci0000:00/0000:00:01.0"
	for file, text := range map[string]string{
		"class": "020000", "vendor": "0x18086", "device": "0x", "numa_node": "one", "local_cpulist": "3-1", "local_cpus": "xyz",
		"sriov_totalvfs": "many", "current_link_speed": "fast", "max_link_speed": "nan GT/s", "current_link_width": "x8",
		"iommu_group": "-> ../../../kernel/iommu_groups/none", "virtfn99999": "-> ../0000:00:02.0",
	} {
		f := rigFiles()
		maps.Copy(f, function(device, files{"sriov_totalvfs": "1", file: text}))
		if _, err := Read(f.tree()); err == nil || !strings.Contains(err.Error(), device+"/"+file) {
			t.Errorf("%s %q: Read error = %v", file, text, err)
		}
	}
	f := with(files{"sys/bus/pci/devices/0000:00:1.0/class": "0x030000"})
	if _, err := Read(f.tree()); err == nil || !strings.Contains(err.Error(), `"0000:00:1.0" is not a PCI address`) {
		t.Errorf("Read error = %v", err)
	}
}

func TestPCIAddressesAreWhatTheKernelPrints(t *testing.T) {
	for text, want := range map[string]pciAddress{
		"0000:00:00.0":     {},
		"0000:3b:1f.7":     {0, 0x3b, 31, 7},
		"10000:e1:00.0":    {0x10000, 0xe1, 0, 0},
		"ffffffff:ff:1f.7": {1<<32 - 1, 255, 31, 7},
	} {
		if got, err := parsePCIAddress(text); err != nil || got != want {
			t.Errorf("parsePCIAddress(%q) = %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "0000", "00:1f.7", "000:00:00.0", "00000:00:00.0", "0000:3B:00.0", "0000:00:20.0", "0000:00:00.8", "0000:00:00",
		"0000:00:00.0 ", "0000:00:00.0.0", "100000000:00:00.0", "0000:0x1:00.0", "+000:00:00.0",
	} {
		if got, err := parsePCIAddress(text); err == nil || !strings.Contains(err.Error(), "is not a PCI address") {
			t.Errorf("parsePCIAddress(%q) = %+v, %v", text, got, err)
		}
	}
}
