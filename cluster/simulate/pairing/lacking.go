package pairing

import (
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/manifest"
)

// checkRoots refuses classes that no pair can be made of.
func checkRoots(nodes []node, wish manifest.Wish) error {
	for class, wanted := range wish.Devices {
		all := devicesOf(nodes, class)
		if len(all) == 0 {
			return fmt.Errorf("class %s selects no device of the slices", wanted.Class)
		}
		if !slices.ContainsFunc(all, has(pcieRoot)) {
			return fmt.Errorf("no device of class %s has the attribute %s, which pairs have in common: driver %s does not publish it", wanted.Class, pcieRoot, driversOf(all))
		}
	}
	if !slices.ContainsFunc(nodes, func(n node) bool { return n.pairs(nil, "", wish) > 0 }) {
		return fmt.Errorf("no PCIe root of the slices has devices of the classes %s: there are no pairs", classesOf(wish))
	}
	return nil
}

// noneNear says why no pair is near a zone.
func noneNear(nodes []node, wish manifest.Wish) error {
	if !slices.ContainsFunc(nodes, func(n node) bool { return len(n.zones) > 0 }) {
		return fmt.Errorf("class %s selects no zone of the slices", wish.Class)
	}
	keys := keysOf(nodes)
	var lacking []string
	for class, wanted := range wish.Devices {
		all := devicesOf(nodes, class)
		for _, key := range keys {
			if slices.ContainsFunc(all, has(key)) {
				return fmt.Errorf("no pair of the classes %s is on the NUMA node of a zone: devices of class %s have other values of %s", classesOf(wish), wanted.Class, key)
			}
		}
		lacking = append(lacking, fmt.Sprintf("driver %s for class %s", driversOf(all), wanted.Class))
	}
	return fmt.Errorf("no device of a pair has %s, where zones have their NUMA node: %s do not publish it; if they have another attribute for it, name it in numaNodeKeys of the NodeConfig",
		listed(keys), strings.Join(lacking, " and "))
}

// tooFew says that there are pairs, but not as many as the wish has.
func tooFew(met bool, most int, wish manifest.Wish) error {
	count := int(wish.Devices[0].Count)
	switch {
	case met:
		return nil
	case !wish.HasShares():
		return fmt.Errorf("%d pairs: a node of the slices has %d at most", count, most)
	case count/wish.Shares > most:
		return fmt.Errorf("%d pairs for a share: a NUMA node of the slices has %d at most; want fewer pairs or more shares", count/wish.Shares, most)
	}
	return fmt.Errorf("%d shares with %d pairs each, on different NUMA nodes: no node of the slices has as many", wish.Shares, count/wish.Shares)
}

func has(name resourceapi.FullyQualifiedName) func(d *inventory.Device) bool {
	return func(d *inventory.Device) bool { return valueOf(d, name) != "" }
}

// devicesOf returns the devices of a class on all nodes.
func devicesOf(nodes []node, class int) (all []*inventory.Device) {
	for _, n := range nodes {
		all = append(all, n.devices[class]...)
	}
	return all
}

func driversOf(devices []*inventory.Device) string {
	var drivers []string
	for _, d := range devices {
		drivers = append(drivers, d.Slice.Spec.Driver)
	}
	slices.Sort(drivers)
	return strings.Join(slices.Compact(drivers), ", ")
}

func classesOf(wish manifest.Wish) string {
	var names []string
	for _, wanted := range wish.Devices {
		names = append(names, wanted.Class)
	}
	return strings.Join(names, " and ")
}

func listed(keys []resourceapi.FullyQualifiedName) string {
	var names []string
	for _, key := range keys {
		names = append(names, string(key))
	}
	return strings.Join(names, " or ")
}
