package deviceclasses

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ZoneConfigKind is the kind of a ZoneConfig.
const ZoneConfigKind = "ZoneConfig"

// What a ZoneConfig may say of Cores. The default is CoresWhole.
const (
	CoresWhole            = "whole"               // all threads of each core, as far as whole cores are free
	CoresThread           = "thread"              // first those that others left of a core
	CoresOneThreadPerCore = "one-thread-per-core" // whole cores, of each of which containers run on one thread
)

// What a ZoneConfig may say of L3. The default is L3Any.
const (
	L3Prefer  = "prefer"  // as few level-3 caches as possible
	L3Require = "require" // one, or the pod waits on its node until one has room
	L3Any     = "any"     // as few as whole cores allow
)

// What a ZoneConfig may say of Placement. The default is PlacementPack.
const (
	PlacementPack       = "pack"       // where they leave the largest room for others
	PlacementSpread     = "spread"     // evenly over dies, then level-3 caches
	PlacementDistribute = "distribute" // evenly over the zone's NUMA nodes, packed in each
)

// What a ZoneConfig may say of Partition. The default is PartitionRoot.
const (
	PartitionRoot     = "root"     // no other task runs on the CPUs; load is balanced inside
	PartitionIsolated = "isolated" // the same without load balancing
	PartitionNone     = "none"     // the kernel does not keep others off
)

// What a ZoneConfig may say of MemoryPolicy; set_mempolicy(2) explains them.
const (
	MemoryBind               = "bind"                // from the claim's NUMA nodes only
	MemoryPreferred          = "preferred"           // from others if those have none left
	MemoryInterleave         = "interleave"          // page by page from each in turn
	MemoryWeightedInterleave = "weighted-interleave" // in proportion to their bandwidth; Linux 6.9
)

// ZoneConfig is how a claim, or a class for its claims, wants to use zones. It
// is the opaque configuration of a request.
type ZoneConfig struct {
	metav1.TypeMeta `json:",inline"`

	// Cores is how the CPUs share physical cores with others. Each CPU of a claim
	// counts, also those that one-thread-per-core keeps idle: of 8 CPUs on cores of
	// two threads, containers run on 4.
	//
	//	cores: one-thread-per-core
	Cores string `json:"cores,omitempty"`
	// L3 is how much it matters that the CPUs share one level-3 cache. The scheduler
	// does not see those.
	//
	//	l3: prefer
	L3 string `json:"l3,omitempty"`
	// Placement is which CPUs of the zone it is where several would do. A claim that
	// prefers or requires one level-3 cache is spread inside of that one only.
	//
	//	placement: spread
	Placement string `json:"placement,omitempty"`
	// Partition is how the kernel keeps other tasks off the CPUs.
	//
	//	partition: isolated
	Partition string `json:"partition,omitempty"`
	// Mixed lets the containers run on the node's shared pool, too. Such CPUs
	// are in no partition.
	//
	//	mixed: true
	Mixed bool `json:"mixed,omitempty"`
	// MemoryPolicy is where the containers' memory comes from, by the container
	// runtime over NRI; without one it is where the task that asks for it runs.
	//
	//	memoryPolicy: bind
	MemoryPolicy string `json:"memoryPolicy,omitempty"`
}

// zoneConfigs names all fields there are.
func zoneConfigs() schema {
	return schema{kind: ZoneConfigKind, fields: "apiVersion, kind, cores, l3, placement, partition, mixed, memoryPolicy"}
}

// DecodeOver reads one ZoneConfig, in JSON. Fields that raw does not name are
// those of c; whatever is not known is an error of one line, which names the field
// and what is allowed.
func (c ZoneConfig) DecodeOver(raw []byte) (ZoneConfig, error) {
	err := zoneConfigs().decode(raw, &c, &c.TypeMeta)
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		return ZoneConfig{}, err
	}
	return c, nil
}

// Validate looks at the values of the fields. An empty one is fine.
func (c ZoneConfig) Validate() error {
	for _, field := range []struct {
		name, value string
		allowed     []string
	}{
		{"cores", c.Cores, []string{CoresWhole, CoresThread, CoresOneThreadPerCore}},
		{"l3", c.L3, []string{L3Prefer, L3Require, L3Any}},
		{"placement", c.Placement, []string{PlacementPack, PlacementSpread, PlacementDistribute}},
		{"partition", c.Partition, []string{PartitionRoot, PartitionIsolated, PartitionNone}},
		{"memoryPolicy", c.MemoryPolicy, []string{MemoryBind, MemoryPreferred, MemoryInterleave, MemoryWeightedInterleave}},
	} {
		if field.value != "" && !slices.Contains(field.allowed, field.value) {
			return fmt.Errorf("%s: %q, allowed are %s", field.name, field.value, strings.Join(field.allowed, ", "))
		}
	}
	return nil
}
