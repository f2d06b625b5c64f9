// Package simulate places pods as the scheduler of Kubernetes 1.37 does, one after the
// other, on a copy of a cluster's objects. It uses the scheduler's own allocator for
// devices. It does not read or change a cluster, and does not score nodes.
//
// It follows the scheduler's plugin dynamicresources. For everything except devices, it
// follows the plugins NodeUnschedulable, TaintToleration, NodeAffinity and
// NodeResourcesFit. Unsimulated lists the fields of a pod that the package does not
// consider. The package assumes that drivers meet the binding conditions of their
// devices.
package simulate

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// Cluster is a snapshot and the changes to it when pods are placed. Only one goroutine
// may use it.
type Cluster struct {
	gates     Gates
	features  structured.Features
	nodes     []*node // sorted by name
	classes   inventory.Classes
	extended  map[corev1.ResourceName]*resourceapi.DeviceClass
	claims    map[types.NamespacedName]*resourceapi.ResourceClaim // the values are replaced, never changed
	templates map[types.NamespacedName]*resourceapi.ResourceClaimTemplate
	held      inventory.Holdings
	celCache  *cel.Cache
	selectors *inventory.Selectors
	demands   map[string]*demand // by their claims as text
	assumed   map[string]bool    // the pods that this package placed, by namespace/name
	// users are the claims that were ever reserved for a pod, by pod; nil means not
	// computed.
	users map[types.NamespacedName][]types.NamespacedName

	slow time.Duration // time that slow searches have taken

	hidden  []string // kinds without which it is not known on which nodes a pod fits
	partial bool     // there may be more objects that take something of a node

	harmlessDevices bool            // isHarmlessDevice is true for all devices
	harmless        map[string]bool // answers of isHarmlessSelection
}

// celExpressions is how many compiled expressions are kept. The scheduler keeps only
// ten. That costs time, but does not change an answer.
const celExpressions = 10_000

// New returns the cluster of a snapshot, and does not change the snapshot.
func New(s *snapshot.Snapshot, gates Gates) (*Cluster, error) {
	c := &Cluster{
		gates:     gates,
		features:  gates.features(),
		classes:   make(inventory.Classes),
		claims:    make(map[types.NamespacedName]*resourceapi.ResourceClaim),
		templates: make(map[types.NamespacedName]*resourceapi.ResourceClaimTemplate),
		held:      make(inventory.Holdings),
		celCache:  cel.NewCache(celExpressions, gates.celFeatures()),
		demands:   make(map[string]*demand),
		assumed:   make(map[string]bool),
		harmless:  make(map[string]bool),

		hidden:  s.Hides("Nodes", "DeviceClasses", "ResourceSlices"),
		partial: len(s.Unseen) > 0,

		harmlessDevices: true,
	}
	c.selectors = inventory.NewSelectors(c.celCache)
	for _, class := range s.Classes {
		c.classes[class.Name] = class
	}
	c.extended = requests.ExtendedResources(s.Classes)
	for _, template := range s.Templates {
		c.templates[keyOf(template)] = template
	}
	for _, claim := range s.Claims {
		c.claims[keyOf(claim)] = claim
		c.held.Add(claim, c.features.ConsumableCapacity)
	}
	if err := c.addNodes(s); err != nil {
		return nil, err
	}
	c.addRunning(s.Pods)
	return c, nil
}

func (c *Cluster) addNodes(s *snapshot.Snapshot) error {
	list := s.Slices
	if c.gates[gateDeviceTaintRules] {
		list = inventory.WithTaints(list, s.TaintRules)
	}
	devices, err := inventory.New(list)
	if err != nil {
		return err
	}
	devices.Each(func(device *resourceapi.Device) { c.harmlessDevices = c.harmlessDevices && isHarmlessDevice(device) })
	known := make(shapes)
	for _, object := range s.Nodes {
		c.nodes = append(c.nodes, newNode(object, devices, known))
	}
	slices.SortFunc(c.nodes, func(a, b *node) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

// addRunning adds the resources of the pods that have a node to their nodes.
func (c *Cluster) addRunning(pods []*corev1.Pod) {
	byName := make(map[string]*node, len(c.nodes))
	for _, n := range c.nodes {
		byName[n.Name] = n
	}
	for _, pod := range pods {
		if n := byName[pod.Spec.NodeName]; n != nil && !snapshot.Finished(pod) {
			n.addPod(requests.Running(pod, c.gates[gateNodeAllocatable]))
			n.running = append(n.running, pod)
		}
	}
}

type named interface {
	GetNamespace() string
	GetName() string
}

func keyOf(object named) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

// Unsimulated returns the fields of a pod that the scheduler considers and that this
// package does not.
func Unsimulated(pod *corev1.Pod) []string {
	var fields []string
	add := func(field string, used bool) {
		if used {
			fields = append(fields, field)
		}
	}
	affinity := pod.Spec.Affinity
	add("spec.affinity.podAffinity", affinity != nil && affinity.PodAffinity != nil)
	add("spec.affinity.podAntiAffinity", affinity != nil && affinity.PodAntiAffinity != nil)
	add("spec.topologySpreadConstraints", len(pod.Spec.TopologySpreadConstraints) > 0)
	add("spec.schedulingGroup", pod.Spec.SchedulingGroup != nil)
	add("hostPort", slices.ContainsFunc(pod.Spec.Containers, usesHostPort))
	add("persistentVolumeClaim", slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil || v.Ephemeral != nil
	}))
	if name := pod.Spec.SchedulerName; name != corev1.DefaultSchedulerName {
		add("spec.schedulerName "+name, true)
	}
	return fields
}

func usesHostPort(container corev1.Container) bool {
	return slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.HostPort != 0 })
}
