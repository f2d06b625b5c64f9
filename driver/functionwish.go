package driver

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/devnode"
)

// functionWish is the PCI function that was allocated to a claim.
type functionWish struct {
	address string
	driver  string // kernel driver that the claim wants; "" for the one that the function has
	bound   string // kernel driver that is on record for the claim; "" for none
}

func (w functionWish) configured(p *planner, ofClass, config deviceclasses.RequestConfig) (wanted, error) {
	w.driver = config.Device.Driver
	switch {
	case w.driver == "":
	case p.config.Drivers == nil:
		return w, fmt.Errorf("driver %s: this node binds no drivers: devices.bindDrivers is not set in its NodeConfig", w.driver)
	case w.driver != ofClass.Device.Driver && w.driver != w.bound && !p.config.ClaimsBind:
		return w, fmt.Errorf("driver %s: only a DeviceClass can ask for a driver on this node: devices.bindDrivers is %s in its NodeConfig", w.driver, deviceclasses.BindClass)
	}
	return w, nil
}

func (w functionWish) fulfilledBy(kind ledger.Kind) bool {
	share, same := kind.(*ledger.FunctionShare)
	return same && share.Address == w.address
}

func (w functionWish) plan(p *planner, claimUID types.UID, wish wish, _ cpuset.Set) (ledger.Kind, error) {
	share, err := p.attach(claimUID, wish.device, w)
	if err != nil {
		return nil, err
	}
	return share, nil
}

// refreshed reads the function again: another kernel driver may be bound, or a drive
// may have a new namespace.
func (w functionWish) refreshed(p *planner, claimUID types.UID, wish wish, kind ledger.Kind) (ledger.Kind, error) {
	f := kind.(*ledger.FunctionShare)
	w.driver = cmp.Or(f.Driver, w.driver)
	now, err := p.attach(claimUID, wish.device, w)
	if err != nil {
		return nil, fmt.Errorf("request %s: %w", wish.request, err)
	}
	now.Follow(f)
	return now, nil
}

// attach reads a function as it is now. If another kernel driver has to be bound first,
// the result has no nodes or interfaces yet. attach returns an error if another claim
// has a function that excludes this one, or that has the same device node.
func (p *planner) attach(claimUID types.UID, device string, wish functionWish) (*ledger.FunctionShare, error) {
	access, err := devnode.Read(p.config.Machine, wish.address)
	if err != nil {
		return nil, err
	}
	kind, _, _ := attached.Parse(device)
	if now, err := numa.ReadFunctionKind(p.config.Machine, wish.address); err != nil || string(now) != kind {
		return nil, cmp.Or(err, unpublished(wish.address))
	}
	f := &ledger.FunctionShare{Address: wish.address, Kind: kind, PhysFn: access.PhysFn}
	for _, other := range p.grants {
		if other.UID == claimUID {
			continue
		}
		for _, held := range other.Functions() {
			if f.Excludes(held) || p.functions.sharesNode(access, held) {
				return nil, fmt.Errorf("PCI function %s: claim %s has PCI function %s", f.Address, other.FullName(), held.Address)
			}
		}
	}
	if other := p.grants.NodeOfOther(claimUID, access.Nodes); other != "" {
		return nil, fmt.Errorf("PCI function %s: its device nodes may be open in containers: %s", f.Address, other)
	}
	if wish.driver != "" {
		if isBound, err := p.wantDriver(claimUID, wish.driver, f); err != nil || !isBound {
			return f, err // its nodes and interfaces are known when the driver is bound
		}
	}
	f.Interfaces = access.Interfaces
	if f.CDIDevice, err = p.functions.otherDevice(p.machine, f, access); err != nil {
		return nil, err
	}
	if f.CDIDevice == "" {
		f.Nodes = access.All()
	}
	return f, nil
}

// addressOf finds the function that a device name stands for; ok is false if it stands
// for none. A claim may have a function that is no longer published.
func (p *planner) addressOf(claimUID types.UID, device string) (address string, ok bool, err error) {
	kind, address, ok := attached.Parse(device)
	if !ok {
		return "", false, nil
	}
	recorded, _ := p.grants.Find(claimUID)
	held := recorded.Function(address)
	if _, published := p.devices[device]; published || held != nil && held.Kind == kind {
		return address, true, nil
	}
	if _, err := devnode.Read(p.config.Machine, address); err != nil {
		return "", true, err
	}
	return "", true, unpublished(address)
}

func unpublished(address string) error {
	return fmt.Errorf("PCI function %s: this node does not publish it", address)
}
