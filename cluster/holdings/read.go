package holdings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// Of returns what claims hold according to a snapshot. The result stays valid if the
// snapshot changes.
func Of(s *snapshot.Snapshot) Cluster {
	c := Cluster{Nodes: []Node{}, Elsewhere: []Device{}, Claims: []Claim{}, Pending: pending(s)}
	inv := newInventory(s)
	for _, claim := range s.Claims {
		c.Claims = append(c.Claims, inv.claim(claim))
	}
	slices.SortFunc(c.Claims, func(a, b Claim) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for i := range c.Claims {
		for _, share := range c.Claims[i].Shares {
			inv.addShare(share)
		}
	}
	nodes := inv.nodes()
	for _, id := range inv.order {
		item := inv.devices[id]
		node := nodes[item.node]
		if node == nil {
			c.Elsewhere = append(c.Elsewhere, item.device(inv))
			continue
		}
		node.add(item, item.device(inv))
	}
	for name, node := range nodes {
		node.Name = name
		c.Nodes = append(c.Nodes, node.complete(inv, s.Node(name), len(s.Nodes) > 0))
	}
	slices.SortFunc(c.Nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(c.Elsewhere, byName)
	return c
}

func byName(a, b Device) int {
	return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Name, b.Name))
}

// nodes returns all known nodes, without their content.
func (inv *inventory) nodes() map[string]*Node {
	nodes := make(map[string]*Node)
	add := func(name string) {
		if name != "" && nodes[name] == nil {
			nodes[name] = &Node{Totals: []Resource{}, NUMANodes: []NUMANode{}, Devices: []Device{}, Problems: []string{}}
		}
	}
	for name := range inv.registered {
		add(name)
	}
	for _, slice := range inv.current {
		if slice.Spec.NodeName != nil {
			add(*slice.Spec.NodeName)
		}
	}
	for _, item := range inv.devices {
		add(item.node)
	}
	return nodes
}

// add adds a device to the NUMA node where it is.
func (n *Node) add(item *entry, device Device) {
	if item.numaNode == nil {
		n.Devices = append(n.Devices, device)
		return
	}
	i, found := slices.BinarySearchFunc(n.NUMANodes, *item.numaNode, func(at NUMANode, id int64) int { return cmp.Compare(at.ID, id) })
	if !found {
		n.NUMANodes = slices.Insert(n.NUMANodes, i, NUMANode{ID: *item.numaNode, Devices: []Device{}})
	}
	at := &n.NUMANodes[i]
	at.Devices = append(at.Devices, device)
	if device.Zone && at.Socket == nil {
		at.Socket = item.socket
	}
}

// complete sorts the devices, and adds sums and problems.
func (n *Node) complete(inv *inventory, object *corev1.Node, nodesKnown bool) Node {
	zonesFirst := func(a, b Device) int {
		if a.Zone != b.Zone {
			if a.Zone {
				return -1
			}
			return 1
		}
		return byName(a, b)
	}
	var zones []Device
	for i := range n.NUMANodes {
		slices.SortFunc(n.NUMANodes[i].Devices, zonesFirst)
		zones = append(zones, n.NUMANodes[i].Devices...)
	}
	slices.SortFunc(n.Devices, zonesFirst)
	zones = slices.DeleteFunc(append(zones, n.Devices...), func(d Device) bool { return !d.Zone })
	n.Totals = totals(zones)
	n.Problems = append(n.Problems, nodeProblems(object, nodesKnown)...)
	n.Problems = append(n.Problems, inv.poolProblems(n.Name)...)
	for i := range n.NUMANodes {
		n.Problems = append(n.Problems, deviceProblems(n.NUMANodes[i].Devices)...)
	}
	n.Problems = append(n.Problems, deviceProblems(n.Devices)...)
	return *n
}

// nodeProblems returns the problems of the Node itself.
func nodeProblems(object *corev1.Node, nodesKnown bool) (list []string) {
	if object == nil {
		if nodesKnown {
			list = append(list, "there is no Node object of this name")
		}
		return list
	}
	for _, condition := range object.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			list = append(list, fmt.Sprintf("the Node is not Ready: %s", cmp.Or(condition.Message, condition.Reason, string(condition.Status))))
		}
	}
	if object.Spec.Unschedulable {
		list = append(list, "the Node is cordoned")
	}
	return list
}

