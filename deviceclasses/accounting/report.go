package accounting

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// Report says where the books of a cluster do not match.
type Report struct {
	// Nodes are those with zones, sorted by name.
	Nodes []Node `json:"nodes"`
	// Pods are those that request less than they hold, by namespace and name.
	Pods []Pod `json:"pods,omitempty"`
}

// Node is the account of a node. Of each resource, what is 0 is left out.
type Node struct {
	Name string `json:"name"`
	// Published is the sum over the node's zones.
	Published corev1.ResourceList `json:"published"`
	// Allocatable is what the scheduler lets pods request.
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
	// Claimed is what claims hold of the zones.
	Claimed corev1.ResourceList `json:"claimed,omitempty"`
	// Requested is what the scheduler counts of the node's pods.
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
	// Held is what its claims hold, Requested what the scheduler counts, and
	// Uncounted what it should have counted beside.
	Held      corev1.ResourceList `json:"held"`
	Requested corev1.ResourceList `json:"requested,omitempty"`
	Uncounted corev1.ResourceList `json:"uncounted"`
}

// Cluster is what there is to account for. Other drivers' objects may be among
// it.
type Cluster struct {
	Nodes  []*corev1.Node
	Slices []*resourceapi.ResourceSlice
	Claims []*resourceapi.ResourceClaim
	Pods   []*corev1.Pod
}

// Balance adds up the books. Pods that have ended count nothing, and neither does
// a claim that the scheduler counts by itself; a claim that no pod uses counts as
// held by its node.
func Balance(cluster Cluster) Report {
	accounts := newAccounts(cluster)
	for _, claim := range cluster.Claims {
		accounts.claim(claim)
	}
	var report Report
	for _, pod := range cluster.Pods {
		if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		if finding, lacks := accounts.pod(pod); lacks {
			report.Pods = append(report.Pods, finding)
		}
	}
	for _, node := range accounts.nodes {
		add(node.Uncounted, accounts.unused[node.Name])
		promised := corev1.ResourceList{}
		add(promised, node.Requested)
		add(promised, node.Uncounted)
		node.Overcommit = excess(promised, node.Allocatable)
		if node.Allocatable == nil { // a Node that is not there allows nothing, and nobody schedules to it
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

// accounts are open books.
type accounts struct {
	nodes  map[string]*Node
	claims map[types.NamespacedName]*resourceapi.ResourceClaim
	unused map[string]corev1.ResourceList // by node, of claims without a pod
}

func newAccounts(cluster Cluster) accounts {
	a := accounts{map[string]*Node{}, map[types.NamespacedName]*resourceapi.ResourceClaim{}, map[string]corev1.ResourceList{}}
	for _, slice := range cluster.Slices {
		if slice.Spec.Driver != deviceclasses.DriverName || slice.Spec.NodeName == nil {
			continue
		}
		node := a.nodes[*slice.Spec.NodeName]
		if node == nil {
			node = &Node{Name: *slice.Spec.NodeName}
			node.Published, node.Claimed, node.Requested, node.Uncounted = corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
			a.nodes[node.Name] = node
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
		if node := a.nodes[object.Name]; node != nil {
			node.Allocatable = onlyCounted(object.Status.Allocatable)
		}
	}
	return a
}

// claim enters what a claim holds of its node.
func (a accounts) claim(claim *resourceapi.ResourceClaim) {
	a.claims[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}] = claim
	for _, share := range Held("", claim) {
		node := a.nodes[poolOf(claim)]
		if node == nil {
			continue
		}
		add(node.Claimed, share.Amounts)
		if firstConsumer(claim) == nil {
			if a.unused[node.Name] == nil {
				a.unused[node.Name] = corev1.ResourceList{}
			}
			add(a.unused[node.Name], share.Amounts)
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

// pod enters what the scheduler counts of a pod.
func (a accounts) pod(pod *corev1.Pod) (finding Pod, lacks bool) {
	counts := onlyCounted(requested(pod))
	shares, _ := SharesOf(pod, a)
	mirrored := Mirror(pod, shares)
	if node := a.nodes[pod.Spec.NodeName]; node != nil {
		add(node.Requested, counts)
		add(node.Uncounted, mirrored.Uncounted)
	}
	held := corev1.ResourceList{}
	for _, share := range shares {
		add(held, share.Amounts)
	}
	return Pod{pod.Namespace, pod.Name, pod.Spec.NodeName, held, counts, mirrored.Uncounted}, len(mirrored.Uncounted) > 0
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

// accounts knows the claims, which is all that pods on a node need.

// DeviceClass is none.
func (a accounts) DeviceClass(string) *resourceapi.DeviceClass { return nil }

// ResourceClaim is one of the cluster's.
func (a accounts) ResourceClaim(namespace, name string) *resourceapi.ResourceClaim {
	return a.claims[types.NamespacedName{Namespace: namespace, Name: name}]
}

// ResourceClaimTemplate is none.
func (a accounts) ResourceClaimTemplate(string, string) *resourceapi.ResourceClaimTemplate {
	return nil
}

// Steps are none.
func (a accounts) Steps() Steps { return nil }
