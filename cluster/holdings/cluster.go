// Package holdings says which claims hold which devices of a cluster. For each Node and
// NUMA node, it has the CPUs, memory, hugepages and devices that are published, and the
// claims and pods that hold them. It reads a snapshot and changes nothing. It never
// guesses: if the snapshot does not say something, it is not known.
package holdings

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Cluster is what claims hold at one moment. In JSON, no list is null. A pointer is
// null if its value is not known.
type Cluster struct {
	// Nodes are the nodes that are registered, that have slices, or that have devices
	// that claims hold. They are sorted by name.
	Nodes []Node `json:"nodes"`
	// Elsewhere are the devices that belong to no single node.
	Elsewhere []Device `json:"elsewhere"`
	// Claims are all claims, sorted by namespace and name.
	Claims []Claim `json:"claims"`
	// Pending are the pods with claims and without a node, in the order of the snapshot.
	Pending []Pending `json:"pending"`
}

// Node is one Node of the cluster.
type Node struct {
	Name string `json:"name"`
	// Totals are the sums over the node's zones.
	Totals    []Resource `json:"totals"`
	NUMANodes []NUMANode `json:"numaNodes"` // sorted by id
	// Devices are the devices whose NUMA node is not known.
	Devices []Device `json:"devices"`
	// Problems are sentences about what an administrator should check.
	Problems []string `json:"problems"`
}

// NUMANode is what is published for one NUMA node.
type NUMANode struct {
	ID     int64  `json:"id"`
	Socket *int64 `json:"socket"`
	// Devices are first the zones, then the devices of other drivers, sorted by name.
	Devices []Device `json:"devices"`
}

// State says whether claims hold a device, and whether they can hold it.
type State string

// States.
const (
	// StateFree means that no claim holds the device.
	StateFree State = "free"
	// StateHeld means that a claim holds the whole device.
	StateHeld State = "held"
	// StateShared means that claims hold parts of the device.
	StateShared State = "shared"
	// StateBlocked means that no claim holds the device, and that none can hold it. The
	// Reason says why.
	StateBlocked State = "blocked"
	// StateUnpublished means that a claim holds the device, but no slice contains it.
	StateUnpublished State = "unpublished"
)

// Device is a zone, or a device of any driver.
type Device struct {
	Driver string `json:"driver"`
	Pool   string `json:"pool"`
	Name   string `json:"name"`
	Zone   bool   `json:"zone"`            // CPUs, memory and hugepages of a NUMA node
	Cache  bool   `json:"cache,omitempty"` // a pool of a level-3 cache, of this driver
	State  State  `json:"state"`
	Reason string `json:"reason,omitempty"` // why the state is StateBlocked
	// Resources are the capacities that claims can share: cpu, memory, hugepages by
	// size, ways, then other capacities by name.
	Resources []Resource `json:"resources"`
	Shares    []Share    `json:"shares"` // in the order of the claims
	Taints    []Taint    `json:"taints"`
	// Attributes are the published attributes as text, by their names with a domain.
	Attributes map[string]string `json:"attributes"`
}

// Resource is a capacity and what claims hold of it. CPUs are a number, memory and
// hugepages are in bytes, and other capacities are in the unit of their driver.
type Resource struct {
	Name  string             `json:"name"`
	Total *resource.Quantity `json:"total"` // null if no slice has it
	Held  resource.Quantity  `json:"held"`
	Free  *resource.Quantity `json:"free"` // never below 0
}

// Share is a device, or a part of one, that a claim holds.
type Share struct {
	Claim   string `json:"claim"` // namespace/name
	Request string `json:"request"`
	Node    string `json:"node,omitempty"` // "" if not known, or if the device belongs to no single node
	Driver  string `json:"driver"`
	Pool    string `json:"pool"`
	Device  string `json:"device"`
	ShareID string `json:"shareID,omitempty"`
	// Admin means admin access, which holds nothing.
	Admin   bool                         `json:"admin,omitempty"`
	Amounts map[string]resource.Quantity `json:"amounts,omitempty"` // by name of the capacity
	// Reported means that the driver wrote to the claim's status. The fields below are
	// from there. This driver writes them when the claim is prepared.
	Reported   bool        `json:"reported"`
	CPUs       *cpuset.Set `json:"cpus"`
	Mems       *cpuset.Set `json:"mems"`
	IdleCPUs   cpuset.Set  `json:"idleCPUs,omitzero"` // the part of CPUs on which no container runs
	Partition  string      `json:"partition,omitempty"`
	Scope      string      `json:"scope,omitempty"`
	Mixed      bool        `json:"mixed,omitempty"`
	SharedCPUs *cpuset.Set `json:"sharedCPUs,omitempty"`
	Why        string      `json:"why,omitempty"` // why these CPUs were chosen
	Conditions []Condition `json:"conditions,omitempty"`

	Function *deviceclasses.FunctionStatus `json:"function,omitempty"` // set for a PCI function
	Cache    *deviceclasses.CacheStatus    `json:"cache,omitempty"`    // set for a level-3 cache

	Performance *deviceclasses.PerformanceStatus `json:"performance,omitempty"` // of the CPUs; nil if the claim leaves them as they are
}

// Condition is what a driver reports about a share.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"` // True, False, Unknown
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Taint keeps new claims from using a device, or ends the pods that use it. With the
// effect None, it does nothing.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
	Rule   string `json:"rule,omitempty"` // name of the DeviceTaintRule that added the taint
}

// Acts reports whether the taint does something.
func (t Taint) Acts() bool { return t.Effect != string(resourceapi.DeviceTaintEffectNone) }

// Claim is a ResourceClaim.
type Claim struct {
	Namespace   string    `json:"namespace"`
	Name        string    `json:"name"`
	Allocated   bool      `json:"allocated"`
	Deleting    bool      `json:"deleting,omitempty"`
	Users       []User    `json:"users"` // for which the claim is reserved
	Requests    []Request `json:"requests"`
	Constraints []string  `json:"constraints"` // each a sentence
	Parameters  []string  `json:"parameters"`  // opaque, for drivers: "dra.numa: {…}"
	Shares      []Share   `json:"shares"`
}

// Key returns namespace/name.
func (c *Claim) Key() string { return c.Namespace + "/" + c.Name }

// User is what a claim is reserved for, normally a pod.
type User struct {
	Resource string `json:"resource"` // pods
	Name     string `json:"name"`
	Node     string `json:"node,omitempty"`  // of a pod, if known
	Phase    string `json:"phase,omitempty"` // of a pod, if known
}

// Request is a request of a claim, or one of its alternatives.
type Request struct {
	Name      string                       `json:"name"` // "main" or "main/sub"
	Class     string                       `json:"class"`
	Count     int64                        `json:"count,omitempty"` // number of devices; 0 means all
	Capacity  map[string]resource.Quantity `json:"capacity,omitempty"`
	Selectors []string                     `json:"selectors,omitempty"`
	Admin     bool                         `json:"admin,omitempty"`
}

// Pending is a pod that waits for a node.
type Pending struct {
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	Claims    []PodClaim `json:"claims"`
	Message   string     `json:"message,omitempty"` // of the scheduler, from its last attempt
}

// PodClaim is an entry of a pod's claims.
type PodClaim struct {
	Name  string `json:"name"`            // the pod's name for the claim
	Claim string `json:"claim,omitempty"` // name of the ResourceClaim; "" if it does not exist yet
}

// Names reports whether the pod uses the claim with this name.
func (p *Pending) Names(claim string) bool {
	return slices.ContainsFunc(p.Claims, func(c PodClaim) bool { return c.Claim == claim })
}
