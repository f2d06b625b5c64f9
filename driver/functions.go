package driver

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/cdi/foreign"
	"github.com/dra-driver-numa/dra-driver-numa/driver/binding"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/devnode"
)

// functions reads PCI functions of the host, and changes their kernel drivers.
type functions struct {
	config     *Config
	specs      []fs.FS // the directories in which other programs have CDI specs
	othersSeen string  // these CDI specs, as othersChanged last saw them
}

// sharesNode reports whether both functions have the same device node. They are then
// bound to VFIO and in one IOMMU group. It reads the nodes of the held function again,
// because their names may have changed since they were recorded.
func (u *functions) sharesNode(access devnode.Access, held *ledger.FunctionShare) bool {
	now, err := devnode.Read(u.config.Machine, held.Address)
	return err == nil && slices.ContainsFunc(now.Nodes, func(node devnode.Node) bool { return slices.Contains(access.Nodes, node) })
}

// otherDevice returns the CDI device that another program defined on the host for a
// function. The names of a function that VFIO has do not count: they stand for what its own
// driver provides.
func (u *functions) otherDevice(machine *numa.Machine, f *ledger.FunctionShare, access devnode.Access) (id string, err error) {
	now, err := binding.Read(u.config.Machine, f.Address)
	if err != nil {
		return "", err
	}
	names := []string{f.Address}
	for i := range machine.PCI {
		if read := &machine.PCI[i]; read.Address == f.Address && read.UUID != "" {
			names = append(names, read.UUID)
		}
	}
	var known foreign.Function
	if !numa.IsVFIO(now.Driver) {
		known.Names = names
	}
	for _, node := range access.Nodes {
		known.Nodes = append(known.Nodes, node.Path)
	}
	ofOthers := sync.OnceValue(func() map[string]bool { return u.nodesBeside(machine, f.Address) })
	return foreign.Find(u.specs, known, func(path string) bool { return ofOthers()[path] })
}

// nodesBeside returns the device nodes of all other functions.
func (u *functions) nodesBeside(machine *numa.Machine, address string) map[string]bool {
	paths := make(map[string]bool)
	for i := range machine.PCI {
		if other := machine.PCI[i].Address; other != address {
			access, _ := devnode.Read(u.config.Machine, other) // a function that cannot be read has no nodes
			for _, node := range access.Nodes {
				paths[node.Path] = true
			}
		}
	}
	return paths
}

// othersChanged reports whether the CDI specs of other programs may have changed since it was
// last asked. To read all of them takes long.
func (u *functions) othersChanged(machine *numa.Machine) bool {
	var seen strings.Builder
	fmt.Fprintf(&seen, "%p", machine)
	for _, dir := range u.specs {
		entries, _ := fs.ReadDir(dir, ".")
		for _, entry := range entries {
			if info, err := entry.Info(); err == nil && !cdi.IsOurs(entry.Name()) {
				fmt.Fprintf(&seen, " %s %d %s", entry.Name(), info.Size(), info.ModTime())
			}
		}
	}
	before := u.othersSeen
	u.othersSeen = seen.String()
	return u.othersSeen != before
}

// reread returns the function as it is now. The other grants are those of the list. Fresh says
// whether CDI specs of other programs may have changed.
func (u *functions) reread(machine *numa.Machine, claim types.UID, f *ledger.FunctionShare, list ledger.List, fresh func() bool) *ledger.FunctionShare {
	now := *f
	access, err := devnode.Read(u.config.Machine, f.Address)
	switch {
	case errors.Is(err, devnode.ErrGone) || u.replaced(f):
		now.Nodes, now.Lost = nil, true
	case err != nil || u.isRebinding(f):
		return f // the next look knows more; meanwhile the hook compares
	default:
		if len(access.Interfaces) > 0 { // those in the network namespace of a pod are not seen
			now.Interfaces = access.Interfaces
		}
		if f.CDIDevice == "" {
			now.Nodes = access.All()
		}
		if f.CDIDevice == "" || fresh() {
			now.Lost = u.deviceOfOthers(machine, f, access) || list.NodeOfOther(claim, access.Nodes) != ""
		}
		if now.Lost {
			now.Nodes = nil
		}
	}
	now.Follow(f)
	return &now
}

// replaced reports whether a device of another kind has the address of the function.
func (u *functions) replaced(f *ledger.FunctionShare) bool {
	now, err := numa.ReadFunctionKind(u.config.Machine, f.Address)
	return err == nil && string(now) != f.Kind
}

// isRebinding reports whether the function does not have the kernel driver that its claim
// wants.
func (u *functions) isRebinding(f *ledger.FunctionShare) bool {
	if f.Driver == "" {
		return false
	}
	now, err := binding.Read(u.config.Machine, f.Address)
	return err != nil || now.Driver != f.Driver
}

// deviceOfOthers reports whether the CDI device of another program that the claim has does not
// stand for the function any more: the program may name devices by an index.
func (u *functions) deviceOfOthers(machine *numa.Machine, f *ledger.FunctionShare, access devnode.Access) bool {
	if f.CDIDevice == "" {
		return false
	}
	now, err := u.otherDevice(machine, f, access)
	return err == nil && now != f.CDIDevice
}

// restore gives a function the kernel driver back that it had before its claim, if that is known.
func (u *functions) restore(f *ledger.FunctionShare) error {
	if f.Before.Driver == f.Driver || u.replaced(f) {
		return nil
	}
	if u.config.Drivers != nil {
		return u.config.Drivers.Restore(f.Address, f.Before)
	}
	now, err := binding.Read(u.config.Machine, f.Address)
	switch {
	case errors.Is(err, devnode.ErrGone):
		return nil
	case err == nil && now != f.Before:
		return fmt.Errorf("PCI function %s: this node binds no drivers any more: set devices.bindDrivers in its NodeConfig", f.Address)
	}
	return err
}
