package deviceclasses

import (
	"cmp"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ZoneConfigKind is the kind of a ZoneConfig.
const ZoneConfigKind = "ZoneConfig"

// Values of ZoneConfig.Cores. The default is CoresWhole.
const (
	CoresWhole            = "whole"               // all threads of each core, as far as whole cores are free
	CoresThread           = "thread"              // first the free threads of cores that are already partly used
	CoresOneThreadPerCore = "one-thread-per-core" // whole cores, but containers run on only one thread of each core
)

// Values of ZoneConfig.L3. The default is L3Any.
const (
	L3Prefer  = "prefer"  // as few level-3 caches as possible
	L3Require = "require" // one level-3 cache; if none has room, the pod waits on its node until one has
	L3Any     = "any"     // as few level-3 caches as whole cores allow
)

// Values of ZoneConfig.Placement. The default is PlacementPack.
const (
	PlacementPack       = "pack"       // where they leave the largest room for other claims
	PlacementSpread     = "spread"     // evenly over dies, then over level-3 caches
	PlacementDistribute = "distribute" // evenly over the zone's NUMA nodes, packed in each
)

// Values of ZoneConfig.CoreType. The default is any core.
const (
	CorePerformance = "performance" // the fast ones
	CoreEfficient   = "efficient"   // the frugal ones
)

// Values of ZoneConfig.Partition. The default is PartitionRoot.
const (
	PartitionRoot     = "root"     // no other task runs on the CPUs; the kernel balances load among them
	PartitionIsolated = "isolated" // the same, without load balancing
	PartitionNone     = "none"     // the kernel does not keep other tasks off the CPUs
)

// Values of ZoneConfig.MemoryPolicy; set_mempolicy(2) explains them.
const (
	MemoryBind               = "bind"                // from the claim's NUMA nodes only; the request needs memory or hugepages
	MemoryPreferred          = "preferred"           // from the claim's NUMA nodes, or from others if those have no memory left
	MemoryInterleave         = "interleave"          // from each of the claim's NUMA nodes in turn, page by page
	MemoryWeightedInterleave = "weighted-interleave" // the same, in proportion to their bandwidth; needs Linux 6.9
)

// ZoneConfig says how a claim uses zones. It is the opaque configuration of a request,
// in the claim or in its class.
type ZoneConfig struct {
	metav1.TypeMeta `json:",inline"`

	// Cores says how the claim shares physical cores with others. All CPUs of a claim
	// count, including those that one-thread-per-core keeps idle: with 8 CPUs on cores
	// of two threads, containers run on 4.
	//
	//	cores: one-thread-per-core
	Cores string `json:"cores,omitempty"`
	// L3 says how important it is that the CPUs share one level-3 cache. The scheduler
	// does not see level-3 caches.
	//
	//	l3: prefer
	L3 string `json:"l3,omitempty"`
	// Placement says which CPUs of the zone the claim gets if there is a choice. If the
	// claim prefers or requires one level-3 cache, its CPUs are spread only inside the
	// caches that are chosen for that.
	//
	//	placement: spread
	Placement string `json:"placement,omitempty"`
	// CoreType says which cores of a hybrid processor are better. The claim gets others if
	// too few of them are free; its status says what it got. With zoneBy: coreType, selectors
	// choose exactly.
	//
	//	coreType: performance
	CoreType string `json:"coreType,omitempty"`
	// Partition says how the kernel keeps other tasks off the claim's CPUs.
	//
	//	partition: isolated
	Partition string `json:"partition,omitempty"`
	// Mixed lets the containers also run on the node's shared pool. The claim's CPUs
	// are then in no partition.
	//
	//	mixed: true
	Mixed bool `json:"mixed,omitempty"`
	// MemoryPolicy says where the containers' memory comes from. The container runtime
	// sets it, through NRI. On a node where it cannot, the claim is not prepared. Without a
	// policy, memory comes from the NUMA node where the task that asks for it runs. A claim
	// with memory or hugepages gets memory only from its own NUMA nodes, unless the policy
	// is preferred.
	//
	//	memoryPolicy: bind
	MemoryPolicy string `json:"memoryPolicy,omitempty"`
	// Locked are names of fields that claims must not change, not even from their default.
	// Only a DeviceClass can lock fields.
	//
	//	locked: [partition, mixed]
	Locked []string `json:"locked,omitempty"`
}

// DecodeOver reads one ZoneConfig, in JSON. Fields that raw does not name keep the
// values of c. Anything unknown is an error of one line, which names the field and what
// is allowed.
func (c ZoneConfig) DecodeOver(raw []byte) (ZoneConfig, error) {
	c.Locked = slices.Clone(c.Locked) // decoding writes into a list that is there
	return decodeValid(ZoneConfigKind, raw, &c, &c.TypeMeta)
}

// Validate checks the values of the fields. A field may be empty.
func (c ZoneConfig) Validate() error {
	return cmp.Or(checkChoices(c.choices()...), checkLocked(c.Locked, c.settings()))
}

// choices returns the fields that have one of some values.
func (c ZoneConfig) choices() []choice {
	return []choice{
		{"cores", c.Cores, []string{CoresWhole, CoresThread, CoresOneThreadPerCore}},
		{"l3", c.L3, []string{L3Prefer, L3Require, L3Any}},
		{"placement", c.Placement, []string{PlacementPack, PlacementSpread, PlacementDistribute}},
		{"coreType", c.CoreType, []string{CorePerformance, CoreEfficient}},
		{"partition", c.Partition, []string{PartitionRoot, PartitionIsolated, PartitionNone}},
		{"memoryPolicy", c.MemoryPolicy, []string{MemoryBind, MemoryPreferred, MemoryInterleave, MemoryWeightedInterleave}},
	}
}

// settings returns the fields that a class can lock.
func (c ZoneConfig) settings() []setting {
	return []setting{
		{"cores", cmp.Or(c.Cores, CoresWhole)},
		{"l3", cmp.Or(c.L3, L3Any)},
		{"placement", cmp.Or(c.Placement, PlacementPack)},
		{"coreType", c.CoreType},
		{"partition", cmp.Or(c.Partition, PartitionRoot)},
		{"mixed", strconv.FormatBool(c.Mixed)},
		{"memoryPolicy", c.MemoryPolicy},
	}
}
