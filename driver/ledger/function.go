package ledger

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/cdi/foreign"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
	"github.com/dra-driver-numa/dra-driver-numa/driver/binding"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/devnode"
)

// FunctionShare is the PCI function that a share holds, and what its containers get.
type FunctionShare struct {
	Address    string         `json:"address"`                    // 0000:3b:00.0
	Kind       string         `json:"kind"`                       // as it was published
	PhysFn     string         `json:"physicalFunction,omitempty"` // address of the physical function; for a virtual function only
	Nodes      []devnode.Node `json:"nodes,omitempty"`            // ascending by path; none if there is a CDIDevice
	Interfaces []string       `json:"interfaces,omitempty"`       // network interfaces, by their names on the host
	CDIDevice  string         `json:"cdiDevice,omitempty"`        // from another driver's CDI spec: vendor/class=name
	Driver     string         `json:"driver,omitempty"`           // kernel driver that is bound for the claim; "" if the function keeps its own
	Before     binding.State  `json:"before,omitzero"`            // if there is a Driver: what the function had before, and gets back; with the same Driver, that is unknown since a boot

	// Former are nodes that the function had alone and no longer has, ascending by path. A
	// container of the claim that started earlier may still open them, so no other claim gets
	// a function with one of these devices.
	Former []devnode.Node `json:"former,omitempty"`
	// Lost says that no container of the claim can start: the function is gone, or what it has
	// now is not known to be the claim's alone.
	Lost bool `json:"lost,omitempty"`
}

var _ Kind = (*FunctionShare)(nil)

// Equal compares every field.
func (f *FunctionShare) Equal(other Kind) bool {
	o, same := other.(*FunctionShare)
	return same && f.Address == o.Address && f.Kind == o.Kind && f.PhysFn == o.PhysFn && f.CDIDevice == o.CDIDevice &&
		f.Driver == o.Driver && f.Before == o.Before &&
		slices.Equal(f.Nodes, o.Nodes) && slices.Equal(f.Interfaces, o.Interfaces) && slices.Equal(f.Former, o.Former) && f.Lost == o.Lost
}

func (f *FunctionShare) validate() error {
	if !numa.IsPCIAddress(f.Address) {
		return fmt.Errorf("function.address: %q, want one such as 0000:3b:00.0", f.Address)
	}
	if f.PhysFn != "" && !numa.IsPCIAddress(f.PhysFn) {
		return fmt.Errorf("function.physicalFunction: %q, want one such as 0000:3b:00.0", f.PhysFn)
	}
	for _, node := range f.Nodes {
		if err := node.Validate(); err != nil {
			return fmt.Errorf("function.nodes: %w", err)
		}
	}
	for _, node := range f.Former {
		if err := node.Validate(); err != nil {
			return fmt.Errorf("function.former: %w", err)
		}
	}
	if f.CDIDevice != "" {
		if err := foreign.Validate(f.CDIDevice); err != nil {
			return err
		}
	}
	if err := (deviceclasses.DeviceConfig{Driver: f.Driver}).Validate(); err != nil {
		return fmt.Errorf("function.%w", err)
	}
	if f.Driver == "" && f.Before != (binding.State{}) {
		return fmt.Errorf("function.before: %+v without a driver", f.Before)
	}
	if err := f.Before.Validate(); err != nil {
		return fmt.Errorf("function.before: %w", err)
	}
	return nil
}

// Excludes reports whether the two cannot be held at the same time: they are the same,
// or one is a virtual function of the other.
func (f *FunctionShare) Excludes(other *FunctionShare) bool {
	return f.Address == other.Address || f.Address == other.PhysFn || f.PhysFn == other.Address
}

func (f *FunctionShare) hold(held *held) (twice string) {
	if slices.ContainsFunc(held.functions, f.Excludes) {
		twice = fmt.Sprintf("PCI function %s is", f.Address)
	}
	held.functions = append(held.functions, f)
	return twice
}

func (f *FunctionShare) conflict(other Kind) string {
	if o, same := other.(*FunctionShare); same && f.Excludes(o) {
		return fmt.Sprintf("PCI function %s is", o.Address)
	}
	return ""
}

func (f *FunctionShare) honoured(machine *numa.Machine, _ cpuset.Set) bool {
	return f.find(machine) != nil
}

func (f *FunctionShare) stray(_ string, machine *numa.Machine, _ []zones.Zone) bool {
	return f.find(machine) == nil
}

// find returns the function; nil if the machine does not have it any more. A device of another
// kind may have its address: it is in the slot now, or a boot has numbered the buses in another way.
func (f *FunctionShare) find(machine *numa.Machine) *numa.PCIFunction {
	i := slices.IndexFunc(machine.PCI, func(there numa.PCIFunction) bool { return there.Address == f.Address && string(there.Kind) == f.Kind })
	if i < 0 {
		return nil
	}
	return &machine.PCI[i]
}

func (f *FunctionShare) fault(machine *numa.Machine) string {
	there := f.find(machine)
	if there == nil {
		return deviceclasses.FaultHealth(deviceclasses.FaultGone, f.Address)
	}
	_, why := attached.Fault(*machine, there)
	if why == "" && f.Lost {
		return deviceclasses.FaultHealth(deviceclasses.FaultNodesTaken, f.Address)
	}
	return why
}

// withheld returns the device of a function that is gone. It is published until the
// claim ends, so that users who look at the pool see what became of it.
func (f *FunctionShare) withheld(device string) ([]zones.Held, []resourceapi.Device) {
	return nil, []resourceapi.Device{{
		Name: device, Attributes: f.known(), Taints: []resourceapi.DeviceTaint{deviceclasses.FaultTaint(deviceclasses.FaultGone)},
	}}
}

func (f *FunctionShare) record(share *recordedShare) { share.Function = f }

func (f *FunctionShare) appendText(text []byte) []byte {
	return appendField(text, "function", f)
}

func (f *FunctionShare) spec(bool) cdi.ShareKind {
	return &cdi.Function{PCI: f.Address, Nodes: f.Nodes, Interfaces: f.Interfaces, Lost: f.Lost}
}

func (f *FunctionShare) cdiDevices(own string) []string {
	if f.CDIDevice == "" {
		return []string{own}
	}
	return []string{own, f.CDIDevice}
}

func (f *FunctionShare) status() any {
	status := deviceclasses.FunctionStatus{PCI: f.Address, CDIDevice: f.CDIDevice, Interfaces: f.Interfaces, Driver: f.Driver}
	for _, node := range f.Nodes {
		status.Nodes = append(status.Nodes, node.Path)
	}
	return status
}

func (f *FunctionShare) interfaces() []string { return f.Interfaces }

// hasDevice reports whether containers of the claim may open one of these devices.
func (f *FunctionShare) hasDevice(nodes []devnode.Node) bool {
	for _, own := range slices.Concat(f.Nodes, f.Former) {
		if !own.IsShared() && slices.ContainsFunc(nodes, func(n devnode.Node) bool { return n.Number() == own.Number() }) {
			return true
		}
	}
	return false
}

// Follow sets which nodes containers may still have from before.
func (f *FunctionShare) Follow(before *FunctionShare) {
	f.Former = nil
	for _, node := range slices.Concat(before.Former, before.Nodes) {
		has := func(n devnode.Node) bool { return n.Number() == node.Number() }
		if !node.IsShared() && !slices.ContainsFunc(f.Nodes, has) && !slices.ContainsFunc(f.Former, has) {
			f.Former = append(f.Former, node)
		}
	}
	slices.SortFunc(f.Former, func(a, b devnode.Node) int { return strings.Compare(a.Path, b.Path) })
}
