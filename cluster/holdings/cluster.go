// Package holdings says who holds what of a cluster's devices: of each Node, by
// NUMA node, the CPUs, memory, hugepages and devices that are published, and the
// claims and pods that have them. It reads a snapshot and changes nothing; what
// the snapshot does not say is not known, and it never guesses.
package holdings

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Cluster is who holds what at one moment. Of the lists none is null in JSON; a
// pointer that is null is not known.
type Cluster struct {
	// Nodes are those that are registered, have slices, or have zones that are held; by name.
	Nodes []Node `json:"nodes"`
	// Elsewhere are the devices that are not of one node.
	Elsewhere []Device `json:"elsewhere"`
	// Claims are all there are, by namespace and name.
	Claims []Claim `json:"claims"`
	// Pending are the pods with claims that have no node, in their order.
	Pending []Pending `json:"pending"`
}

// Node is one Node of the cluster.
type Node struct {
	Name string `json:"name"`
	// Totals are the sums over the node's zones.
	Totals    []Resource `json:"totals"`
	NUMANodes []NUMANode `json:"numaNodes"` // by id
	// Devices are those whose NUMA node is not known.
	Devices []Device `json:"devices"`
	// Problems are what an administrator should look at, each a sentence.
	Problems []string `json:"problems"`
}

// NUMANode is what is published of one NUMA node.
type NUMANode struct {
	ID     int64  `json:"id"`
	Socket *int64 `json:"socket"`
	// Devices are zones first, then those of other drivers, by name.
	Devices []Device `json:"devices"`
}

// State is whether somebody can have a device.
type State string

// States.
const (
	// StateFree is for devices that nobody has; StateHeld for those that somebody
	// has whole; StateShared for those that claims hold parts of.
	StateFree   State = "free"
	StateHeld   State = "held"
	StateShared State = "shared"
	// StateBlocked is for devices that nobody has and nobody can have, for a Reason.
	StateBlocked State = "blocked"
	// StateUnpublished is for devices that a claim holds and no slice has.
	StateUnpublished State = "unpublished"
)

// Device is a zone, or a device of any driver.
type Device struct {
	Driver string `json:"driver"`
	Pool   string `json:"pool"`
	Name   string `json:"name"`
	Zone   bool   `json:"zone"` // CPUs, memory and hugepages of a NUMA node
	State  State  `json:"state"`
	Reason string `json:"reason,omitempty"` // of StateBlocked
	// Resources are the capacities of which claims hold parts: cpu, memory,
	// hugepages by size, then others by name.
	Resources []Resource `json:"resources"`
	Shares    []Share    `json:"shares"` // in the order of the claims
	Taints    []Taint    `json:"taints"`
	// Attributes are what is published of it, by name, for people.
	Attributes map[string]string `json:"attributes"`
}

// Resource is a capacity and what is held of it: CPUs are counted, all else is in
// bytes or in what its driver says.
type Resource struct {
	Name  string             `json:"name"`
	Total *resource.Quantity `json:"total"` // null if no slice says it
	Held  resource.Quantity  `json:"held"`
	Free  *resource.Quantity `json:"free"` // never below 0
}

// Share is one device, or a part of one, that a claim holds.
type Share struct {
	Claim   string `json:"claim"` // namespace/name
	Request string `json:"request"`
	Node    string `json:"node,omitempty"` // "" if it is not known, or not of one node
	Driver  string `json:"driver"`
	Pool    string `json:"pool"`
	Device  string `json:"device"`
	ShareID string `json:"shareID,omitempty"`
	// Admin is access for administration, which holds nothing.
	Admin   bool                         `json:"admin,omitempty"`
	Amounts map[string]resource.Quantity `json:"amounts,omitempty"` // by capacity
	// Reported says that the driver wrote of it in the claim's status; what
	// follows is what it wrote. Ours does so when the claim is prepared.
	Reported   bool        `json:"reported"`
	CPUs       *cpuset.Set `json:"cpus"`
	Mems       *cpuset.Set `json:"mems"`
	IdleCPUs   cpuset.Set  `json:"idleCPUs,omitzero"` // those of CPUs that its containers do not run on
	Partition  string      `json:"partition,omitempty"`
	Scope      string      `json:"scope,omitempty"`
	Mixed      bool        `json:"mixed,omitempty"`
	SharedCPUs *cpuset.Set `json:"sharedCPUs,omitempty"`
	Why        string      `json:"why,omitempty"` // these CPUs
	Conditions []Condition `json:"conditions,omitempty"`

	Function *deviceclasses.FunctionStatus `json:"function,omitempty"` // of a PCI function
}

// Condition is what a driver says of a share.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"` // True, False, Unknown
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Taint keeps new claims away from a device, or ends those that have it.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
	Rule   string `json:"rule,omitempty"` // the DeviceTaintRule that it is from
}

// Claim is a ResourceClaim.
type Claim struct {
	Namespace   string    `json:"namespace"`
	Name        string    `json:"name"`
	Allocated   bool      `json:"allocated"`
	Deleting    bool      `json:"deleting,omitempty"`
	Users       []User    `json:"users"` // it is reserved for these
	Requests    []Request `json:"requests"`
	Constraints []string  `json:"constraints"` // each a sentence
	Parameters  []string  `json:"parameters"`  // opaque, for drivers: "dra.numa: {…}"
	Shares      []Share   `json:"shares"`
}

// Key is namespace/name.
func (c *Claim) Key() string { return c.Namespace + "/" + c.Name }

// User is who a claim is reserved for, a pod as a rule.
type User struct {
	Resource string `json:"resource"` // pods
	Name     string `json:"name"`
	Node     string `json:"node,omitempty"`  // of a pod, if it is known
	Phase    string `json:"phase,omitempty"` // of a pod, if it is known
}

// Request is what a claim asks for, or one alternative of it.
type Request struct {
	Name      string                       `json:"name"` // "main" or "main/sub"
	Class     string                       `json:"class"`
	Count     int64                        `json:"count,omitempty"` // of devices; 0 is all
	Capacity  map[string]resource.Quantity `json:"capacity,omitempty"`
	Selectors []string                     `json:"selectors,omitempty"`
	Admin     bool                         `json:"admin,omitempty"`
}

// Pending is a pod that waits for a node.
type Pending struct {
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	Claims    []PodClaim `json:"claims"`
	Message   string     `json:"message,omitempty"` // the scheduler's last word
}

// PodClaim is a claim of a pod.
type PodClaim struct {
	Name  string `json:"name"`            // the pod's for it
	Claim string `json:"claim,omitempty"` // "" if it is not made from its template yet
}

// Names reports whether the pod uses the claim of that name.
func (p *Pending) Names(claim string) bool {
	return slices.ContainsFunc(p.Claims, func(c PodClaim) bool { return c.Claim == claim })
}
