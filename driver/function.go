package driver

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"sync"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/foreign"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
	"github.com/dra-driver-numa/dra-driver-numa/driver/binding"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/devnode"
)

// Function is the PCI function that a share is, and what its containers get.
type Function struct {
	Address    string         `json:"address"`                    // 0000:3b:00.0; "" in the zero value: the share is of a zone
	Kind       attached.Kind  `json:"kind"`                       // as it was published
	PhysFn     string         `json:"physicalFunction,omitempty"` // address; of a virtual function only
	Nodes      []devnode.Node `json:"nodes,omitempty"`            // by path; none if there is a CDIDevice
	Interfaces []string       `json:"interfaces,omitempty"`       // network interfaces, by their names on the host
	CDIDevice  string         `json:"cdiDevice,omitempty"`        // of a spec that somebody else wrote, vendor/class=name
	Driver     string         `json:"driver,omitempty"`           // kernel driver that is bound for the claim; "" for whichever it had
	Before     binding.State  `json:"before,omitzero"`            // if there is a Driver: what the function had, and gets back
}

// IsZero says that the share is of a zone.
func (f Function) IsZero() bool { return f.Address == "" }

func (f Function) equal(other Function) bool {
	return f.Address == other.Address && f.Kind == other.Kind && f.PhysFn == other.PhysFn && f.CDIDevice == other.CDIDevice &&
		f.Driver == other.Driver && f.Before == other.Before &&
		slices.Equal(f.Nodes, other.Nodes) && slices.Equal(f.Interfaces, other.Interfaces)
}

// excludes reports whether the two cannot be held at the same time: they are the
// same, or one is a virtual function of the other.
func (f Function) excludes(other Function) bool {
	return f.Address == other.Address || f.Address == other.PhysFn || f.PhysFn == other.Address
}

// validate looks at what only a few values are allowed for.
func (f Function) validate() error {
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
	if f.CDIDevice != "" {
		if err := foreign.Validate(f.CDIDevice); err != nil {
			return err
		}
	}
	if err := (deviceclasses.DeviceConfig{Driver: f.Driver}).Validate(); err != nil {
		return fmt.Errorf("function.%w", err)
	}
	if f.Driver == "" && f.Before != (binding.State{}) {
		return fmt.Errorf("function.before: %+v, and no driver", f.Before)
	}
	if err := f.Before.Validate(); err != nil {
		return fmt.Errorf("function.before: %w", err)
	}
	return nil
}

// functions are those of a grant.
func (g *Grant) functions() (functions []Function) {
	for i := range g.Shares {
		if f := &g.Shares[i].Function; f.Address != "" { // not IsZero, which copies: this is done to every grant on each write
			functions = append(functions, *f)
		}
	}
	return functions
}

// heldFunctions is what grants have, while they are looked at one after the
// other. The zero value is nothing.
type heldFunctions struct{ list []Function }

// addOnce adds those of a grant; it is an error if one of them excludes another.
func (h *heldFunctions) addOnce(g *Grant) error {
	for _, f := range g.functions() {
		if slices.ContainsFunc(h.list, f.excludes) {
			return fmt.Errorf("PCI function %s is in two shares, one of claim %s", f.Address, g.name())
		}
		h.list = append(h.list, f)
	}
	return nil
}

// attach reads a function as it is now, or as it is until another driver is bound.
// The claim gets it unless another one has what excludes it.
func (d *Driver) attach(claimUID types.UID, wish wish) (Function, error) {
	access, err := devnode.Read(d.config.Machine, wish.address)
	if err != nil {
		return Function{}, err
	}
	kind, _, _ := attached.Parse(wish.device)
	f := Function{Address: wish.address, Kind: kind, PhysFn: access.PhysFn}
	for _, other := range d.grants {
		if other.UID == claimUID {
			continue
		}
		for _, held := range other.functions() {
			if f.excludes(held) || d.sharesNode(access, held) {
				return Function{}, fmt.Errorf("PCI function %s: claim %s has PCI function %s", f.Address, other.name(), held.Address)
			}
		}
	}
	if wish.driver != "" {
		if isBound, err := d.wantDriver(claimUID, wish.driver, &f); err != nil || !isBound {
			return f, err // what that makes of it is known when it is bound
		}
	}
	f.Interfaces = access.Interfaces
	if f.CDIDevice, err = d.otherDevice(f, access); err != nil {
		return Function{}, err
	}
	if f.CDIDevice == "" {
		f.Nodes = access.All()
	}
	return f, nil
}

