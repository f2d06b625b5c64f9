package deviceclasses

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ZoneConfigKind is the kind of a ZoneConfig.
const ZoneConfigKind = "ZoneConfig"

// What a ZoneConfig may say of Partition. The default is PartitionRoot.
const (
	PartitionRoot     = "root"     // no other task runs on the CPUs; load is balanced inside
	PartitionIsolated = "isolated" // PartitionRoot without load balancing
	PartitionNone     = "none"     // the kernel does not keep others off
)

// What a ZoneConfig may say of MemoryPolicy; set_mempolicy(2) explains them.
const (
	MemoryBind               = "bind"
	MemoryPreferred          = "preferred"
	MemoryInterleave         = "interleave"
	MemoryWeightedInterleave = "weighted-interleave"
)

// ZoneConfig is how a claim, or a class for its claims, wants to use zones. It
// is the opaque configuration of a request.
type ZoneConfig struct {
	metav1.TypeMeta `json:",inline"`

	// Partition is how the kernel keeps other tasks off the CPUs.
	Partition string `json:"partition,omitempty"`
	// Mixed lets the containers run on the node's shared pool, too. Such CPUs
	// are in no partition, whatever Partition says.
	Mixed bool `json:"mixed,omitempty"`
	// MemoryPolicy is where the containers' memory comes from; without one it
	// is where the task that asks for it runs.
	MemoryPolicy string `json:"memoryPolicy,omitempty"`
}

// zoneConfigs names all fields there are.
func zoneConfigs() schema {
	return schema{ZoneConfigKind, "apiVersion, kind, partition, mixed, memoryPolicy"}
}

// DecodeZoneConfig reads one ZoneConfig, in JSON. Whatever it does not know is an
// error of one line, which names the field and what is allowed.
func DecodeZoneConfig(raw []byte) (ZoneConfig, error) { return ZoneConfig{}.DecodeOver(raw) }

// DecodeOver is DecodeZoneConfig where fields that raw does not name are those of
// c.
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
		{"partition", c.Partition, []string{PartitionRoot, PartitionIsolated, PartitionNone}},
		{"memoryPolicy", c.MemoryPolicy, []string{MemoryBind, MemoryPreferred, MemoryInterleave, MemoryWeightedInterleave}},
	} {
		if field.value != "" && !slices.Contains(field.allowed, field.value) {
			return fmt.Errorf("%s: %q, allowed are %s", field.name, field.value, strings.Join(field.allowed, ", "))
		}
	}
	return nil
}
