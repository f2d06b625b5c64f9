package fake

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// addPCI adds sys/devices/pci<domain>:<bus> and sys/bus/pci;
// Documentation/ABI/testing/sysfs-bus-pci.
func (t tree) addPCI(l layout, functions []function) {
	t.addKFD(l, functions)
	vfio := 0
	for _, driver := range l.Drivers {
		t.line("sys/bus/pci/drivers/"+driver+"/uevent", "")
	}
	for _, f := range functions {
		t.addFunction(f)
		t.addLocality(l, f)
		t.addLink(f)
		t.addSRIOV(f)
		t.addDriver(f)
		t.line(f.path+"/driver_override", "%s", cmp.Or(f.only, "(null)"))
		t.link("sys/bus/pci/devices/"+f.Address, f.path)
		t.link(f.path+"/subsystem", "sys/bus/pci")
		if f.Driver != "" {
			t.link(f.path+"/driver", "sys/bus/pci/drivers/"+f.Driver)
			t.link("sys/bus/pci/drivers/"+f.Driver+"/"+f.Address, f.path)
		}
		if l.IOMMU {
			group := fmt.Sprintf("sys/kernel/iommu_groups/%d", f.group)
			if f.Driver == "vfio-pci" {
				t.device(fmt.Sprintf("sys/class/vfio/%d", f.group), vfioMajor, f.group, fmt.Sprintf("vfio/%d", f.group))
				t.device("sys/class/misc/vfio", miscMajor, vfioMinor, "vfio/vfio")
			}
			t.line(group+"/type", "DMA-FQ")
			t.link(f.path+"/iommu_group", group)
			t.link(group+"/devices/"+f.Address, f.path)
		}
		children := f.Children
		if f.Driver == "vfio-pci" {
			children = slices.Concat(children, []string{fmt.Sprintf("vfio-dev/vfio%d", vfio)})
			vfio++
		}
		for _, child := range children {
			t.addChild(f.path+"/"+child, path.Base(path.Dir(child)))
			t.link(f.path+"/"+child+"/device", f.path)
			t.link("sys/class/"+child, f.path+"/"+child)
		}
	}
}

// Device numbers, Documentation/admin-guide/devices.txt. The kernel assigns major
// numbers that are not in that document while drivers load.
const (
	miscMajor      = 10
	vfioMinor      = 196
	drmMajor       = 226
	nvmeMajor      = 240
	vfioMajor      = 243
	vfioDevMajor   = 244
	blockExtMajor  = 259
	namespaceMinor = 32 // minor numbers for the namespaces of each drive
)

// addChild adds a device of a class that the driver created for a function.
func (t tree) addChild(folder, class string) {
	name := path.Base(folder)
	number, _ := strconv.Atoi(name[strings.LastIndexFunc(name, func(c rune) bool { return c < '0' || c > '9' })+1:])
	switch class {
	case "net":
		t.line(folder+"/uevent", "INTERFACE=%s", name)
	case "infiniband":
		t.line(folder+"/uevent", "NAME=%s", name)
	case "drm":
		t.device(folder, drmMajor, number, "dri/"+name)
	case "nvme":
		t.device(folder, nvmeMajor, number, name)
	case "vfio-dev":
		t.device(folder, vfioDevMajor, number, "vfio/devices/"+name)
	default:
		t.line(folder+"/uevent", "DEVNAME=%s", name)
	}
}

// device adds a device that has a node below /dev.
func (t tree) device(folder string, major, minor int, name string) {
	t.line(folder+"/dev", "%d:%d", major, minor)
	t.line(folder+"/uevent", "MAJOR=%d\nMINOR=%d\nDEVNAME=%s", major, minor, name)
}

