package accounting

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/probe"
)

// Report says where requests and claims of a cluster do not match.
type Report struct {
	// Nodes are the nodes with zones, sorted by name.
	Nodes []Node `json:"nodes"`
	// Pods are the pods that request less than they hold, by namespace and name.
	Pods []Pod `json:"pods,omitempty"`
}

// Node has the sums of a node. Amounts of 0 are left out.
type Node struct {
	Name string `json:"name"`
	// Published is the sum over the node's zones.
	Published corev1.ResourceList `json:"published"`
	// Allocatable is what the scheduler lets pods request.
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
	// Claimed is what claims hold of the zones.
	Claimed corev1.ResourceList `json:"claimed,omitempty"`
	// Requested is what the scheduler counts for the node's pods.
	Requested corev1.ResourceList `json:"requested,omitempty"`
	// Uncounted is what claims hold and no pod requests.
	Uncounted corev1.ResourceList `json:"uncounted,omitempty"`
	// Overcommit is Requested + Uncounted - Allocatable where that is more than 0.
	Overcommit corev1.ResourceList `json:"overcommit,omitempty"`
}

// Pod is a pod on a node that requests less than its claims hold.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Node      string `json:"node"`
	// Held is what the pod's claims hold, Requested is what the scheduler counts, and
	// Uncounted is what it should count in addition.
	Held      corev1.ResourceList `json:"held"`
	Requested corev1.ResourceList `json:"requested,omitempty"`
	Uncounted corev1.ResourceList `json:"uncounted"`
}

// Cluster has the objects to add up. Objects of other drivers may be among them.
type Cluster struct {
	Nodes  []*corev1.Node
	Slices []*resourceapi.ResourceSlice
	Claims []*resourceapi.ResourceClaim
	Pods   []*corev1.Pod
}

// Balance adds up what is requested and held on each node. Pods that have ended do not
// count. A claim that the scheduler counts by itself does not count. A claim that no pod
// uses counts for its node.
func Balance(cluster Cluster) Report {
	sums := newSums(cluster)
	for _, claim := range cluster.Claims {
		sums.addClaim(claim)
	}
	var report Report
	for _, pod := range cluster.Pods {
		if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		if finding, lacks := sums.addPod(pod); lacks {
			report.Pods = append(report.Pods, finding)
		}
	}
	for _, node := range sums.nodes {
		add(node.Uncounted, sums.unused[node.Name])
		promised := corev1.ResourceList{}
		add(promised, node.Requested)
		add(promised, node.Uncounted)
		node.Overcommit = excess(promised, node.Allocatable)
		if node.Allocatable == nil { // there is no Node object, so the scheduler places nothing there
			node.Overcommit = nil
		}
		report.Nodes = append(report.Nodes, *node)
	}
	slices.SortFunc(report.Nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(report.Pods, func(a, b Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return report
}

// sums are the amounts of all nodes while they are added up.
type sums struct {
	nodes  map[string]*Node
	claims map[types.NamespacedName]*resourceapi.ResourceClaim
	unused map[string]corev1.ResourceList // by node: what claims without a pod hold
}

func newSums(cluster Cluster) sums {
	s := sums{map[string]*Node{}, map[types.NamespacedName]*resourceapi.ResourceClaim{}, map[string]corev1.ResourceList{}}
	for _, slice := range cluster.Slices {
		if slice.Spec.Driver != deviceclasses.DriverName || slice.Spec.NodeName == nil {
			continue
		}
		node := s.nodes[*slice.Spec.NodeName]
		if node == nil {
			node = &Node{Name: *slice.Spec.NodeName}
			node.Published, node.Claimed, node.Requested, node.Uncounted = corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
			s.nodes[node.Name] = node
		}
		for _, device := range slice.Spec.Devices {
			for key, capacity := range device.Capacity {
				if name, known := resourceOf(key); known {
					add(node.Published, corev1.ResourceList{name: capacity.Value})
				}
			}
		}
	}
	for _, object := range cluster.Nodes {
		if node := s.nodes[object.Name]; node != nil {
			node.Allocatable = onlyCounted(object.Status.Allocatable)
		}
	}
	return s
}

// addClaim adds what a claim holds of its node.
func (s sums) addClaim(claim *resourceapi.ResourceClaim) {
	s.claims[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}] = claim
	for _, share := range Held("", claim) {
		node := s.nodes[poolOf(claim)]
		if node == nil {
			continue
		}
		add(node.Claimed, share.Amounts)
		if firstConsumer(claim) == nil {
			if s.unused[node.Name] == nil {
				s.unused[node.Name] = corev1.ResourceList{}
			}
			add(s.unused[node.Name], share.Amounts)
		}
	}
}

// poolOf is the pool of a claim's zones, which is named after its node.
func poolOf(claim *resourceapi.ResourceClaim) string {
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver == deviceclasses.DriverName {
			return result.Pool
		}
	}
	return ""
}

// addPod adds what the scheduler counts for a pod.
func (s sums) addPod(pod *corev1.Pod) (finding Pod, lacks bool) {
	counts := onlyCounted(taken(pod))
	shares, _ := SharesOf(pod, s)
	uncounted := lacking(pod, shares, counts)
	if node := s.nodes[pod.Spec.NodeName]; node != nil {
		add(node.Requested, counts)
		add(node.Uncounted, uncounted)
	}
	held := corev1.ResourceList{}
	for _, share := range shares {
		add(held, share.Amounts)
	}
	return Pod{pod.Namespace, pod.Name, pod.Spec.NodeName, held, counts, uncounted}, len(uncounted) > 0
}

func onlyCounted(list corev1.ResourceList) corev1.ResourceList {
	counts := corev1.ResourceList{}
	for name, amount := range list {
		if counted(name) && !amount.IsZero() {
			counts[name] = amount
		}
	}
	return counts
}

// sums implements Known with the claims only: pods on a node need nothing else.

// DeviceClass finds nothing.
func (s sums) DeviceClass(string) *resourceapi.DeviceClass { return nil }

// ResourceClaim finds a claim of the cluster.
func (s sums) ResourceClaim(namespace, name string) *resourceapi.ResourceClaim {
	return s.claims[types.NamespacedName{Namespace: namespace, Name: name}]
}

// ResourceClaimTemplate finds nothing.
func (s sums) ResourceClaimTemplate(string, string) *resourceapi.ResourceClaimTemplate {
	return nil
}

// Steps are empty.
func (s sums) Steps() Steps { return nil }

// Selectors are not needed without classes.
func (s sums) Selectors() *probe.Selectors { return nil }
