// Package pairing chooses the attributes by which a claim has pairs of devices near a zone.
// Drivers publish the NUMA node of a device under different attributes, or not at all. So
// the package looks at the devices that the slices have, and chooses only what some of them
// can meet. It does not know what is free: only the scheduler does.
package pairing

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/manifest"
	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
)

const (
	pcieRoot = resourceapi.FullyQualifiedName(deviceclasses.AttributePCIeRoot)
	numaNode = resourceapi.FullyQualifiedName(deviceclasses.AttributeNUMANode)
)

// Choose returns the wish for pairs with the attribute that the devices of each class have
// in common with zones. If the wish has shares, at least one class has such an attribute:
// the other devices of a pair are under the same PCIe root. Classes that the objects do not
// have are those of the chart.
func Choose(objects *snapshot.Snapshot, wish manifest.Wish) (manifest.Wish, error) {
	if err := wish.Check(); err != nil {
		return wish, err
	}
	nodes, err := read(objects, wish)
	if err != nil {
		return wish, err
	}
	if err := checkRoots(nodes, wish); err != nil {
		return wish, err
	}
	wish.Devices = slices.Clone(wish.Devices)
	met, most := fit(nodes, wish) // true for a wish without shares
	if !wish.HasShares() {
		return wish, tooFew(met, most, wish)
	}
	met, most = false, 0
	for class := range wish.Devices {
		for _, key := range keysOf(nodes) {
			wish.Devices[class].Near = key
			fits, pairs := fit(nodes, wish)
			met, most = met || fits, max(most, pairs)
			if fits {
				break
			}
			wish.Devices[class].Near = ""
		}
	}
	if most == 0 {
		return wish, noneNear(nodes, wish)
	}
	return wish, tooFew(met, most, wish)
}

// fit reports whether a node has enough pairs for the wish, and how many pairs there are at
// most near one zone or, without shares, on one node.
func fit(nodes []node, wish manifest.Wish) (fits bool, most int) {
	for _, n := range nodes {
		enough, pairs := n.fits(wish)
		fits, most = fits || enough, max(most, pairs)
	}
	return fits, most
}

func (n node) fits(wish manifest.Wish) (enough bool, most int) {
	count := int(wish.Devices[0].Count)
	if !wish.HasShares() {
		most = n.pairs(nil, "", wish)
		return most >= count, most
	}
	suitable := make(map[string]bool) // NUMA nodes of zones; each share is on others
	for _, zone := range n.zones {
		pairs := 0
		at := valuesOf(zone, numaNode)
		for _, numaNode := range append(at, "") { // all devices of a share have one in common
			pairs = max(pairs, n.pairs(zone, numaNode, wish))
		}
		most = max(most, pairs)
		if pairs >= count/wish.Shares {
			suitable[strings.Join(at, ",")] = true
		}
	}
	return len(suitable) >= wish.Shares, most
}

// pairs counts the pairs of the node that are near a zone, on this NUMA node of it; nil means
// anywhere. Under one PCIe root, there are as many as there are devices of the rarest class.
func (n node) pairs(zone *inventory.Device, numaNode string, wish manifest.Wish) (pairs int) {
	byRoot := make(map[string][]int) // numbers of devices by class
	for class, devices := range n.devices {
		for _, d := range devices {
			near := wish.Devices[class].Near
			root := valueOf(d, pcieRoot)
			if root == "" || zone != nil && near != "" && !(hasValue(d, near, numaNode) && hasValue(zone, near, numaNode)) {
				continue
			}
			if byRoot[root] == nil {
				byRoot[root] = make([]int, len(n.devices))
			}
			byRoot[root][class]++
		}
	}
	for _, numbers := range byRoot {
		pairs += slices.Min(numbers)
	}
	return pairs
}

// keysOf returns the attributes in which zones have their NUMA node, the standard one first.
// These are all attributes of zones that are not this driver's own.
func keysOf(nodes []node) (keys []resourceapi.FullyQualifiedName) {
	for _, n := range nodes {
		for _, zone := range n.zones {
			for name := range zone.Attributes {
				domain, _, full := strings.Cut(string(name), "/")
				key := resourceapi.FullyQualifiedName(name)
				if full && domain != deviceclasses.DriverName && key != numaNode && !slices.Contains(keys, key) {
					keys = append(keys, key)
				}
			}
		}
	}
	slices.Sort(keys)
	return append([]resourceapi.FullyQualifiedName{numaNode}, keys...)
}

// hasValue reports whether an attribute of the device has the value, alone or in a list.
func hasValue(d *inventory.Device, name resourceapi.FullyQualifiedName, value string) bool {
	return slices.Contains(valuesOf(d, name), value)
}

// valueOf returns the value of an attribute as text; "" if the device lacks it, or if it is
// neither a text nor a number.
func valueOf(d *inventory.Device, name resourceapi.FullyQualifiedName) string {
	return strings.Join(valuesOf(d, name), ",")
}

// valuesOf returns the elements of a list as text, or one value.
func valuesOf(d *inventory.Device, name resourceapi.FullyQualifiedName) (values []string) {
	value, _ := spelling.Attribute(d.Slice.Spec.Driver, d.Attributes, name)
	if value.StringValue != nil {
		return []string{*value.StringValue}
	}
	if value.IntValue != nil {
		return []string{fmt.Sprint(*value.IntValue)}
	}
	for _, number := range value.IntValues {
		values = append(values, fmt.Sprint(number))
	}
	return append(values, value.StringValues...)
}
