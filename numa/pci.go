package numa

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

const pciFolder = "sys/bus/pci/devices"

// readPCI reads every PCI function. Each entry of pciFolder is a link to the function's
// folder below sys/devices. A recorded machine may have a plain folder instead, which
// says less.
func (t tree) readPCI(m *Machine) error {
	names, err := t.entries(pciFolder)
	if err != nil {
		return err
	}
	addresses := make([]pciAddress, 0, len(names))
	for _, name := range names {
		address, err := parsePCIAddress(name)
		if err != nil {
			return fmt.Errorf("read %s: %w", pciFolder, err)
		}
		addresses = append(addresses, address)
	}
	slices.SortFunc(addresses, pciAddress.compare)
	for _, address := range addresses {
		function := PCIFunction{Address: address.String()}
		folder := pciFolder + "/" + function.Address
		if device, ok := t.link(folder); ok {
			folder = device
		}
		for _, read := range []func(string, *PCIFunction) error{
			t.pciIdentity, t.pciVirtualFunctions, t.pciLink, t.pciChildren, t.gpuMemory, t.nvidiaGPU, t.amdGPU, t.nvmeDrive, t.netLinks, t.pciHealth,
		} {
			if err := read(folder, &function); err != nil {
				return err
			}
		}
		if function.Zone, err = t.pciZone(folder, m); err != nil {
			return err
		}
		m.PCI = append(m.PCI, function)
	}
	return t.gpuArchitectures(m.PCI)
}

// ReadFunctionKind reads what a PCI function is for, as it is now. Without such a function, the
// kind is OtherFunction.
func ReadFunctionKind(root fs.FS, address string) (FunctionKind, error) {
	var f PCIFunction
	err := newTree(root).pciIdentity(pciFolder+"/"+address, &f)
	return f.Kind, err
}

// pciIdentity reads what the function is, which driver it has, and where it is in the
// PCI hierarchy.
func (t tree) pciIdentity(folder string, f *PCIFunction) error {
	f.Kind = OtherFunction
	var err error
	if f.Class, err = pointer(t, folder+"/class", parsePCINumber[uint32](24)); err != nil {
		return err
	}
	if f.Vendor, err = pointer(t, folder+"/vendor", parsePCINumber[uint16](16)); err != nil {
		return err
	}
	if f.Class != nil {
		f.Kind = functionKind(*f.Class, f.Vendor)
	}
	if f.Device, err = pointer(t, folder+"/device", parsePCINumber[uint16](16)); err != nil {
		return err
	}
	if driver, ok := t.link(folder + "/driver"); ok {
		f.Driver = path.Base(driver)
	}
	for name := range strings.SplitSeq(folder, "/") {
		if isRootBus(name) {
			f.Root = name
			break
		}
	}
	if parent := path.Base(path.Dir(folder)); IsPCIAddress(parent) {
		f.Parent = parent
	}
	if group, ok := t.link(folder + "/iommu_group"); ok {
		number, err := parseInt(path.Base(group))
		if err != nil {
			return fmt.Errorf("read %s/iommu_group: %w", folder, err)
		}
		f.IOMMU = &number
	}
	return nil
}

// parsePCINumber returns a parser of hexadecimal numbers with the prefix 0x.
func parsePCINumber[T uint16 | uint32](bits int) func(string) (T, error) {
	return func(text string) (T, error) {
		digits, prefixed := strings.CutPrefix(text, "0x")
		number, err := strconv.ParseUint(digits, 16, bits)
		if err != nil || !prefixed {
			return 0, fmt.Errorf("%.80q is not a hexadecimal number of %d bits such as 0x8086", text, bits)
		}
		return T(number), nil
	}
}

// functionKind returns the kind of a function by its class, as the PCI Code and ID
// Assignment Specification defines it, with one exception. VGA-compatible display
// controllers of all but three vendors are consoles of management controllers and virtual
// machines, which have the same class.
func functionKind(class uint32, vendor *uint16) FunctionKind {
	const base, sub = 16, 8
	const amd, nvidia, intel = 0x1002, 0x10de, 0x8086
	switch {
	case class>>sub == 0x0300 && vendor != nil && !slices.Contains([]uint16{amd, nvidia, intel}, *vendor):
		return OtherFunction
	case class>>base == 0x03, class>>base == 0x12:
		return GPUFunction
	case class>>base == 0x02, class>>sub == 0x0c06:
		return NICFunction
	case class>>sub == 0x0108:
		return NVMeFunction
	case class>>base == 0x06:
		return BridgeFunction
	}
	return OtherFunction
}

// pciVirtualFunctions reads the physical function of a virtual function, or the virtual
// functions of a physical function.
func (t tree) pciVirtualFunctions(folder string, f *PCIFunction) error {
	if physfn, ok := t.link(folder + "/physfn"); ok {
		f.PhysFn = path.Base(physfn)
		return nil
	}
	total, err := pointer(t, folder+"/sriov_totalvfs", parseInt)
	if err != nil || total == nil {
		return err
	}
	f.TotalVFs = total
	numbers, err := t.numbered(folder, "virtfn")
	for number := range numbers.All() {
		if virtfn, ok := t.link(fmt.Sprintf("%s/virtfn%d", folder, number)); ok {
			f.VirtFns = append(f.VirtFns, path.Base(virtfn))
		}
	}
	return err
}

// pciChildren reads the names of the devices that the driver created for the function.
func (t tree) pciChildren(folder string, f *PCIFunction) error {
	parents, err := t.driverFolders(folder, f)
	if err != nil {
		return err
	}
	for _, parent := range parents {
		for _, child := range []struct {
			names    *[]string
			folder   string
			prefixes []string // of <prefix><N>; nil for any name
		}{
			{&f.Net, "net", nil},
			{&f.Infiniband, "infiniband", nil},
			{&f.NVMe, "nvme", []string{"nvme"}},
			{&f.DRM, "drm", []string{"card", "renderD"}},
			{&f.VFIO, "vfio-dev", []string{"vfio"}},
		} {
			names, err := t.entries(parent + "/" + child.folder)
			if err != nil {
				return err
			}
			for _, name := range names {
				if child.prefixes == nil || slices.ContainsFunc(child.prefixes, func(prefix string) bool {
					return isNumbered(name, prefix)
				}) {
					*child.names = append(*child.names, name)
				}
			}
		}
	}
	return nil
}

// driverFolders returns the folders in which the driver creates devices for the
// function: the function's own folder and, with virtio-pci, the virtio<N> folders one
// level below it.
func (t tree) driverFolders(folder string, f *PCIFunction) ([]string, error) {
	folders := []string{folder}
	if f.Driver != "virtio-pci" {
		return folders, nil
	}
	names, err := t.entries(folder)
	for _, name := range names {
		if isNumbered(name, "virtio") {
			folders = append(folders, folder+"/"+name)
		}
	}
	return folders, err
}

// IsVFIO reports whether a kernel driver is vfio-pci or a variant of it, such as
// mlx5_vfio_pci: it hands the function to a virtual machine or to a user-space driver.
func IsVFIO(driver string) bool {
	return strings.Contains(strings.ReplaceAll(driver, "_", "-"), "vfio-pci")
}
