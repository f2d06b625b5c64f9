package kubelet

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager/bitmask"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// devices stands in for the device manager, which needs sockets below /var/lib/kubelet. It
// has the same hints (generateDeviceTopologyHints) and the same order (devicesToAllocate):
// first devices of the init containers, then those on the NUMA nodes of the hint.
type devices struct {
	affinity topologymanager.Store
	all      map[corev1.ResourceName][]device
	used     map[string]cpuset.Set // NUMA nodes of a container's devices
}

type device struct {
	node     int
	taken    bool
	reusable bool // an init container had it
}

func newDevices(affinity topologymanager.Store, nodes map[corev1.ResourceName][]int) *devices {
	d := &devices{affinity, map[corev1.ResourceName][]device{}, map[string]cpuset.Set{}}
	for name, list := range nodes {
		for _, node := range list {
			d.all[name] = append(d.all[name], device{node: node})
		}
	}
	return d
}

func (d *devices) GetTopologyHints(_ logr.Logger, _ *corev1.Pod, c *corev1.Container, _ lifecycle.Operation) map[string][]topologymanager.TopologyHint {
	hints := map[string][]topologymanager.TopologyHint{}
	for name, amount := range c.Resources.Limits {
		if _, has := d.all[name]; has {
			hints[string(name)] = d.hints(name, int(amount.Value()))
		}
	}
	return hints
}

func (d *devices) GetPodTopologyHints(_ logr.Logger, pod *corev1.Pod, _ lifecycle.Operation) map[string][]topologymanager.TopologyHint {
	hints := map[string][]topologymanager.TopologyHint{}
	for name := range d.all {
		if most := mostAtOnce(pod, name); most > 0 {
			hints[string(name)] = d.hints(name, most)
		}
	}
	return hints
}

// mostAtOnce is how many devices a pod has at once: a sidecar keeps its own.
func mostAtOnce(pod *corev1.Pod, name corev1.ResourceName) (most int) {
	kept := 0
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		n := count(c, name)
		most = max(most, kept+n)
		if isSidecar(c) {
			kept += n
		}
	}
	for i := range pod.Spec.Containers {
		kept += count(&pod.Spec.Containers[i], name)
	}
	return max(most, kept)
}

func count(c *corev1.Container, name corev1.ResourceName) int {
	amount := c.Resources.Limits[name]
	return int(amount.Value())
}

func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func (d *devices) hints(name corev1.ResourceName, wanted int) []topologymanager.TopologyHint {
	if wanted == 0 {
		return nil
	}
	list := d.all[name]
	var nodes []int
	for _, one := range list {
		nodes = append(nodes, one.node)
	}
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	least, hints := len(nodes), []topologymanager.TopologyHint{}
	bitmask.IterateBitMasks(nodes, func(mask bitmask.BitMask) {
		here, free := 0, 0
		for _, one := range list {
			switch on := mask.IsSet(one.node); {
			case on:
				here++
				if !one.taken || one.reusable {
					free++
				}
			case one.reusable:
				free = -len(list)
			}
		}
		if here >= wanted {
			least = min(least, mask.Count())
		}
		if free >= wanted {
			hints = append(hints, topologymanager.TopologyHint{NUMANodeAffinity: mask})
		}
	})
	for i := range hints {
		hints[i].Preferred = hints[i].NUMANodeAffinity.Count() == least
	}
	return hints
}

func (d *devices) Allocate(_ context.Context, pod *corev1.Pod, c *corev1.Container, _ lifecycle.Operation) error {
	affinity := d.affinity.GetAffinity(logr.Discard(), string(pod.UID), c.Name).NUMANodeAffinity
	isInit := slices.ContainsFunc(pod.Spec.InitContainers, func(one corev1.Container) bool { return one.Name == c.Name && !isSidecar(c) })
	for name := range c.Resources.Limits {
		list, has := d.all[name]
		if !has {
			continue
		}
		left := count(c, name)
		for _, wanted := range []func(device) bool{
			func(one device) bool { return one.reusable },
			func(one device) bool { return !one.taken && affinity != nil && affinity.IsSet(one.node) },
			func(one device) bool { return !one.taken },
		} {
			for i := range list {
				if left > 0 && wanted(list[i]) {
					list[i].taken, list[i].reusable = true, isInit
					d.used[c.Name] = d.used[c.Name].Union(cpuset.New(list[i].node))
					left--
				}
			}
		}
		if left > 0 {
			return fmt.Errorf("%d devices of %s are not available", left, name)
		}
	}
	return nil
}

func (d *devices) AllocatePod(logr.Logger, *corev1.Pod, lifecycle.Operation) error { return nil }
