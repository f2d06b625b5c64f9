package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Share is what one allocation result of a claim holds: part of a zone, a PCI function, or
// part of a level-3 cache. Its zero value holds nothing.
//
// Invariant: no CPU, PCI function or class of a cache is in two shares of a node.
type Share struct {
	Request string // "main" or "main/sub"
	Device  string
	ShareID types.UID
	Kind    Kind // what it holds; nil only in the zero value
}

// Kind is what a share holds. Each kind of device has its own type: [*ZoneShare],
// [*FunctionShare] and [*CacheShare]. Everything that differs between kinds is behind
// this interface, and what changes the host for a kind is an effect of package driver. To
// add a kind, write a type that implements Kind in a new file. Then add its field to
// recordedShare, and a case to recordedShare.kind and to planner.wish. The Kind of a
// recorded share is never changed: methods that change something return a new value.
type Kind interface {
	data
	claimed
	face
}

// data is what the record needs.
type data interface {
	// Equal compares every field.
	Equal(other Kind) bool
	// validate returns an error if a field has a value that is not allowed.
	validate() error
	// record sets its object in the JSON of a share. appendText appends the same text,
	// faster.
	record(share *recordedShare)
	appendText(text []byte) []byte
}

// claimed is what decides whether claims can hold it, and go on holding it.
type claimed interface {
	// hold adds what the share has, except CPUs, to what is held. The result says what
	// was held already, in the same form as conflict.
	hold(held *held) (twice string)
	// conflict says what both this share and another have; "" for nothing. It does not
	// compare CPUs.
	conflict(other Kind) string
	// honoured reports whether the machine still has what the share holds.
	honoured(machine *numa.Machine, reserved cpuset.Set) bool
	// fault says what is wrong on the machine with what the share holds; "" for nothing.
	fault(machine *numa.Machine) string
	// stray reports whether the scheduler does not count the share in the device that
	// is published under the share's device name.
	stray(device string, machine *numa.Machine, published []zones.Zone) bool
	// withheld returns what a stray share takes from zones, and the devices that are
	// published only for it.
	withheld(device string) ([]zones.Held, []resourceapi.Device)
}

// face is what containers and readers of the claim's status see.
type face interface {
	// spec returns the share's part of a CDI spec. It asks the hook for partitions only if
	// the node makes them.
	spec(partitions bool) cdi.ShareKind
	// cdiDevices returns the names of the CDI devices that a container needs for the
	// share. The first is own.
	cdiDevices(own string) []string
	// attributes returns what a container may read about the share, besides the
	// published attributes of the device.
	attributes() map[string]resourceapi.DeviceAttribute
	// status returns the document in the claim's status.
	status() any
	// interfaces returns network interfaces, by their names on the host.
	interfaces() []string
}

// CPUs are the CPUs that only this claim has. Pods that use the same claim share them.
func (s Share) CPUs() (cpus cpuset.Set) {
	if zone := s.Zone(); zone != nil {
		return zone.CPUs
	}
	return cpus
}

// Mems is the NUMA nodes that the share is a part of; empty unless it is of a zone.
func (s Share) Mems() (nodes cpuset.Set) {
	if zone := s.Zone(); zone != nil {
		return zone.Mems()
	}
	return nodes
}

// Binds is the NUMA nodes that the memory of the share's containers must come from. It is
// empty if the scheduler counted no memory for the share, or if its memory policy leaves
// the other nodes open.
func (s Share) Binds() (nodes cpuset.Set) {
	if zone := s.Zone(); zone != nil {
		return zone.Binds()
	}
	return nodes
}

// KernelExclusive reports whether the CPUs get a partition on a node whose kernel has
// partitions.
func (s Share) KernelExclusive() bool { return s.Zone() != nil && s.Zone().KernelExclusive() }

// Scope says which cgroup has the CPUs to itself: one of ScopeContainer, ScopePod and
// ScopeShared.
func (s Share) Scope() string {
	if zone := s.Zone(); zone != nil {
		return zone.Scope
	}
	return ScopeContainer
}

// WithScope returns the same share with another scope. Only a share of a zone has one.
func (s Share) WithScope(scope string) Share {
	if zone := s.Zone(); zone != nil && zone.Scope != scope {
		next := *zone
		next.Scope = scope
		s.Kind = &next
	}
	return s
}

// Pinned reports whether the hook pins the share's containers. It does not pin them for
// a PCI function, nor if the share gives them neither CPUs of their own nor NUMA nodes.
func (s Share) Pinned() bool { return s.Zone() != nil && s.Zone().pinned() }

// Honoured reports whether the machine still has what the share holds, outside of the reserved
// CPUs.
func (s Share) Honoured(machine *numa.Machine, reserved cpuset.Set) bool {
	return s.Kind.honoured(machine, reserved)
}

// Stray reports whether the scheduler does not count the share in the device that is published
// under its device name. Published are the zones.
func (s Share) Stray(machine *numa.Machine, published []zones.Zone) bool {
	return s.Kind.stray(s.Device, machine, published)
}

