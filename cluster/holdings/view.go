package holdings

import (
	"fmt"
	"iter"
	"slices"
)

// View is what text, pictures and web pages show of a node: where its devices are, and who
// holds them. [Node.View] makes it, and each of the three only writes it down.
type View struct {
	Places []Place
	Claims []string // keys of the claims that have a share on the node, each once, in the order of its devices
}

// Place is a NUMA node with the devices that are shown there. The last place of a node may
// have the devices that are not on exactly one known NUMA node.
type Place struct {
	NUMANode *int64 // nil if it is not known
	Title    string // such as "NUMA node 0, socket 0"
	Devices  []Device
}

// View returns what is shown of the node.
func (n *Node) View() (v View) {
	for i := range n.NUMANodes {
		at := &n.NUMANodes[i]
		title := fmt.Sprintf("NUMA node %d", at.ID)
		if at.Socket != nil {
			title += fmt.Sprintf(", socket %d", *at.Socket)
		}
		v.Places = append(v.Places, Place{&at.ID, title, at.Devices})
	}
	if len(n.Devices) > 0 {
		title := "NUMA node unknown"
		if slices.ContainsFunc(n.Devices, func(d Device) bool { return d.Zone }) {
			title = "Several NUMA nodes, or unknown" // a zone of several NUMA nodes
		}
		v.Places = append(v.Places, Place{nil, title, n.Devices})
	}
	known := make(map[string]bool)
	for device := range v.Devices() {
		for _, share := range device.Shares {
			if !known[share.Claim] {
				known[share.Claim], v.Claims = true, append(v.Claims, share.Claim)
			}
		}
	}
	return v
}

// Devices returns the devices of all places.
func (v View) Devices() iter.Seq[*Device] {
	return func(yield func(*Device) bool) {
		for _, place := range v.Places {
			for i := range place.Devices {
				if !yield(&place.Devices[i]) {
					return
				}
			}
		}
	}
}

// Total returns the sum over the zones of the node, or nil if no zone has the resource.
func (n *Node) Total(name string) *Resource { return find(n.Totals, name) }

// Resource returns a capacity of the device, or nil if it has none of this name.
func (d *Device) Resource(name string) *Resource { return find(d.Resources, name) }

func find(list []Resource, name string) *Resource {
	i := slices.IndexFunc(list, func(r Resource) bool { return r.Name == name })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// Shown returns the resources whose sums mean something: not those that limit each claim
// by itself.
func (d *Device) Shown() []Resource {
	return slices.DeleteFunc(slices.Clone(d.Resources), func(r Resource) bool { return d.isLimit(r.Name) })
}
