package driver

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/foreign"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/devnode"
)

// functionWish is the PCI function that was allocated to a claim.
type functionWish struct {
	address string
	driver  string // kernel driver that the claim wants; "" for the one that the function has
	bound   string // kernel driver that is on record for the claim; "" for none
}

func (w functionWish) configured(d *Driver, ofClass, config deviceclasses.RequestConfig) (wanted, error) {
	w.driver = config.Device.Driver
	switch {
	case w.driver == "":
	case d.config.Drivers == nil:
		return w, fmt.Errorf("driver %s: this node binds no drivers: devices.bindDrivers is not set in its NodeConfig", w.driver)
	case w.driver != ofClass.Device.Driver && w.driver != w.bound && !d.config.ClaimsBind:
		return w, fmt.Errorf("driver %s: only a DeviceClass can ask for a driver on this node: devices.bindDrivers is %s in its NodeConfig", w.driver, deviceclasses.BindClass)
	}
	return w, nil
}

func (w functionWish) fulfilledBy(kind ledger.Kind) bool {
	share, same := kind.(*ledger.FunctionShare)
	return same && share.Address == w.address
}

func (w functionWish) plan(d *Driver, claimUID types.UID, wish wish, _ cpuset.Set) (ledger.Kind, error) {
	share, err := d.attach(claimUID, wish.device, w)
	if err != nil {
		return nil, err
	}
	return share, nil
}

// refreshed reads the function again: another kernel driver may be bound, or a drive
// may have a new namespace.
func (w functionWish) refreshed(d *Driver, claimUID types.UID, wish wish, kind ledger.Kind) (ledger.Kind, error) {
	f := kind.(*ledger.FunctionShare)
	w.driver = cmp.Or(f.Driver, w.driver)
	now, err := d.attach(claimUID, wish.device, w)
	if err != nil {
		return nil, fmt.Errorf("request %s: %w", wish.request, err)
	}
	now.Follow(f)
	return now, nil
}

// attach reads a function as it is now. If another kernel driver has to be bound first,
// the result has no nodes or interfaces yet. attach returns an error if another claim
// has a function that excludes this one, or that has the same device node.
func (d *Driver) attach(claimUID types.UID, device string, wish functionWish) (*ledger.FunctionShare, error) {
	access, err := devnode.Read(d.config.Machine, wish.address)
	if err != nil {
		return nil, err
	}
	kind, _, _ := attached.Parse(device)
	f := &ledger.FunctionShare{Address: wish.address, Kind: kind, PhysFn: access.PhysFn}
	for _, other := range d.grants {
		if other.UID == claimUID {
			continue
		}
		for _, held := range other.Functions() {
			if f.Excludes(held) || d.sharesNode(access, held) {
				return nil, fmt.Errorf("PCI function %s: claim %s has PCI function %s", f.Address, other.FullName(), held.Address)
			}
		}
	}
	if other := d.grants.NodeOfOther(claimUID, access.Nodes); other != "" {
		return nil, fmt.Errorf("PCI function %s: its device nodes may be open in containers: %s", f.Address, other)
	}
	if wish.driver != "" {
		if isBound, err := d.wantDriver(claimUID, wish.driver, f); err != nil || !isBound {
			return f, err // its nodes and interfaces are known when the driver is bound
		}
	}
	f.Interfaces = access.Interfaces
	if f.CDIDevice, err = d.otherDevice(f, access); err != nil {
		return nil, err
	}
	if f.CDIDevice == "" {
		f.Nodes = access.All()
	}
	return f, nil
}

// sharesNode reports whether both functions have the same device node. They are then
// bound to VFIO and in one IOMMU group. It reads the nodes of the held function again,
// because their names may have changed since they were recorded.
func (d *Driver) sharesNode(access devnode.Access, held *ledger.FunctionShare) bool {
	now, err := devnode.Read(d.config.Machine, held.Address)
	return err == nil && slices.ContainsFunc(now.Nodes, func(node devnode.Node) bool { return slices.Contains(access.Nodes, node) })
}

// otherDevice returns the CDI device that another program defined on the host for a
// function.
func (d *Driver) otherDevice(f *ledger.FunctionShare, access devnode.Access) (id string, err error) {
	known := foreign.Function{Names: []string{f.Address}}
	for i := range d.machine.PCI {
		if read := &d.machine.PCI[i]; read.Address == f.Address && read.UUID != "" {
			known.Names = append(known.Names, read.UUID)
		}
	}
	for _, node := range access.Nodes {
		known.Nodes = append(known.Nodes, node.Path)
	}
	ofOthers := sync.OnceValue(func() map[string]bool { return d.nodesBeside(f.Address) })
	return foreign.Find(d.otherSpecs(), known, func(path string) bool { return ofOthers()[path] })
}

// otherSpecs are the directories in which other programs have CDI specs.
func (d *Driver) otherSpecs() []fs.FS {
	dirs := []fs.FS{d.specFiles}
	if d.config.StaticSpecs != nil {
		dirs = append(dirs, d.config.StaticSpecs)
	}
	return dirs
}

// nodesBeside returns the device nodes of all other functions.
func (d *Driver) nodesBeside(address string) map[string]bool {
	paths := make(map[string]bool)
	for i := range d.machine.PCI {
		if other := d.machine.PCI[i].Address; other != address {
			access, _ := devnode.Read(d.config.Machine, other) // a function that cannot be read has no nodes
			for _, node := range access.Nodes {
				paths[node.Path] = true
			}
		}
	}
	return paths
}

// addressOf finds the function that a device name stands for; ok is false if it stands
// for none. A claim may have a function that is no longer published.
func (d *Driver) addressOf(claimUID types.UID, device string) (address string, ok bool, err error) {
	_, address, ok = attached.Parse(device)
	if !ok {
		return "", false, nil
	}
	recorded, _ := d.grants.Find(claimUID)
	if _, published := d.devices[device]; published || recorded.Function(address) != nil {
		return address, true, nil
	}
	if _, err := devnode.Read(d.config.Machine, address); err != nil {
		return "", true, err
	}
	return "", true, fmt.Errorf("PCI function %s: this node does not publish it", address)
}
