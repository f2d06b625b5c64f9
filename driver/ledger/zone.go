package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// ZoneShare is what a share holds of a zone: CPUs, memory and hugepages.
type ZoneShare struct {
	NUMANodes []int      `json:"numaNodes"`     // ascending, at least one
	CPUs      cpuset.Set `json:"cpus,omitzero"` // empty: memory only
	Why       string     `json:"why,omitempty"` // why these CPUs were chosen, in one line

	// IdleCPUs are the part of CPUs that containers keep idle: siblings of the other
	// CPUs. IdleCPUs ⊂ CPUs.
	IdleCPUs cpuset.Set `json:"idleCPUs,omitzero"`

	Partition    string     `json:"partition,omitempty"`    // kind of partition for the CPUs: root, isolated or none; "" without CPUs
	Scope        string     `json:"scope,omitempty"`        // which cgroup becomes the partition: "" for the container's, else pod or shared
	Mixed        bool       `json:"mixed,omitempty"`        // containers run on the shared pool as well
	SharedCPUs   cpuset.Set `json:"sharedCPUs,omitzero"`    // if Mixed: the shared pool when the claim was first prepared
	MemoryPolicy string     `json:"memoryPolicy,omitempty"` // bind, preferred, interleave, weighted-interleave; "" for the kernel's default

	MemoryBytes   uint64            `json:"memoryBytes,omitempty"`   // without hugepages
	HugepageBytes map[string]uint64 `json:"hugepageBytes,omitempty"` // each > 0, by size as in "2Mi"

	Performance *Performance `json:"-"` // of CPUs; nil if the claim leaves them as they are; recordedShare has it
}

var _ Kind = (*ZoneShare)(nil)

// The scopes of a share: which cgroup has its CPUs to itself.
const (
	ScopeContainer = ""                        // the container's: one container at a time uses the CPUs
	ScopePod       = deviceclasses.ScopePod    // the pod's: all of its containers use the CPUs
	ScopeShared    = deviceclasses.ScopeShared // none: only some containers of a pod or several pods use the CPUs, or a container has other CPUs that are shared
)

// RunCPUs returns the CPUs on which the share's containers run.
func (z *ZoneShare) RunCPUs() cpuset.Set { return z.CPUs.Difference(z.IdleCPUs) }

// Mems is the NUMA nodes that the share is a part of.
func (z *ZoneShare) Mems() cpuset.Set { return cpuset.New(z.NUMANodes...) }

// Binds is empty if the scheduler counted no memory of the share: other containers could
// have used up that of its NUMA nodes. Without a binding, the kernel prefers the node of
// the CPU.
func (z *ZoneShare) Binds() cpuset.Set {
	counted := z.MemoryBytes > 0 || len(z.HugepageBytes) > 0
	if !counted || z.MemoryPolicy == deviceclasses.MemoryPreferred {
		return cpuset.Set{}
	}
	return z.Mems()
}

// KernelExclusive is as [Share.KernelExclusive].
func (z *ZoneShare) KernelExclusive() bool {
	return z.Partition != deviceclasses.PartitionNone && z.Scope != ScopeShared && !z.Mixed && !z.CPUs.IsEmpty()
}

func (z *ZoneShare) pinned() bool {
	return !z.Binds().IsEmpty() || !z.CPUs.IsEmpty() && !z.Mixed
}

// Equal compares every field.
func (z *ZoneShare) Equal(other Kind) bool {
	o, same := other.(*ZoneShare)
	return same && slices.Equal(z.NUMANodes, o.NUMANodes) && z.CPUs == o.CPUs && z.Why == o.Why && z.IdleCPUs == o.IdleCPUs &&
		z.Partition == o.Partition && z.Scope == o.Scope && z.Mixed == o.Mixed && z.SharedCPUs == o.SharedCPUs &&
		z.MemoryPolicy == o.MemoryPolicy && z.MemoryBytes == o.MemoryBytes && maps.Equal(z.HugepageBytes, o.HugepageBytes) &&
		z.Performance.Equal(o.Performance)
}

