package deviceclasses

import (
	"encoding/json"
	"fmt"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// ZoneStatus is what the driver writes to status.devices[].data of a claim for a share
// of a zone. CPUs and NUMA nodes are in the kernel's list form.
type ZoneStatus struct {
	CPUs       cpuset.Set `json:"cpus"`                // empty for a share of memory only
	Mems       cpuset.Set `json:"mems"`                // NUMA nodes that the containers' memory must come from; empty for any
	IdleCPUs   cpuset.Set `json:"idleCPUs,omitzero"`   // the CPUs of the claim that its containers do not run on
	Partition  string     `json:"partition,omitempty"` // root, isolated or none; "" without CPUs
	Scope      string     `json:"scope,omitempty"`     // ScopeContainer, ScopePod or ScopeShared; "" without CPUs
	Mixed      bool       `json:"mixed,omitempty"`     // containers run on the shared pool as well
	SharedCPUs cpuset.Set `json:"sharedCPUs,omitzero"` // if Mixed: the shared pool when the claim was prepared
	Why        string     `json:"why,omitempty"`       // why these CPUs were chosen

	Performance *PerformanceStatus `json:"performance,omitempty"` // of the CPUs; nil if they are left as they are
}

// PerformanceStatus is what a claim asks of its CPUs, and what the kernel has made of it.
type PerformanceStatus struct {
	Asked       PerformanceSettings `json:"asked"`
	Frequencies []FrequencyStatus   `json:"frequencies,omitempty"`
	Uncore      []UncoreStatus      `json:"uncore,omitempty"`     // dies of the CPUs, if the claim asks for a frequency of theirs
	Interrupts  []StayingInterrupt  `json:"interrupts,omitempty"` // those that the kernel does not move as the claim asks
}

// FrequencyStatus is what some frequency policies have. A policy is named after one of its
// CPUs. Fields that the claim does not change are empty.
type FrequencyStatus struct {
	Policies         cpuset.Set `json:"policies"`
	Driver           string     `json:"driver"`
	Governor         string     `json:"governor,omitempty"`
	EnergyPreference string     `json:"energyPreference,omitempty"`
	MinFrequency     string     `json:"minFrequency,omitempty"` // such as 2.4GHz
	MaxFrequency     string     `json:"maxFrequency,omitempty"`
}

// UncoreStatus is what the uncore of a die has.
type UncoreStatus struct {
	Package      int    `json:"package"`
	Die          int    `json:"die"`                    // in its package
	MinFrequency string `json:"minFrequency,omitempty"` // when the claim was prepared, such as 2GHz. Another claim may have asked for more
}

// StayingInterrupt is an interrupt that the kernel does not move.
type StayingInterrupt struct {
	Number int    `json:"number"`
	Name   string `json:"name"` // of its handler, such as nvme0q1
	Why    string `json:"why"`
}

// FunctionStatus is the same for a PCI function. Other fields of status.devices[] have
// the conditions and, for a network card, its first interface.
type FunctionStatus struct {
	PCI        string   `json:"pci"`                  // PCI address
	Nodes      []string `json:"nodes,omitempty"`      // paths of the device nodes that containers get
	CDIDevice  string   `json:"cdiDevice,omitempty"`  // CDI device of another driver's spec, which containers get instead of the nodes
	Interfaces []string `json:"interfaces,omitempty"` // network interfaces, by their names on the host
	Driver     string   `json:"driver,omitempty"`     // kernel driver that is bound for the claim
}

// CacheStatus is the same for ways of a level-3 cache.
type CacheStatus struct {
	Pool             string `json:"pool"`                       // guaranteed, besteffort or shared
	L3               int    `json:"l3"`                         // id of the cache
	Group            string `json:"group"`                      // of resctrl, such as dra-numa.2: its file schemata has the ways
	Request          string `json:"request"`                    // of the claim, for the zone whose CPUs have the ways
	Ways             int    `json:"ways,omitempty"`             // that the claim always has; 0 in the pool shared
	MaxWays          int    `json:"maxWays,omitempty"`          // up to which it grows, in the pool besteffort
	BandwidthPercent int    `json:"bandwidthPercent,omitempty"` // limit of each core; 0 for none
	BandwidthMBps    int    `json:"bandwidthMBps,omitempty"`    // limit of the claim; 0 for none

	Asked CacheAmounts `json:"asked,omitzero"` // amounts that the request named, and that were rounded to those above
}

// CacheAmounts are amounts of a level-3 cache. 0 stands for an amount that is not named.
type CacheAmounts struct {
	Ways             int `json:"ways,omitempty"`
	BandwidthPercent int `json:"bandwidthPercent,omitempty"`
	BandwidthMBps    int `json:"bandwidthMBps,omitempty"`
}

// ShareStatus is the status document of a share as it is read. Exactly one field is set.
type ShareStatus struct {
	Zone     *ZoneStatus
	Function *FunctionStatus
	Cache    *CacheStatus
}

// ReadShareStatus reads the status document of a share. It ignores fields that this
// release does not know. It returns an error if the text is the status of none of the
// three.
func ReadShareStatus(text []byte) (ShareStatus, error) {
	var keys struct {
		PCI  *string `json:"pci"`
		Pool *string `json:"pool"`
		CPUs *string `json:"cpus"`
	}
	if err := json.Unmarshal(text, &keys); err != nil {
		return ShareStatus{}, fmt.Errorf("read the status of a share: %w", err)
	}
	var status ShareStatus
	switch {
	case keys.PCI != nil:
		status.Function = &FunctionStatus{}
		return status, json.Unmarshal(text, status.Function)
	case keys.Pool != nil:
		status.Cache = &CacheStatus{}
		return status, json.Unmarshal(text, status.Cache)
	case keys.CPUs != nil:
		status.Zone = &ZoneStatus{}
		return status, json.Unmarshal(text, status.Zone)
	}
	return ShareStatus{}, fmt.Errorf("read the status of a share: it has none of cpus, pci and pool")
}