// addFunction adds what the configuration space of the function says.
func (t tree) addFunction(f function) {
	modalias := fmt.Sprintf("pci:v%08Xd%08Xsv%08Xsd%08Xbc%02Xsc%02Xi%02X",
		f.Vendor, f.Device, f.SubVendor, f.SubDevice, f.Class>>16, f.Class>>8&0xff, f.Class&0xff)
	t.line(f.path+"/class", "0x%06x", f.Class)
	t.line(f.path+"/vendor", "0x%04x", f.Vendor)
	t.line(f.path+"/device", "0x%04x", f.Device)
	t.line(f.path+"/subsystem_vendor", "0x%04x", f.SubVendor)
	t.line(f.path+"/subsystem_device", "0x%04x", f.SubDevice)
	t.line(f.path+"/revision", "0x00")
	t.line(f.path+"/modalias", "%s", modalias)
	uevent := fmt.Sprintf("PCI_CLASS=%04X\nPCI_ID=%04X:%04X\nPCI_SUBSYS_ID=%04X:%04X\nPCI_SLOT_NAME=%s\nMODALIAS=%s",
		f.Class, f.Vendor, f.Device, f.SubVendor, f.SubDevice, f.Address, modalias)
	if f.Driver != "" {
		uevent = "DRIVER=" + f.Driver + "\n" + uevent
	}
	t.line(f.path+"/uevent", "%s", uevent)
}

// addLocality adds where the function is. For a port it also adds where the root bus of
// the port is.
func (t tree) addLocality(l layout, f function) {
	said := f.Zone
	if f.HidesZone {
		said = NoZone
	}
	cpus := l.online
	if z, known := l.zone(said); known && said != NoZone {
		cpus = z.cpus
	}
	local := l.domain(cpus)
	if !l.NoNUMA {
		t.line(f.path+"/numa_node", "%d", said)
	}
	t.line(f.path+"/local_cpulist", "%s", local.list)
	t.line(f.path+"/local_cpus", "%s", local.mask)
	if f.isPort {
		root := fmt.Sprintf("%04x:%02x", f.bus>>8, f.bus&0xff)
		bus := path.Dir(f.path) + "/pci_bus/" + root
		t.line(bus+"/cpulistaffinity", "%s", local.list)
		t.line(bus+"/cpuaffinity", "%s", local.mask)
		t.link("sys/class/pci_bus/"+root, bus)
	}
}

// addLink adds the PCIe link. A virtual function has the link of its physical function,
// and its files read as if that link were down.
func (t tree) addLink(f function) {
	if f.SpeedGTps == 0 {
		return
	}
	maxSpeed, maxWidth := max(f.MaxSpeedGTps, f.SpeedGTps), max(f.MaxWidth, f.Width)
	t.line(f.path+"/max_link_speed", "%.1f GT/s PCIe", maxSpeed)
	t.line(f.path+"/max_link_width", "%d", maxWidth)
	if f.physFn != "" {
		t.line(f.path+"/current_link_speed", "Unknown")
		t.line(f.path+"/current_link_width", "0")
		return
	}
	t.line(f.path+"/current_link_speed", "%.1f GT/s PCIe", f.SpeedGTps)
	t.line(f.path+"/current_link_width", "%d", f.Width)
}

// addSRIOV adds the SR-IOV files of a physical function, and the links between it and
// its virtual functions; Documentation/PCI/pci-iov-howto.rst.
func (t tree) addSRIOV(f function) {
	if f.physFn != "" {
		t.link(f.path+"/physfn", path.Dir(f.path)+"/"+f.physFn)
	}
	if f.TotalVFs == 0 {
		return
	}
	t.line(f.path+"/sriov_totalvfs", "%d", f.TotalVFs)
	t.line(f.path+"/sriov_numvfs", "%d", f.VFs)
	t.line(f.path+"/sriov_offset", "%d", f.offset)
	t.line(f.path+"/sriov_stride", "1")
	t.line(f.path+"/sriov_vf_device", "%x", f.VFDevice)
	t.line(f.path+"/sriov_drivers_autoprobe", "1")
	for n, address := range f.vfs {
		t.link(fmt.Sprintf("%s/virtfn%d", f.path, n), path.Dir(f.path)+"/"+address)
	}
}
