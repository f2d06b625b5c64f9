package cdi

import (
	"fmt"
	"strings"

	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/devnode"
)

// nodePermissions lets a container read and write a device node. It leaves out mknod,
// which no container needs.
const nodePermissions = "rw"

// Function is a share that is a PCI function. The hook compares its device nodes with those
// that the function has when a container starts: the container may start again much later.
type Function struct {
	PCI        string         // address
	Nodes      []devnode.Node // the device nodes that the container gets
	Interfaces []string       // its network interfaces, by their names on the host

	// Lost says that no container may start with the function. Its device then has another
	// name, so that the runtime does not find it: a spec without devices would be ignored, and
	// a device that only has variables would let the container start.
	Lost bool
}

// edits returns the device nodes of the function, and the hook that compares those that
// belong to it alone.
func (f *Function) edits(claim Claim, hook Hook) (edits specs.ContainerEdits) {
	if f.Lost {
		return specs.ContainerEdits{}
	}
	args := []string{"--function=" + f.PCI}
	var own []string
	for _, node := range f.Nodes {
		if !node.IsShared() {
			own = append(own, node.Number())
		}
	}
	if len(own) > 0 {
		args = append(args, "--nodes="+strings.Join(own, ","))
	}
	edits.Hooks = []*specs.Hook{useHook(claim, hook, args...)}
	for _, node := range f.Nodes {
		edits.DeviceNodes = append(edits.DeviceNodes, &specs.DeviceNode{
			Path: node.Path, Type: node.Type, Major: int64(node.Major), Minor: int64(node.Minor), Permissions: nodePermissions,
		})
	}
	return edits
}

func (f *Function) validate() error {
	if !numa.IsPCIAddress(f.PCI) {
		return fmt.Errorf("PCI address %q: want one such as 0000:3b:00.0", f.PCI)
	}
	for _, node := range f.Nodes {
		if err := node.Validate(); err != nil {
			return fmt.Errorf("PCI function %s: %w", f.PCI, err)
		}
	}
	for _, name := range f.Interfaces {
		if !devnode.IsInterfaceName(name) {
			return fmt.Errorf("PCI function %s: network interface %q: want 1 to 15 printable characters without spaces, '/', ':' or ','", f.PCI, name)
		}
	}
	return nil
}

func (f *Function) addTo(c *content) {
	c.pci = append(c.pci, f.PCI)
	c.interfaces = append(c.interfaces, f.Interfaces...)
}
