// Package devnode finds the device nodes and network interfaces through which programs
// reach a PCI function, as its driver provides them at this moment. It reads sysfs
// through an fs.FS and opens no device.
package devnode

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// ErrGone means that the machine no longer has a function with this address.
var ErrGone = errors.New("the machine no longer has it")

// The types of device nodes, as mknod(1) spells them.
const (
	TypeBlock     = "b"
	TypeCharacter = "c"
)

// Node is a device node that a container can get.
type Node struct {
	Path  string `json:"path"` // below /dev
	Type  string `json:"type"` // TypeBlock or TypeCharacter
	Major uint32 `json:"major"`
	Minor uint32 `json:"minor"`
}

// Validate refuses a node that no kernel creates: with a path that is not below /dev,
// with another type, or with numbers that no device has.
func (n Node) Validate() error {
	if name, below := strings.CutPrefix(n.Path, devFolder); !below || !isDeviceName(name) {
		return fmt.Errorf("device node path %q: want one below %s", n.Path, devFolder)
	}
	return n.validateNumber()
}

func (n Node) validateNumber() error {
	if types := []string{TypeBlock, TypeCharacter}; !slices.Contains(types, n.Type) {
		return fmt.Errorf("device node type %q: allowed are %s", n.Type, strings.Join(types, ", "))
	}
	if n.Major == 0 || n.Major > maxMajor || n.Minor > maxMinor {
		return fmt.Errorf("device node number %d:%d: allowed are 1:0 to %d:%d", n.Major, n.Minor, maxMajor, maxMinor)
	}
	return nil
}

// Access is how programs reach a function.
type Access struct {
	PhysFn     string   // address of its physical function; "" if it is not a virtual function
	Nodes      []Node   // nodes of the function alone, by path; with VFIO also the node of its IOMMU group
	Shared     []Node   // nodes that programs also need, and that other functions share, by path
	Interfaces []string // network interfaces in the network namespace in which sysfs is mounted
}

// All returns the nodes that a container of the function needs, by path.
func (a Access) All() []Node {
	all := slices.Concat(a.Nodes, a.Shared)
	slices.SortFunc(all, byPath)
	return all
}

func byPath(a, b Node) int { return cmp.Compare(a.Path, b.Path) }

// Read reads how programs reach a function. Root is the folder above sys. The error is
// [ErrGone] if there is no such function. A function has neither nodes nor interfaces
// if it has no driver, or if its driver creates no devices that this package knows.
func Read(root fs.FS, address string) (Access, error) {
	if !numa.IsPCIAddress(address) {
		return Access{}, fmt.Errorf("PCI address %q: want one such as 0000:3b:00.0", address)
	}
	r := reader{root: root, folder: "sys/bus/pci/devices/" + address}
	if _, err := fs.Stat(root, r.folder); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = ErrGone
		}
		return Access{}, fmt.Errorf("PCI function %s: %w", address, err)
	}
	if err := r.read(); err != nil {
		return Access{}, fmt.Errorf("PCI function %s: %w", address, err)
	}
	slices.SortFunc(r.access.Nodes, byPath)
	r.access.Nodes = slices.Compact(r.access.Nodes)
	slices.SortFunc(r.access.Shared, byPath)
	return r.access, nil
}

// reader reads one function.
type reader struct {
	root   fs.FS
	folder string
	access Access
}

func (r *reader) read() error {
	if physfn, ok := r.link("physfn"); ok {
		r.access.PhysFn = physfn
	}
	driver, _ := r.link("driver")
	if numa.IsVFIO(driver) {
		return r.readVFIO()
	}
	folders := []string{r.folder}
	if driver == "virtio-pci" { // the devices are one level further down
		names, err := r.entries(r.folder)
		if err != nil {
			return err
		}
		for _, name := range names {
			if strings.HasPrefix(name, "virtio") {
				folders = append(folders, r.folder+"/"+name)
			}
		}
	}
	for _, folder := range folders {
		if err := r.readClasses(folder); err != nil {
			return err
		}
	}
	if driver == "amdgpu" && len(r.access.Nodes) > 0 {
		return r.addShared("sys/class/kfd/kfd")
	}
	return nil
}

// readClasses reads the devices that the driver created for the function, by device
// class.
func (r *reader) readClasses(folder string) error {
	var err error
	if r.access.Interfaces, err = r.appendEntries(r.access.Interfaces, folder+"/net"); err != nil {
		return err
	}
	for _, name := range r.access.Interfaces {
		if !IsInterfaceName(name) {
			return fmt.Errorf("%s/net: %q is not a network interface name", folder, name)
		}
	}
	for _, class := range []string{"accel", "block", "drm", "infiniband_mad", "infiniband_verbs", "nvme"} {
		names, err := r.entries(folder + "/" + class)
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := r.addOwn(folder + "/" + class + "/" + name); err != nil {
				return err
			}
			if class == "nvme" {
				err = r.readController(folder + "/" + class + "/" + name)
			} else if class == "infiniband_verbs" {
				err = r.addShared("sys/class/misc/rdma_cm")
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// readController adds the namespaces of an NVMe controller. A namespace with several
// paths has a hidden disk for each path, such as nvme0c1n1; programs open nvme0n1.
func (r *reader) readController(folder string) error {
	names, err := r.entries(folder)
	if err != nil {
		return err
	}
	for _, name := range names {
		if namespace, ok := numa.Namespace(name); ok {
			err = r.addOwn("sys/class/block/" + namespace)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readVFIO adds the node of the function's IOMMU group and, if the kernel has them, the
// nodes of the function itself. Documentation/driver-api/vfio.rst.
func (r *reader) readVFIO() error {
	if group, ok := r.link("iommu_group"); ok {
		if err := r.addOwn("sys/class/vfio/" + group); err != nil {
			return err
		}
		if len(r.access.Nodes) > 0 {
			if err := r.addShared("sys/class/misc/vfio"); err != nil {
				return err
			}
		}
	}
	names, err := r.entries(r.folder + "/vfio-dev")
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := r.addOwn(r.folder + "/vfio-dev/" + name); err != nil {
			return err
		}
		if err := r.addShared("sys/class/misc/iommu"); err != nil {
			return err
		}
	}
	if len(r.access.Nodes) == 0 {
		return errors.New("a VFIO driver is bound, but neither the function nor its IOMMU group has a device node")
	}
	return nil
}

func (r *reader) addOwn(folder string) error {
	node, ok, err := r.node(folder)
	if ok {
		r.access.Nodes = append(r.access.Nodes, node)
	}
	return err
}

// addShared adds a shared node, but only once.
func (r *reader) addShared(folder string) error {
	node, ok, err := r.node(folder)
	if ok && !slices.Contains(r.access.Shared, node) {
		r.access.Shared = append(r.access.Shared, node)
	}
	return err
}

// link returns the last element of the target of one of the function's links.
func (r *reader) link(name string) (target string, ok bool) {
	target, err := fs.ReadLink(r.root, r.folder+"/"+name)
	return path.Base(target), err == nil
}

// entries returns the names in a folder; none if there is no such folder.
func (r *reader) entries(folder string) ([]string, error) { return r.appendEntries(nil, folder) }

func (r *reader) appendEntries(names []string, folder string) ([]string, error) {
	entries, err := fs.ReadDir(r.root, folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names, nil
}
