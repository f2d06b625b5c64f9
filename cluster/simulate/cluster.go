// Package simulate places pods as the scheduler of Kubernetes does, one after the other, on
// a copy of a cluster's objects. It uses the scheduler's own allocator for devices, that of
// 1.37, and scores nodes as package score does. What other releases decide otherwise is in
// [Rules]. It does not read or change a cluster.
//
// It follows the scheduler's plugin dynamicresources. For everything except devices, it
// follows the plugins NodeUnschedulable, TaintToleration, NodeAffinity and
// NodeResourcesFit. Unsimulated lists what the package does not consider of a pod. The
// package assumes that drivers meet the binding conditions of devices that it allocates.
//
// It is larger than other packages because it both places pods and explains why a pod
// does not fit. An explanation repeats the steps of the placement with the same state:
// what is allocated, and what each node has left.
package simulate

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/capacities"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/funnel"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/score"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
	"github.com/dra-driver-numa/dra-driver-numa/internal/spelling"
)

// Cluster is a snapshot and the changes to it when pods are placed. Only one goroutine
// may use it.
type Cluster struct {
	minor     int // of Kubernetes 1.minor, as in Rules
	gates     gates
	features  allocation.Features
	names     *capacities.Names // nil before 1.38
	nodes     []*node           // sorted by name
	classes   inventory.Classes
	extended  map[corev1.ResourceName]*resourceapi.DeviceClass
	claims    map[types.NamespacedName]*resourceapi.ResourceClaim // the values are replaced, never changed
	templates map[types.NamespacedName]*resourceapi.ResourceClaimTemplate
	held      inventory.Holdings
	celCache  *allocation.Cache
	selectors *inventory.Selectors
	scored    *score.Cluster
	demands   map[string]*demand // by their claims as text
	assumed   map[string]bool    // the pods that this package placed, by namespace/name
	avoided   map[string]bool    // those of them that a pod before them avoided
	// users are the claims that were ever reserved for a pod, by pod; nil means not
	// computed.
	users map[types.NamespacedName][]types.NamespacedName

	slow time.Duration // time that slow searches have taken

	hidden  []string // kinds without which it is not known on which nodes a pod fits
	partial bool     // there may be more objects that take something of a node

	kinds map[string]bool // of all devices, for explanations

	harmlessDevices bool            // isHarmlessDevice is true for all devices
	harmless        map[string]bool // answers of isHarmlessSelection
}

// celExpressions is how many compiled expressions are kept. The scheduler keeps only
// ten. That costs time, but does not change an answer.
const celExpressions = 10_000

// New returns the cluster of a snapshot, and does not change the snapshot.
func New(s *snapshot.Snapshot, rules Rules) (*Cluster, error) {
	c := &Cluster{
		minor:     rules.minor,
		gates:     rules.gates,
		features:  rules.gates.features(),
		classes:   make(inventory.Classes),
		claims:    make(map[types.NamespacedName]*resourceapi.ResourceClaim),
		templates: make(map[types.NamespacedName]*resourceapi.ResourceClaimTemplate),
		held:      make(inventory.Holdings),
		celCache:  allocation.NewCache(celExpressions, rules.gates.features()),
		demands:   make(map[string]*demand),
		assumed:   make(map[string]bool),
		avoided:   make(map[string]bool),
		harmless:  make(map[string]bool),
		kinds:     make(map[string]bool),

		hidden:  s.Hides("Nodes", "DeviceClasses", "ResourceSlices"),
		partial: len(s.Unseen) > 0,

		harmlessDevices: true,
	}
	c.selectors = inventory.NewSelectors(c.celCache)
	for _, class := range s.Classes {
		c.classes[class.Name] = class
	}
	c.extended = requests.ExtendedResources(s.Classes)
	if err := c.addNodes(s); err != nil {
		return nil, err
	}
	for _, template := range s.Templates {
		c.templates[keyOf(template)] = template
	}
	for _, claim := range s.Claims {
		c.claims[keyOf(claim)] = claim
		c.held.Add(claim, c.features.ConsumableCapacity)
	}
	c.addRunning(s.Pods)
	var scored []*score.Node
	for _, n := range c.nodes {
		scored = append(scored, n.scored)
	}
	c.scored = score.NewCluster(scored)
	return c, nil
}

