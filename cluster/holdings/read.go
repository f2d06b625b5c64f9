package holdings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// Of is what a snapshot says; it keeps nothing of it that may change.
func Of(s *snapshot.Snapshot) Cluster {
	c := Cluster{Nodes: []Node{}, Elsewhere: []Device{}, Claims: []Claim{}, Pending: pending(s)}
	b := newBook(s)
	for _, claim := range s.Claims {
		c.Claims = append(c.Claims, b.claim(claim))
	}
	slices.SortFunc(c.Claims, func(a, b Claim) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for i := range c.Claims {
		for _, share := range c.Claims[i].Shares {
			b.enter(share)
		}
	}
	nodes := b.nodes()
	for _, id := range b.order {
		item := b.devices[id]
		node := nodes[item.node]
		if node == nil {
			c.Elsewhere = append(c.Elsewhere, item.finished(b))
			continue
		}
		node.add(item, item.finished(b))
	}
	for name, node := range nodes {
		node.Name = name
		c.Nodes = append(c.Nodes, node.finished(b, s.Node(name), len(s.Nodes) > 0))
	}
	slices.SortFunc(c.Nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(c.Elsewhere, byName)
	return c
}

func byName(a, b Device) int {
	return cmp.Or(cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Name, b.Name))
}

// nodes are all that something is known of, empty.
func (b *book) nodes() map[string]*Node {
	nodes := make(map[string]*Node)
	add := func(name string) {
		if name != "" && nodes[name] == nil {
			nodes[name] = &Node{Totals: []Resource{}, NUMANodes: []NUMANode{}, Devices: []Device{}, Problems: []string{}}
		}
	}
	for name := range b.registered {
		add(name)
	}
	for _, slice := range b.current {
		if slice.Spec.NodeName != nil {
			add(*slice.Spec.NodeName)
		}
	}
	for _, item := range b.devices {
		add(item.node)
	}
	return nodes
}

// add puts a device where it is.
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

// finished has everything in order, the sums, and what is wrong.
func (n *Node) finished(b *book, object *corev1.Node, nodesKnown bool) Node {
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
	n.Problems = append(n.Problems, b.poolProblems(n.Name)...)
	for i := range n.NUMANodes {
		n.Problems = append(n.Problems, deviceProblems(n.NUMANodes[i].Devices)...)
	}
	n.Problems = append(n.Problems, deviceProblems(n.Devices)...)
	return *n
}

// nodeProblems are about the Node itself.
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

// deviceProblems are about what is held and tainted.
func deviceProblems(devices []Device) (list []string) {
	for i := range devices {
		device := &devices[i]
		if device.State == StateUnpublished {
			list = append(list, fmt.Sprintf("claims hold %s of driver %s, which no ResourceSlice has", device.Name, device.Driver))
		}
		for _, taint := range device.Taints {
			list = append(list, fmt.Sprintf("%s is tainted: %s", device.Name, taint))
		}
		for _, r := range device.Resources {
			if r.Total != nil && r.Held.Cmp(*r.Total) > 0 {
				list = append(list, fmt.Sprintf("claims hold %s %s of %s, which has %s", r.Held.String(), r.Name, device.Name, r.Total.String()))
			}
		}
	}
	return list
}

// String is as kubectl writes taints.
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

// Only is what a cluster says of one node: found is false if it says nothing. Of
// claims it has those that hold something there.
func (c Cluster) Only(node string) (only Cluster, found bool) {
	only = Cluster{Nodes: []Node{}, Elsewhere: []Device{}, Claims: []Claim{}, Pending: []Pending{}}
	for i := range c.Nodes {
		if c.Nodes[i].Name == node {
			only.Nodes = append(only.Nodes, c.Nodes[i])
		}
	}
	for i := range c.Claims {
		if slices.ContainsFunc(c.Claims[i].Shares, func(s Share) bool { return s.Node == node }) {
			only.Claims = append(only.Claims, c.Claims[i])
		}
	}
	return only, len(only.Nodes) > 0
}

// Claim is that of a namespace/name, nil if there is none.
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

// Node is that of a name, nil if there is none.
func (c Cluster) Node(name string) *Node {
	i, found := slices.BinarySearchFunc(c.Nodes, name, func(n Node, name string) int { return cmp.Compare(n.Name, name) })
	if !found {
		return nil
	}
	return &c.Nodes[i]
}
