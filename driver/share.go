package driver

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/deviceattribute"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Share is what one allocation result of a claim holds.
//
// Invariant: no CPU and no PCI function is in two shares of a node.
type Share struct {
	Request string     `json:"request"` // "main" or "main/sub"
	Device  string     `json:"device"`
	ShareID types.UID  `json:"shareID,omitempty"`
	Zone    int        `json:"zone"`            // the first of its NUMA nodes
	Zones   []int      `json:"zones,omitempty"` // its NUMA nodes, ascending, if it has several
	CPUs    cpuset.Set `json:"cpus"`            // empty: memory only
	Why     string     `json:"why,omitempty"`   // these CPUs, in one line

	// IdleCPUs are those of CPUs that containers keep idle: they are siblings of
	// the others. IdleCPUs ⊂ CPUs.
	IdleCPUs cpuset.Set `json:"idleCPUs,omitzero"`

	Partition    string     `json:"partition,omitempty"`    // the kind that is wanted for the CPUs: root, isolated or none; "" in old data is root
	Scope        string     `json:"scope,omitempty"`        // who becomes it: "" is a container, else pod or shared
	Mixed        bool       `json:"mixed,omitempty"`        // containers run on the shared pool as well
	SharedCPUs   cpuset.Set `json:"sharedCPUs,omitzero"`    // if Mixed: that pool when the claim was prepared first
	MemoryPolicy string     `json:"memoryPolicy,omitempty"` // bind, preferred, interleave, weighted-interleave; "" is the kernel's own

	MemoryBytes   uint64            `json:"memoryBytes,omitempty"`   // without hugepages
	HugepageBytes map[string]uint64 `json:"hugepageBytes,omitempty"` // each > 0, by size as in "2Mi"

	Function Function `json:"function,omitzero"` // of a share that is one; it has no Zone, no CPUs and nothing of what belongs to those
}

// The scopes of a share: which cgroup has its CPUs to itself.
const (
	ScopeContainer = ""       // the container's: one at a time uses them
	ScopePod       = "pod"    // the pod's: all of its containers use them
	ScopeShared    = "shared" // none: some containers of a pod use them, or several pods, or one has other CPUs that are shared
)

// Mems is the NUMA nodes of the share's memory; none of a PCI function.
func (s Share) Mems() cpuset.Set {
	switch {
	case !s.Function.IsZero():
		return cpuset.Set{}
	case len(s.Zones) > 0:
		return cpuset.New(s.Zones...)
	}
	return cpuset.New(s.Zone)
}

// Pinned reports whether the hook pins the share's containers. Those of a PCI
// function get nothing but the function.
func (s Share) Pinned() bool { return s.Function.IsZero() }

// RunCPUs is where the share's containers are to run.
func (s Share) RunCPUs() cpuset.Set { return s.CPUs.Difference(s.IdleCPUs) }

// KernelExclusive reports whether a partition is made for the CPUs, where the
// node's kernel has those.
func (s Share) KernelExclusive() bool {
	return s.Partition != deviceclasses.PartitionNone && s.Scope != ScopeShared && !s.Mixed && !s.CPUs.IsEmpty()
}

// Attributes are what a container may read of the share, beside what is
// published of its zone. Lists are the kernel's, such as 0-3,8; one that is
// longer than an attribute may be is left out, as is what a share of memory only
// does not have. The environment has all lists, see package cdi.
func (s Share) Attributes() map[string]resourceapi.DeviceAttribute {
	if !s.Function.IsZero() {
		return s.Function.attributes()
	}
	attributes := make(map[string]resourceapi.DeviceAttribute, 20) // with those of the zone
	if len(s.Zones) == 0 {
		attributes[string(deviceattribute.StandardDeviceAttributeNUMANode)] = intAttribute(s.Zone)
	}
	add := func(name, value string) {
		if value != "" && len(value) <= resourceapi.DeviceAttributeMaxValueLength {
			attributes[name] = stringAttribute(value)
		}
	}
	add(Name+"/mems", s.Mems().String())
	add(Name+"/memoryPolicy", s.MemoryPolicy)
	if !s.CPUs.IsEmpty() {
		add(Name+"/cpus", s.RunCPUs().String())
		add(Name+"/idleCPUs", s.IdleCPUs.String())
		add(Name+"/sharedCPUs", s.SharedCPUs.String())
		add(Name+"/partition", s.cdiPartition())
		add(Name+"/scope", cmp.Or(s.Scope, cdi.ScopeContainer))
		attributes[Name+"/mixed"] = resourceapi.DeviceAttribute{BoolValue: ptr.To(s.Mixed)}
	}
	return attributes
}