func (z *ZoneShare) validate() error {
	config := deviceclasses.ZoneConfig{Partition: z.Partition, MemoryPolicy: z.MemoryPolicy}
	if err := config.Validate(); err != nil {
		return err
	}
	if allowed := []string{ScopePod, ScopeShared}; z.Scope != ScopeContainer && !slices.Contains(allowed, z.Scope) {
		return fmt.Errorf("scope: %q, allowed are %s", z.Scope, strings.Join(allowed, ", "))
	}
	if err := validateNUMANodes(z.NUMANodes); err != nil {
		return err
	}
	if (z.Partition == "") != z.CPUs.IsEmpty() {
		return fmt.Errorf("partition: %q with cpus %q, want a partition for CPUs, and for nothing else", z.Partition, z.CPUs)
	}
	if !z.IdleCPUs.IsEmpty() && (!z.IdleCPUs.IsSubsetOf(z.CPUs) || z.IdleCPUs == z.CPUs) {
		return fmt.Errorf("idleCPUs: %s, allowed are some of cpus %s", z.IdleCPUs, z.CPUs)
	}
	return z.Performance.validate()
}

func validateNUMANodes(nodes []int) error {
	last := -1
	for _, node := range nodes {
		if node <= last || node >= cpuset.MaxCPUs {
			return fmt.Errorf("numaNodes: %d, allowed are ids in ascending order, of 0 to %d", nodes, cpuset.MaxCPUs-1)
		}
		last = node
	}
	if last < 0 {
		return errors.New("numaNodes: want at least one id")
	}
	return nil
}

func (z *ZoneShare) hold(*held) (twice string) { return "" }

func (z *ZoneShare) conflict(Kind) string { return "" }

func (z *ZoneShare) honoured(machine *numa.Machine, reserved cpuset.Set) bool {
	var cpus cpuset.Set
	for id := range z.Mems().All() {
		zone, ok := machine.Zone(id)
		if !ok {
			return false
		}
		cpus = cpus.Union(zone.CPUs)
	}
	if isolated := ptr.Deref(machine.Isolated, cpuset.Set{}); z.partition() == deviceclasses.PartitionRoot && z.CPUs.Overlaps(isolated) {
		return false // since this boot, the kernel refuses the partition
	}
	return z.CPUs.IsSubsetOf(cpus.Difference(reserved))
}

func (z *ZoneShare) fault(*numa.Machine) string { return "" }

func (z *ZoneShare) stray(device string, _ *numa.Machine, published []zones.Zone) bool {
	zone := zones.Named(published, device)
	return zone == nil || !z.CPUs.IsSubsetOf(zone.CPUs)
}

func (z *ZoneShare) withheld(device string) ([]zones.Held, []resourceapi.Device) {
	return []zones.Held{{Device: device, CPUs: z.CPUs, Mems: z.Mems(), MemoryBytes: z.MemoryBytes, HugepageBytes: z.HugepageBytes}}, nil
}

func (z *ZoneShare) record(share *recordedShare) { share.Zone, share.Performance = z, z.Performance }

func (z *ZoneShare) appendText(text []byte) []byte {
	text = append(text, `,"zone":{"numaNodes":`...)
	if z.NUMANodes == nil {
		text = append(text, "null"...)
	} else {
		text = appendNumbers(text, z.NUMANodes)
	}
	if !z.CPUs.IsEmpty() {
		text = appendString(append(text, `,"cpus":`...), z.CPUs.String())
	}
	if z.Why != "" {
		text = appendString(append(text, `,"why":`...), z.Why)
	}
	if !z.IdleCPUs.IsEmpty() {
		text = appendString(append(text, `,"idleCPUs":`...), z.IdleCPUs.String())
	}
	text = z.appendUse(text)
	if z.MemoryBytes != 0 {
		text = strconv.AppendUint(append(text, `,"memoryBytes":`...), z.MemoryBytes, 10)
	}
	if len(z.HugepageBytes) > 0 {
		text = append(text, `,"hugepageBytes":{`...)
		for i, size := range slices.Sorted(maps.Keys(z.HugepageBytes)) {
			if i > 0 {
				text = append(text, ',')
			}
			text = append(appendString(text, size), ':')
			text = strconv.AppendUint(text, z.HugepageBytes[size], 10)
		}
		text = append(text, '}')
	}
	text = append(text, '}')
	if z.Performance != nil {
		text = appendField(text, "performance", z.Performance)
	}
	return text
}