// Withheld returns what a stray share takes from zones, and the devices that are published only
// for it.
func (s Share) Withheld() ([]zones.Held, []resourceapi.Device) { return s.Kind.withheld(s.Device) }

// CDIDevices returns the names of the CDI devices that a container needs for the share. The
// first is own.
func (s Share) CDIDevices(own string) []string { return s.Kind.cdiDevices(own) }

// Fault says what is wrong on the machine with what the share holds; "" if no fault is
// known.
func (s Share) Fault(machine *numa.Machine) string { return s.Kind.fault(machine) }

// Status is what the claim's status says about the share: a [deviceclasses.ZoneStatus], a
// [deviceclasses.FunctionStatus] or a [deviceclasses.CacheStatus].
func (s Share) Status() any { return s.Kind.status() }

// Interfaces are the network interfaces of the share, by their names on the host.
func (s Share) Interfaces() []string { return s.Kind.interfaces() }

// Attributes are what a container may read about the share, besides the published
// attributes of its device. Lists are in the kernel's form, such as 0-3,8. A list that is
// too long for an attribute is left out. The environment has all lists; see package cdi.
func (s Share) Attributes() map[string]resourceapi.DeviceAttribute { return s.Kind.attributes() }

// Zone is what the share holds of a zone; nil if the share is of another kind.
func (s Share) Zone() *ZoneShare {
	zone, _ := s.Kind.(*ZoneShare)
	return zone
}

// Function is the PCI function that the share holds; nil if the share is of another kind.
func (s Share) Function() *FunctionShare {
	function, _ := s.Kind.(*FunctionShare)
	return function
}

// Equal compares every field.
func (s Share) Equal(other Share) bool {
	if s.Kind == nil || other.Kind == nil {
		return s == other
	}
	return s.Request == other.Request && s.Device == other.Device && s.ShareID == other.ShareID && s.Kind.Equal(other.Kind)
}

// Spec returns the share for the CDI spec, on a node that makes partitions or does not.
func (s Share) Spec(partitions bool) cdi.Share {
	return cdi.Share{Request: s.Request, Device: s.Device, Kind: s.Kind.spec(partitions)}
}

// recordedShare is the JSON form of a share: exactly one of zone, function and cache is
// there. Only the share of a zone with CPUs can have performance.
type recordedShare struct {
	Request string    `json:"request"`
	Device  string    `json:"device"`
	ShareID types.UID `json:"shareID,omitempty"`

	Zone        *ZoneShare     `json:"zone,omitempty"`
	Performance *Performance   `json:"performance,omitempty"`
	Function    *FunctionShare `json:"function,omitempty"`
	Cache       *CacheShare    `json:"cache,omitempty"`
}

// kind returns the Kind that is recorded.
func (r *recordedShare) kind() (kind Kind, err error) {
	kinds := 0
	if r.Zone != nil {
		r.Zone.Performance = r.Performance
		kind = r.Zone
		kinds++
	}
	if r.Function != nil {
		kind = r.Function
		kinds++
	}
	if r.Cache != nil {
		kind = r.Cache
		kinds++
	}
	switch {
	case kinds != 1:
		return nil, fmt.Errorf("the share of device %s has %d of zone, function and cache, want one", r.Device, kinds)
	case r.Performance != nil && r.Zone == nil:
		return nil, fmt.Errorf("performance: the share of device %s has no zone", r.Device)
	}
	return kind, nil
}

// MarshalJSON returns the share in the form of the checkpoint.
func (s Share) MarshalJSON() ([]byte, error) {
	recorded := recordedShare{Request: s.Request, Device: s.Device, ShareID: s.ShareID}
	if s.Kind != nil {
		s.Kind.record(&recorded)
	}
	return json.Marshal(recorded)
}

// UnmarshalJSON reads what MarshalJSON wrote. A field that it does not know is an error.
func (s *Share) UnmarshalJSON(text []byte) error {
	var recorded recordedShare
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&recorded); err != nil {
		return err
	}
	kind, err := recorded.kind()
	*s = Share{Request: recorded.Request, Device: recorded.Device, ShareID: recorded.ShareID, Kind: kind}
	return err
}

// appendText appends what MarshalJSON returns, in a tenth of the time.
func (s *Share) appendText(text []byte) []byte {
	text = appendString(append(text, `{"request":`...), s.Request)
	text = appendString(append(text, `,"device":`...), s.Device)
	if s.ShareID != "" {
		text = appendString(append(text, `,"shareID":`...), string(s.ShareID))
	}
	if s.Kind != nil {
		text = s.Kind.appendText(text)
	}
	return append(text, '}')
}

// appendField appends a field of an object that has one already. The value always encodes.
func appendField(text []byte, field string, value any) []byte {
	encoded, _ := json.Marshal(value)
	text = append(append(append(text, `,"`...), field...), `":`...)
	return append(text, encoded...)
}