// deviceProblems returns the problems of devices: claims hold a device that is not
// published, or more than a device has, or a device has a taint that acts.
func deviceProblems(devices []Device) (list []string) {
	for i := range devices {
		device := &devices[i]
		if device.State == StateUnpublished {
			list = append(list, fmt.Sprintf("claims hold %s of driver %s, which is in no ResourceSlice", device.Name, device.Driver))
		}
		for _, taint := range device.Taints {
			if taint.Acts() {
				list = append(list, fmt.Sprintf("%s is tainted: %s", device.Name, taint))
			}
		}
		for _, r := range device.Resources {
			if r.Total != nil && r.Held.Cmp(*r.Total) > 0 {
				list = append(list, fmt.Sprintf("claims hold %s %s of %s, which has only %s", r.Held.String(), r.Name, device.Name, r.Total.String()))
			}
		}
	}
	return list
}

// String returns the taint as kubectl prints it.
func (t Taint) String() string {
	text := t.Key
	if t.Value != "" {
		text += "=" + t.Value
	}
	text += ":" + t.Effect
	if t.Rule != "" {
		text += " by DeviceTaintRule " + t.Rule
	}
	return text
}

// Only returns the part of the cluster that belongs to one node, with the claims that
// hold something there. found is false if the node is not known.
func (c Cluster) Only(node string) (only Cluster, found bool) {
	only = c.On(func(name string) bool { return name == node })
	return only, len(only.Nodes) > 0
}

// On returns the nodes that chosen accepts, and the claims that hold something there.
func (c Cluster) On(chosen func(node string) bool) Cluster {
	part := Cluster{Nodes: []Node{}, Elsewhere: []Device{}, Claims: []Claim{}, Pending: []Pending{}}
	for i := range c.Nodes {
		if chosen(c.Nodes[i].Name) {
			part.Nodes = append(part.Nodes, c.Nodes[i])
		}
	}
	for i := range c.Claims {
		if slices.ContainsFunc(c.Claims[i].Shares, func(s Share) bool { return chosen(s.Node) }) {
			part.Claims = append(part.Claims, c.Claims[i])
		}
	}
	return part
}

// In returns the claims and pods of a namespace. Of nodes and of devices elsewhere, it
// returns those that these claims hold something of. What other claims hold there remains:
// it is not free.
func (c Cluster) In(namespace string) Cluster {
	used := make(map[string]bool)
	own := make(map[string]bool)
	part := Cluster{Claims: []Claim{}, Pending: []Pending{}}
	for i := range c.Claims {
		if claim := &c.Claims[i]; claim.Namespace == namespace {
			part.Claims, own[claim.Key()] = append(part.Claims, *claim), true
			for j := range claim.Shares {
				used[claim.Shares[j].Node] = true
			}
		}
	}
	for i := range c.Pending {
		if c.Pending[i].Namespace == namespace {
			part.Pending = append(part.Pending, c.Pending[i])
		}
	}
	part.Nodes = c.On(func(node string) bool { return used[node] }).Nodes
	part.Elsewhere = slices.DeleteFunc(append([]Device{}, c.Elsewhere...), func(d Device) bool {
		return !slices.ContainsFunc(d.Shares, func(s Share) bool { return own[s.Claim] })
	})
	return part
}

// Claim returns the claim with this key (namespace/name), or nil if there is none.
func (c Cluster) Claim(key string) *Claim {
	namespace, name, _ := strings.Cut(key, "/")
	i, found := slices.BinarySearchFunc(c.Claims, name, func(c Claim, name string) int {
		return cmp.Or(cmp.Compare(c.Namespace, namespace), cmp.Compare(c.Name, name))
	})
	if !found {
		return nil
	}
	return &c.Claims[i]
}

// Node returns the node with this name, or nil if there is none.
func (c Cluster) Node(name string) *Node {
	i, found := slices.BinarySearchFunc(c.Nodes, name, func(n Node, name string) int { return cmp.Compare(n.Name, name) })
	if !found {
		return nil
	}
	return &c.Nodes[i]
}