// appendUse appends how the CPUs and the memory are used.
func (z *ZoneShare) appendUse(text []byte) []byte {
	if z.Partition != "" {
		text = appendString(append(text, `,"partition":`...), z.Partition)
	}
	if z.Scope != "" {
		text = appendString(append(text, `,"scope":`...), z.Scope)
	}
	if z.Mixed {
		text = append(text, `,"mixed":true`...)
	}
	if !z.SharedCPUs.IsEmpty() {
		text = appendString(append(text, `,"sharedCPUs":`...), z.SharedCPUs.String())
	}
	if z.MemoryPolicy != "" {
		text = appendString(append(text, `,"memoryPolicy":`...), z.MemoryPolicy)
	}
	return text
}

// partition returns the partition that the hook makes.
func (z *ZoneShare) partition() string {
	if !z.KernelExclusive() {
		return deviceclasses.PartitionNone
	}
	return z.Partition
}

func (z *ZoneShare) spec(partitions bool) cdi.ShareKind {
	spec := &cdi.Zone{
		CPUs: z.CPUs, IdleCPUs: z.IdleCPUs, Mems: z.Binds(), Mixed: z.Mixed, SharedCPUs: z.SharedCPUs, MemoryPolicy: z.kernelPolicy(),
		Partition: deviceclasses.PartitionNone, Scope: deviceclasses.ScopeContainer,
	}
	if !partitions {
		return spec // a kernel without partitions must not be asked for one
	}
	spec.Partition = z.partition()
	if z.Scope == ScopePod {
		spec.Scope = deviceclasses.ScopePod
	}
	return spec
}

func (z *ZoneShare) cdiDevices(own string) []string { return []string{own} }

func (z *ZoneShare) status() any {
	status := deviceclasses.ZoneStatus{CPUs: z.CPUs, Mems: z.Binds(), IdleCPUs: z.IdleCPUs, Mixed: z.Mixed, Why: z.Why, Performance: z.Performance.status()}
	if !z.CPUs.IsEmpty() {
		status.Partition = z.partition()
		status.Scope = cmp.Or(z.Scope, deviceclasses.ScopeContainer)
	}
	if z.Mixed {
		status.SharedCPUs = z.SharedCPUs
	}
	return status
}

func (z *ZoneShare) interfaces() []string { return nil }

// policyMems returns the NUMA nodes that the memory policy of the share is about; see driver.Pinned.
func (z *ZoneShare) policyMems() cpuset.Set {
	if z.MemoryPolicy == deviceclasses.MemoryBind {
		return z.Binds()
	}
	return z.Mems()
}

// kernelPolicy returns the memory policy as /proc/<pid>/numa_maps shows it; "" if the share
// has none.
func (z *ZoneShare) kernelPolicy() string {
	mode, nodes := z.MemoryPolicy, z.policyMems()
	switch {
	case mode == "" || nodes.IsEmpty():
		return ""
	case mode == deviceclasses.MemoryPreferred && nodes.Size() == 1:
		mode = "prefer"
	case mode == deviceclasses.MemoryPreferred:
		mode = "prefer (many)"
	case mode == deviceclasses.MemoryWeightedInterleave:
		mode = "weighted interleave"
	}
	return mode + ":" + nodes.String()
}