// sharesNode reports whether a node is of both functions, which are then in one
// IOMMU group and bound to VFIO. Names of nodes may be others than when they were
// put on record.
func (d *Driver) sharesNode(access devnode.Access, held Function) bool {
	now, err := devnode.Read(d.config.Machine, held.Address)
	return err == nil && slices.ContainsFunc(now.Nodes, func(node devnode.Node) bool { return slices.Contains(access.Nodes, node) })
}

// otherDevice is the CDI device that somebody else has on the host for a function.
func (d *Driver) otherDevice(f Function, access devnode.Access) (id string, err error) {
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

// attached is the grant with its functions as they are now: another driver may be
// bound, a namespace may be new.
// The grant fulfils the wishes.
func (d *Driver) attached(grant Grant, wishes []wish) (Grant, error) {
	for i, wish := range pinned(wishes) {
		share := &grant.Shares[i]
		if share.Function.IsZero() {
			continue
		}
		wish.driver = cmp.Or(share.Function.Driver, wish.driver)
		now, err := d.attach(grant.UID, wish)
		if err != nil {
			return Grant{}, fmt.Errorf("request %s: %w", share.Request, err)
		}
		if !now.equal(share.Function) {
			grant.Shares = slices.Clone(grant.Shares) // those on record are never changed
			grant.Shares[i].Function = now
		}
	}
	return grant, nil
}

// addressOf finds the function behind the name of a device; ok is false if it is
// the name of none. A claim may have one that is not published any more.
func (d *Driver) addressOf(claimUID types.UID, device string) (address string, ok bool, err error) {
	_, address, ok = attached.Parse(device)
	if !ok {
		return "", false, nil
	}
	recorded, _ := d.grants.find(claimUID)
	if _, published := d.devices[device]; published || !recorded.function(address).IsZero() {
		return address, true, nil
	}
	if _, err := devnode.Read(d.config.Machine, address); err != nil {
		return "", true, err
	}
	return "", true, fmt.Errorf("PCI function %s: this node does not publish it", address)
}

// hasFunction reports whether the machine has it.
func hasFunction(machine *numa.Machine, address string) bool {
	return slices.ContainsFunc(machine.PCI, func(f numa.PCIFunction) bool { return f.Address == address })
}

// Gone is the PCI function of the share if the machine does not have it any more;
// "" else.
func (s *Share) Gone(machine *numa.Machine) (address string) {
	if f := s.Function; !f.IsZero() && !hasFunction(machine, f.Address) {
		return f.Address
	}
	return ""
}

// Fault says what is wrong with the PCI function of the share; "" if nothing is known
// to be, and of a zone.
func (s *Share) Fault(machine *numa.Machine) (why string) {
	if address := s.Gone(machine); address != "" {
		return fmt.Sprintf("PCI function %s is gone", address)
	}
	for i := range machine.PCI {
		if f := &machine.PCI[i]; f.Address == s.Function.Address {
			_, why = attached.Fault(*machine, f)
		}
	}
	return why
}

// goneDevice is a device of which there is only the claim that holds it. It is
// published until the claim ends, so that whoever looks at the pool sees what has
// become of it.
func (s *Share) goneDevice() resourceapi.Device {
	device := resourceapi.Device{
		Name:       s.Device,
		Attributes: make(map[resourceapi.QualifiedName]resourceapi.DeviceAttribute),
		Taints:     []resourceapi.DeviceTaint{{Key: attached.TaintFault, Value: taintGone, Effect: resourceapi.DeviceTaintEffectNoSchedule}},
	}
	for name, value := range s.Function.attributes() {
		device.Attributes[resourceapi.QualifiedName(name)] = value
	}
	return device
}

// cdiDevices are the names by which a container gets the share.
func (s *Share) cdiDevices(own string) []string {
	if s.Function.CDIDevice == "" {
		return []string{own}
	}
	return []string{own, s.Function.CDIDevice}
}

// conflict says what two grants both have; "" if nothing.
func (g Grant) conflict(older Grant) string {
	if both := older.cpus().Intersection(g.cpus()); !both.IsEmpty() {
		return fmt.Sprintf("cpus %s are", both)
	}
	for _, f := range g.functions() {
		if i := slices.IndexFunc(older.functions(), f.excludes); i >= 0 {
			return fmt.Sprintf("PCI function %s is", older.functions()[i].Address)
		}
	}
	return ""
}

// attributes are those of a function that is not published any more.
func (f Function) attributes() map[string]resourceapi.DeviceAttribute {
	attributes := make(map[string]resourceapi.DeviceAttribute, 32) // with those that are published
	attributes[string(attached.AttributePCIBusID)] = stringAttribute(f.Address)
	attributes[string(attached.AttributeKind)] = stringAttribute(string(f.Kind))
	return attributes
}