func (c *Cluster) addNodes(s *snapshot.Snapshot) error {
	list := s.Slices
	if c.gates[gateDeviceTaintRules] {
		list = inventory.WithTaints(list, s.TaintRules)
	}
	if c.minor >= 38 {
		c.names, list = capacities.New(list)
	}
	devices, err := inventory.New(list, c.features)
	if err != nil {
		return err
	}
	devices.Each(func(device *resourceapi.Device) { c.harmlessDevices = c.harmlessDevices && isHarmlessDevice(device) })
	for _, slice := range list {
		for i := range slice.Spec.Devices {
			c.addKinds(slice.Spec.Driver, &slice.Spec.Devices[i])
		}
	}
	known := make(shapes)
	for _, object := range s.Nodes {
		c.nodes = append(c.nodes, newNode(object, devices, known))
	}
	slices.SortFunc(c.nodes, func(a, b *node) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

// addKinds remembers the kind of a device.
func (c *Cluster) addKinds(driver string, device *resourceapi.Device) {
	for name, value := range device.Attributes {
		if full := spelling.FullName(driver, name); funnel.IsKind(full) && value.StringValue != nil {
			c.kinds[funnel.Kind(full, *value.StringValue)] = true
		}
	}
}

// addRunning adds the resources of the pods that have a node to their nodes. Nodes remember
// the pods without a node that are nominated for them.
func (c *Cluster) addRunning(pods []*corev1.Pod) {
	byName := make(map[string]*node, len(c.nodes))
	for _, n := range c.nodes {
		byName[n.Name] = n
	}
	for _, pod := range pods {
		n := byName[cmp.Or(pod.Spec.NodeName, pod.Status.NominatedNodeName)]
		switch {
		case n == nil, snapshot.Finished(pod):
		case pod.Spec.NodeName == "":
			if pod.DeletionTimestamp == nil {
				n.nominated = append(n.nominated, pod)
			}
		default:
			n.addPod(requests.Running(pod, c.gates[gateNodeAllocatable]))
			n.scored.Add(pod, requests.Scored(pod, c.gates[gateNodeAllocatable]))
			n.running++
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

// Unsimulated returns what the scheduler considers of a pod and this package does not. Of a
// pod that the package placed, it is as of then.
func (c *Cluster) Unsimulated(pod *corev1.Pod) []string {
	fields, key := Unsimulated(pod), keyOf(pod).String()
	if c.avoided[key] || !c.assumed[key] && c.scored.Avoids(pod) {
		fields = append(fields, "required spec.affinity.podAntiAffinity of other pods")
	}
	return fields
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
	affinity := ptr.Deref(pod.Spec.Affinity, corev1.Affinity{})
	add("required spec.affinity.podAffinity", len(ptr.Deref(affinity.PodAffinity, corev1.PodAffinity{}).RequiredDuringSchedulingIgnoredDuringExecution) > 0)
	add("required spec.affinity.podAntiAffinity", len(ptr.Deref(affinity.PodAntiAffinity, corev1.PodAntiAffinity{}).RequiredDuringSchedulingIgnoredDuringExecution) > 0)
	add("spec.topologySpreadConstraints with DoNotSchedule", slices.ContainsFunc(pod.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.WhenUnsatisfiable == corev1.DoNotSchedule
	}))
	add("spec.schedulingGroup", pod.Spec.SchedulingGroup != nil)
	add("hostPort", slices.ContainsFunc(pod.Spec.Containers, usesHostPort) || slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return ptr.Deref(c.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways && usesHostPort(c)
	}))
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
