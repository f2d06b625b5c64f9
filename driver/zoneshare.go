package driver

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
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

func (z *ZoneShare) cpus() *cpuset.Set { return &z.CPUs }

func (z *ZoneShare) mems() cpuset.Set { return cpuset.New(z.NUMANodes...) }

// binds is empty if the scheduler counted no memory of the share: other containers could
// have used up that of its NUMA nodes. Without a binding, the kernel prefers the node of
// the CPU.
func (z *ZoneShare) binds() cpuset.Set {
	counted := z.MemoryBytes > 0 || len(z.HugepageBytes) > 0
	if !counted || z.MemoryPolicy == deviceclasses.MemoryPreferred {
		return cpuset.Set{}
	}
	return z.mems()
}

func (z *ZoneShare) kernelExclusive() bool {
	return z.Partition != deviceclasses.PartitionNone && z.Scope != ScopeShared && !z.Mixed && !z.CPUs.IsEmpty()
}

func (z *ZoneShare) pinned() bool {
	return !z.binds().IsEmpty() || !z.CPUs.IsEmpty() && !z.Mixed
}

func (z *ZoneShare) equal(other Kind) bool {
	o, same := other.(*ZoneShare)
	return same && slices.Equal(z.NUMANodes, o.NUMANodes) && z.CPUs == o.CPUs && z.Why == o.Why && z.IdleCPUs == o.IdleCPUs &&
		z.Partition == o.Partition && z.Scope == o.Scope && z.Mixed == o.Mixed && z.SharedCPUs == o.SharedCPUs &&
		z.MemoryPolicy == o.MemoryPolicy && z.MemoryBytes == o.MemoryBytes && maps.Equal(z.HugepageBytes, o.HugepageBytes) &&
		z.Performance.equal(o.Performance)
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
	for id := range z.mems().All() {
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
	return []zones.Held{{Device: device, CPUs: z.CPUs, Mems: z.mems(), MemoryBytes: z.MemoryBytes, HugepageBytes: z.HugepageBytes}}, nil
}

// refreshed plans again what the CPUs should have after a boot, because what they had in
// another boot is forgotten.
func (z *ZoneShare) refreshed(d *Driver, _ types.UID, wish wish) (Kind, error) {
	if z.Performance == nil || z.Performance.Applied || !z.Performance.Changes.IsZero() || len(z.Performance.Uncore) > 0 {
		return z, nil
	}
	next := *z
	var err error
	if next.Performance, err = d.planPerformance(z.CPUs, z.Performance.Asked); err != nil {
		return nil, fmt.Errorf("request %s: %w", wish.request, err)
	}
	return &next, nil
}

func (z *ZoneShare) scoped() scoped {
	return scoped{cpus: !z.CPUs.IsEmpty(), mixed: z.Mixed, scope: z.Scope}
}

func (z *ZoneShare) withScope(scope string) Kind {
	if z.Scope == scope {
		return z
	}
	next := *z
	next.Scope = scope
	return &next
}

// What all shares of a claim have of interrupts and of the uncore is one state: see
// Driver.tuneSteps.
func (z *ZoneShare) apply(*Driver, string) []step { return nil }

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
	if !z.kernelExclusive() {
		return deviceclasses.PartitionNone
	}
	return z.Partition
}

func (z *ZoneShare) spec(by Exclusivity) cdi.ShareKind {
	spec := &cdi.Zone{
		CPUs: z.CPUs, IdleCPUs: z.IdleCPUs, Mems: z.binds(), Mixed: z.Mixed, SharedCPUs: z.SharedCPUs, MemoryPolicy: z.kernelPolicy(),
		Partition: deviceclasses.PartitionNone, Scope: deviceclasses.ScopeContainer,
	}
	if by != ExclusivityKernel {
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
	status := deviceclasses.ZoneStatus{CPUs: z.CPUs, Mems: z.binds(), IdleCPUs: z.IdleCPUs, Mixed: z.Mixed, Why: z.Why, Performance: z.Performance.status()}
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

// errBindsNothing says that a claim binds memory that the scheduler does not count.
var errBindsNothing = errors.New("memoryPolicy bind: no request of the claim has memory or hugepages to bind; request memory")

// bindsNothing reports whether a share of the grant has the policy bind, and none has
// memory. One request may have the CPUs of a level-3 cache, and another the memory.
func (g Grant) bindsNothing() bool {
	asks := func(s Share) bool { return s.Zone() != nil && s.Zone().MemoryPolicy == deviceclasses.MemoryBind }
	binds := func(s Share) bool { return !s.Binds().IsEmpty() }
	return slices.ContainsFunc(g.Shares, asks) && !slices.ContainsFunc(g.Shares, binds)
}

// zoneWish is the part of a zone that was allocated to a claim.
type zoneWish struct {
	zone          zones.Zone
	cpus          int // 0 <= cpus <= cpuset.MaxCPUs
	memoryBytes   uint64
	hugepageBytes map[string]uint64 // each > 0, by size as in "2Mi"; nil if there are none
	config        deviceclasses.ZoneConfig
	performance   deviceclasses.PerformanceSettings
	tuned         deviceclasses.PerformanceSettings // that are on record for the claim
}

func (w zoneWish) configured(d *Driver, ofClass, config deviceclasses.RequestConfig) (wanted, error) {
	w.config, w.performance = config.Zone, config.Performance.PerformanceSettings
	return w, d.mayTune(ofClass.Performance.PerformanceSettings, w.performance, w.tuned)
}

func (w zoneWish) fulfilledBy(kind Kind) bool {
	share, same := kind.(*ZoneShare)
	return same && share.NUMANodes[0] == w.zone.Nodes[0] && share.CPUs.Size() == w.cpus &&
		share.MemoryBytes == w.memoryBytes && maps.Equal(share.HugepageBytes, w.hugepageBytes)
}

// use sets how the share is used, from the configuration of the claim and its class. The
// kernel puts isolated CPUs only into isolated partitions.
func (w zoneWish) use(share *ZoneShare) {
	share.MemoryPolicy = w.config.MemoryPolicy
	if share.CPUs.IsEmpty() {
		return
	}
	share.Partition, share.Mixed = cmp.Or(w.config.Partition, deviceclasses.PartitionRoot), w.config.Mixed
	if w.zone.Isolated && share.Partition == deviceclasses.PartitionRoot {
		share.Partition = deviceclasses.PartitionIsolated
	}
}

// noteSharedPool notes in the mixed shares of a new grant what the shared pool is once
// the grant exists.
func (d *Driver) noteSharedPool(grant Grant) {
	var pool cpuset.Set
	for i := range grant.Shares {
		if zone := grant.Shares[i].Zone(); zone != nil && zone.Mixed {
			if pool.IsEmpty() {
				pool = untaken(d.machine.Online, d.grants.with(grant))
			}
			zone.SharedCPUs = pool
		}
	}
}

// plan chooses the CPUs of the share from the free ones.
func (w zoneWish) plan(d *Driver, _ types.UID, _ wish, free cpuset.Set) (Kind, error) {
	share := ZoneShare{NUMANodes: w.zone.Nodes, MemoryBytes: w.memoryBytes, HugepageBytes: w.hugepageBytes}
	if err := d.choose(&share, w, free); err != nil {
		return nil, err
	}
	w.use(&share)
	if share.CPUs.IsEmpty() || w.performance.IsZero() {
		return &share, nil
	}
	var err error
	share.Performance, err = d.planPerformance(share.CPUs, w.performance)
	return &share, err
}
