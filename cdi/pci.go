package cdi

import (
	"errors"
	"fmt"

	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/devnode"
)

// nodePermissions let programs use a device. They have no need to make its node.
const nodePermissions = "rw"

// pciEdits are the device nodes of a function. Runtimes refuse a device without
// edits, so one without nodes repeats the environment that its claim has anyway.
func (s *Share) pciEdits(env []string) specs.ContainerEdits {
	if len(s.Nodes) == 0 {
		return specs.ContainerEdits{Env: env}
	}
	var edits specs.ContainerEdits
	for _, node := range s.Nodes {
		edits.DeviceNodes = append(edits.DeviceNodes, &specs.DeviceNode{
			Path: node.Path, Type: node.Type, Major: int64(node.Major), Minor: int64(node.Minor), Permissions: nodePermissions,
		})
	}
	return edits
}

// validatePCI refuses what would lead elsewhere in a container, or in its
// environment.
func (s *Share) validatePCI() error {
	if !numa.IsPCIAddress(s.PCI) {
		return fmt.Errorf("PCI address %q: want one such as 0000:3b:00.0", s.PCI)
	}
	if !s.CPUs.IsEmpty() || !s.Mems.IsEmpty() || s.Partition != "" || s.Scope != "" || s.Mixed {
		return errors.New("PCI function " + s.PCI + ": it has neither CPUs nor memory")
	}
	for _, node := range s.Nodes {
		if err := node.Validate(); err != nil {
			return fmt.Errorf("PCI function %s: %w", s.PCI, err)
		}
	}
	for _, name := range s.Interfaces {
		if !devnode.IsInterfaceName(name) {
			return fmt.Errorf("PCI function %s: network interface %q: want 1 to 15 printable characters without spaces, '/', ':' and ','", s.PCI, name)
		}
	}
	return nil
}
