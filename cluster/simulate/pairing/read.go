package pairing

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/manifest"
	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
)

// node is what a node has: zones of the wish, and devices by class of the wish.
type node struct {
	zones   []*inventory.Device
	devices [][]*inventory.Device
}

// read returns the nodes of the objects.
func read(objects *snapshot.Snapshot, wish manifest.Wish) (nodes []node, err error) {
	all, err := inventory.New(objects.Slices, allocation.DefaultFeatures())
	if err != nil {
		return nil, err
	}
	var selectors [][]resourceapi.DeviceSelector // of the devices by class, then of zones
	for _, wanted := range append(slices.Clone(wish.Devices), manifest.Devices{Class: wish.Class}) {
		of, err := selectorsOf(objects, wanted.Class)
		if err != nil {
			return nil, err
		}
		selectors = append(selectors, of)
	}
	last := len(selectors) - 1
	selectors[last] = append(slices.Clone(selectors[last]), wish.Filter.Selectors()...)
	evaluate := inventory.NewSelectors(allocation.NewCache(len(selectors)+1, allocation.DefaultFeatures()))
	for _, object := range nodesOf(objects) {
		selected := make([][]*inventory.Device, len(selectors))
		local := all.For(object)
		for i := range local.Devices {
			d := &local.Devices[i]
			for class, of := range selectors {
				matches, err := evaluate.All(of, d)
				if err != nil {
					return nil, fmt.Errorf("select device %s: %w", d.ID, err)
				}
				if matches && d.Unusable() == "" {
					selected[class] = append(selected[class], d)
				}
			}
		}
		nodes = append(nodes, node{selected[last], selected[:last]})
	}
	return nodes, nil
}

// selectorsOf returns the selectors of a class.
func selectorsOf(objects *snapshot.Snapshot, name string) ([]resourceapi.DeviceSelector, error) {
	for _, class := range objects.Classes {
		if class.Name == name {
			return class.Spec.Selectors, nil
		}
	}
	shipped, err := deviceclasses.All()
	if err != nil {
		return nil, err
	}
	for i := range shipped {
		if shipped[i].Name == name {
			return shipped[i].Spec.Selectors, nil
		}
	}
	return nil, fmt.Errorf("DeviceClass %q is neither in the files nor one of the chart's: add it to the files", name)
}

// nodesOf returns the Nodes of the objects, and a Node for each other name in the slices.
func nodesOf(objects *snapshot.Snapshot) []*corev1.Node {
	nodes := slices.Clone(objects.Nodes)
	seen := make(map[string]bool)
	for _, object := range nodes {
		seen[object.Name] = true
	}
	for _, slice := range objects.Slices {
		if name := slice.Spec.NodeName; name != nil && !seen[*name] {
			seen[*name] = true
			nodes = append(nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: *name}})
		}
	}
	return nodes
}
