package driver

import (
	"fmt"
	"io/fs"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/foreign"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/devnode"
)

// functionWish is the PCI function that a claim was allocated.
type functionWish struct {
	address string
	driver  string // kernel driver that the function is to have; "" for whichever it has
}

func (w functionWish) configured(d *Driver, config deviceclasses.RequestConfig) (wanted, error) {
	w.driver = config.Device.Driver
	if w.driver != "" && d.config.Drivers == nil {
		return w, fmt.Errorf("driver %s: this node binds none: devices.bindDrivers is not set in its NodeConfig", w.driver)
	}
	return w, nil
}

func (w functionWish) fulfilledBy(kind Kind) bool {
	share, same := kind.(*FunctionShare)
	return same && share.Address == w.address
}

func (w functionWish) completed(kind Kind) Kind { return kind }

func (w functionWish) plan(d *Driver, claimUID types.UID, wish wish, _ cpuset.Set) (Kind, error) {
	share, err := d.attach(claimUID, wish.device, w)
	if err != nil {
		return nil, err
	}
	return share, nil
}

// functions are those of a grant.
func (g *Grant) functions() (functions []*FunctionShare) {
	for i := range g.Shares {
		if f := g.Shares[i].Function(); f != nil {
			functions = append(functions, f)
		}
	}
	return functions
}

// function is that of an address; nil if the grant has none.
func (g *Grant) function(address string) *FunctionShare {
	for _, f := range g.functions() {
		if f.Address == address {
			return f
		}
	}
	return nil
}

// attach reads a function as it is now, or as it is until another driver is bound.
// The claim gets it unless another one has what excludes it.
func (d *Driver) attach(claimUID types.UID, device string, wish functionWish) (*FunctionShare, error) {
	access, err := devnode.Read(d.config.Machine, wish.address)
	if err != nil {
		return nil, err
	}
	kind, _, _ := attached.Parse(device)
	f := &FunctionShare{Address: wish.address, Kind: kind, PhysFn: access.PhysFn}
	for _, other := range d.grants {
		if other.UID == claimUID {
			continue
		}
		for _, held := range other.functions() {
			if f.excludes(held) || d.sharesNode(access, held) {
				return nil, fmt.Errorf("PCI function %s: claim %s has PCI function %s", f.Address, other.name(), held.Address)
			}
		}
	}
	if wish.driver != "" {
		if isBound, err := d.wantDriver(claimUID, wish.driver, f); err != nil || !isBound {
			return f, err // what that makes of it is known when it is bound
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

// sharesNode reports whether a node is of both functions, which are then in one
// IOMMU group and bound to VFIO. Names of nodes may be others than when they were
// put on record.
func (d *Driver) sharesNode(access devnode.Access, held *FunctionShare) bool {
	now, err := devnode.Read(d.config.Machine, held.Address)
	return err == nil && slices.ContainsFunc(now.Nodes, func(node devnode.Node) bool { return slices.Contains(access.Nodes, node) })
}

// otherDevice is the CDI device that somebody else has on the host for a function.
func (d *Driver) otherDevice(f *FunctionShare, access devnode.Access) (id string, err error) {
	known := foreign.Function{Names: []string{f.Address}}
	for i := range d.machine.PCI {
		if read := &d.machine.PCI[i]; read.Address == f.Address && read.UUID != "" {
			known.Names = append(known.Names, read.UUID)
		}
	}
	for _, node := range access.Nodes {
		known.Nodes = append(known.Nodes, node.Path)
	}
	dirs := []fs.FS{d.specFiles}
	if d.config.StaticSpecs != nil {
		dirs = append(dirs, d.config.StaticSpecs)
	}
	ofOthers := sync.OnceValue(func() map[string]bool { return d.nodesBeside(f.Address) })
	return foreign.Find(dirs, known, func(path string) bool { return ofOthers()[path] })
}

// nodesBeside are the nodes of all other functions.
func (d *Driver) nodesBeside(address string) map[string]bool {
	paths := make(map[string]bool)
	for i := range d.machine.PCI {
		if other := d.machine.PCI[i].Address; other != address {
			access, _ := devnode.Read(d.config.Machine, other) // what cannot be read has no nodes
			for _, node := range access.Nodes {
				paths[node.Path] = true
			}
		}
	}
	return paths
}

// addressOf finds the function behind the name of a device; ok is false if it is
// the name of none. A claim may have one that is not published any more.
func (d *Driver) addressOf(claimUID types.UID, device string) (address string, ok bool, err error) {
	_, address, ok = attached.Parse(device)
	if !ok {
		return "", false, nil
	}
	recorded, _ := d.grants.find(claimUID)
	if _, published := d.devices[device]; published || recorded.function(address) != nil {
		return address, true, nil
	}
	if _, err := devnode.Read(d.config.Machine, address); err != nil {
		return "", true, err
	}
	return "", true, fmt.Errorf("PCI function %s: this node does not publish it", address)
}