// completed has what the allocation says beside CPUs, which version 1 of the
// checkpoint did not record. How they are used stays as it is on record:
// containers may run that way.
func (s Share) completed(wish wish) Share {
	s.MemoryBytes, s.HugepageBytes = wish.memoryBytes, wish.hugepageBytes
	if s.Partition == "" && !s.CPUs.IsEmpty() {
		return s.configured(wish.config)
	}
	return s
}

// configured is used as the claim and its class want it.
func (s Share) configured(config deviceclasses.ZoneConfig) Share {
	s.MemoryPolicy = config.MemoryPolicy
	if !s.CPUs.IsEmpty() {
		s.Partition, s.Mixed = cmp.Or(config.Partition, deviceclasses.PartitionRoot), config.Mixed
	}
	return s
}

// cdiPartition is what the hook is told.
func (s *Share) cdiPartition() string {
	if !s.KernelExclusive() {
		return cdi.PartitionNone
	}
	return cmp.Or(s.Partition, cdi.PartitionRoot)
}

func (s *Share) cdiShare() cdi.Share {
	if f := s.Function; !f.IsZero() {
		return cdi.Share{Request: s.Request, Device: s.Device, PCI: f.Address, Nodes: f.Nodes, Interfaces: f.Interfaces}
	}
	share := cdi.Share{
		Request: s.Request, Device: s.Device, CPUs: s.CPUs, IdleCPUs: s.IdleCPUs, Mems: s.Mems(),
		Partition: s.cdiPartition(), Scope: cdi.ScopeContainer, Mixed: s.Mixed, SharedCPUs: s.SharedCPUs,
	}
	if s.Scope == ScopePod {
		share.Scope = cdi.ScopePod
	}
	return share
}

// validate looks at what only a few values are allowed for.
func (s *Share) validate() error {
	if !s.Function.IsZero() {
		alone := Share{Request: s.Request, Device: s.Device, ShareID: s.ShareID, Function: s.Function}
		if !s.Equal(alone) {
			return fmt.Errorf("function: %s has CPUs or memory", s.Function.Address)
		}
		return s.Function.validate()
	}
	config := deviceclasses.ZoneConfig{Partition: s.Partition, MemoryPolicy: s.MemoryPolicy}
	if err := config.Validate(); err != nil {
		return err
	}
	if allowed := []string{ScopePod, ScopeShared}; s.Scope != ScopeContainer && !slices.Contains(allowed, s.Scope) {
		return fmt.Errorf("scope: %q, allowed are %s", s.Scope, strings.Join(allowed, ", "))
	}
	if err := s.validateZones(); err != nil {
		return err
	}
	if !s.IdleCPUs.IsEmpty() && (!s.IdleCPUs.IsSubsetOf(s.CPUs) || s.IdleCPUs == s.CPUs) {
		return fmt.Errorf("idleCPUs: %s, allowed are some of cpus %s", s.IdleCPUs, s.CPUs)
	}
	return nil
}

func (s *Share) validateZones() error {
	zones := s.Zones
	if zones == nil {
		zones = []int{s.Zone}
	}
	last := -1
	for _, zone := range zones {
		if zone <= last || zone >= cpuset.MaxCPUs {
			return fmt.Errorf("zones: %d, allowed are ids in ascending order, of 0 to %d", zones, cpuset.MaxCPUs-1)
		}
		last = zone
	}
	if len(s.Zones) == 1 || zones[0] != s.Zone {
		return fmt.Errorf("zones: %d, allowed are several, of which zone %d is the first", zones, s.Zone)
	}
	return nil
}

// Equal compares every field.
func (s Share) Equal(other Share) bool {
	return s.Request == other.Request && s.Device == other.Device && s.ShareID == other.ShareID && s.Zone == other.Zone && slices.Equal(s.Zones, other.Zones) &&
		s.CPUs == other.CPUs && s.IdleCPUs == other.IdleCPUs && s.Why == other.Why && s.Partition == other.Partition && s.Scope == other.Scope &&
		s.Mixed == other.Mixed && s.SharedCPUs == other.SharedCPUs && s.MemoryPolicy == other.MemoryPolicy &&
		s.MemoryBytes == other.MemoryBytes && maps.Equal(s.HugepageBytes, other.HugepageBytes) && s.Function.equal(other.Function)
}
