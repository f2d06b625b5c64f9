package driver

import (
	"cmp"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

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
	Before     binding.State  `json:"before,omitzero"`            // if there is a Driver: what the function had before, and gets back

	// Former are nodes that the function had alone and no longer has, ascending by path. A
	// container of the claim that started earlier may still open them, so no other claim gets
	// a function with one of these devices.
	Former []devnode.Node `json:"former,omitempty"`
	// Lost says that no container of the claim can start: the function is gone, or what it has
	// now is not known to be the claim's alone.
	Lost bool `json:"lost,omitempty"`
}

var _ Kind = (*FunctionShare)(nil)

func (f *FunctionShare) cpus() *cpuset.Set     { return nil }
func (f *FunctionShare) mems() cpuset.Set      { return cpuset.Set{} }
func (f *FunctionShare) binds() cpuset.Set     { return cpuset.Set{} }
func (f *FunctionShare) kernelExclusive() bool { return false }
func (f *FunctionShare) pinned() bool          { return false }
func (f *FunctionShare) interfaces() []string  { return f.Interfaces }

func (f *FunctionShare) equal(other Kind) bool {
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

// excludes reports whether the two cannot be held at the same time: they are the same,
// or one is a virtual function of the other.
func (f *FunctionShare) excludes(other *FunctionShare) bool {
	return f.Address == other.Address || f.Address == other.PhysFn || f.PhysFn == other.Address
}

func (f *FunctionShare) hold(held *held) (twice string) {
	if slices.ContainsFunc(held.functions, f.excludes) {
		twice = fmt.Sprintf("PCI function %s is", f.Address)
	}
	held.functions = append(held.functions, f)
	return twice
}

func (f *FunctionShare) conflict(other Kind) string {
	if o, same := other.(*FunctionShare); same && f.excludes(o) {
		return fmt.Sprintf("PCI function %s is", o.Address)
	}
	return ""
}

func (f *FunctionShare) honoured(machine *numa.Machine, _ cpuset.Set) bool { return !f.gone(machine) }

func (f *FunctionShare) stray(_ string, machine *numa.Machine, _ []zones.Zone) bool {
	return f.gone(machine)
}

// gone reports whether the machine does not have the function any more.
func (f *FunctionShare) gone(machine *numa.Machine) bool {
	return !slices.ContainsFunc(machine.PCI, func(there numa.PCIFunction) bool { return there.Address == f.Address })
}

func (f *FunctionShare) fault(machine *numa.Machine) (why string) {
	if f.gone(machine) {
		return fmt.Sprintf("PCI function %s is gone", f.Address)
	}
	for i := range machine.PCI {
		if there := &machine.PCI[i]; there.Address == f.Address {
			_, why = attached.Fault(*machine, there)
		}
	}
	if why == "" && f.Lost {
		return fmt.Sprintf("PCI function %s has other device nodes than before, which containers of another claim may have: no container of the claim can start", f.Address)
	}
	return why
}

// withheld returns the device of a function that is gone. It is published until the
// claim ends, so that users who look at the pool see what became of it.
func (f *FunctionShare) withheld(device string) ([]zones.Held, []resourceapi.Device) {
	return nil, []resourceapi.Device{{
		Name: device, Attributes: f.known(), Taints: []resourceapi.DeviceTaint{faultTaint(deviceclasses.FaultGone)},
	}}
}

// refreshed reads the function again: another kernel driver may be bound, or a drive
// may have a new namespace.
func (f *FunctionShare) refreshed(d *Driver, claimUID types.UID, wish wish) (Kind, error) {
	want := wish.wanted.(functionWish)
	want.driver = cmp.Or(f.Driver, want.driver)
	now, err := d.attach(claimUID, wish.device, want)
	if err != nil {
		return nil, fmt.Errorf("request %s: %w", wish.request, err)
	}
	now.follow(f)
	return now, nil
}

// A function has no CPUs, so it changes the scope of no other share and has none itself.
func (f *FunctionShare) scoped() scoped        { return scoped{recorded: true} }
func (f *FunctionShare) withScope(string) Kind { return f }

func (f *FunctionShare) record(share *recordedShare) { share.Function = f }

func (f *FunctionShare) appendText(text []byte) []byte {
	return appendField(text, "function", f)
}

func (f *FunctionShare) spec(Exclusivity) cdi.ShareKind {
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
