// Package nodestate defines the document in which one node says what it has of claims:
// what the checkpoint, the CDI specs and the cgroups say, each on its own, and where the
// CPUs are. dra-numa state prints the document, and other programs compare its parts. The
// package reads no files and judges nothing.
package nodestate

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

const (
	// Format is the name of the document's format.
	Format = driver.Name + "/state"
	// Version is the version of the format. From v0.1.0 on, only a release raises it. Until
	// then it stays 1, and fields may be added.
	Version = 1
)

// State is the document. Empty lists are [], not null.
type State struct {
	Format     string        `json:"format"`
	Version    int           `json:"version"`
	Node       string        `json:"node"`    // empty if it is not known
	BootID     string        `json:"bootID"`  // of the boot in which the document was read
	Settled    bool          `json:"settled"` // two reads in a row were equal: nothing changed between the parts
	Checkpoint Checkpoint    `json:"checkpoint"`
	Specs      []cdi.Written `json:"specs"`            // by file name
	Partitions []Partition   `json:"partitions"`       // those with CPUs, also of other programs; parents before their children
	Pins       []Pin         `json:"pins"`             // cgroups that have a process and a record of the hook
	Layout     *Layout       `json:"layout,omitempty"` // missing if the machine cannot be read
	Problems   []Problem     `json:"problems"`         // parts that could not be read completely
	Host       *Host         `json:"host,omitempty"`
	Resctrl    *Resctrl      `json:"resctrl,omitempty"`
	Tasks      []TaskGroup   `json:"tasks,omitempty"` // by cgroup, then group; only while a claim has ways, and if the host's processes can be seen

	IgnoredPolicies []IgnoredPolicy `json:"ignoredPolicies,omitempty"` // a part of the pins
}

// Host is what else matters to claims on the node. It is only set on request.
type Host struct {
	// NRI reports whether the container runtime offers NRI where the daemon looks for it. It
	// is nil if the daemon does not use NRI, or if the socket's folder cannot be seen.
	NRI *bool `json:"nri"`
	// Irqbalance is the cgroup of the service irqbalance if it runs, else "". The program
	// moves interrupts to other CPUs.
	Irqbalance string `json:"irqbalance"`
	// Services are the services of systemd that run, and that change frequencies, idle
	// states or interrupts of CPUs.
	Services []string `json:"services,omitempty"`
	// NoCaches is why the node publishes no caches although its NodeConfig divides them; ""
	// if it does.
	NoCaches string `json:"noCaches,omitempty"`
	// Paused is why the daemon writes no ResourceSlices; "" if it may.
	Paused string `json:"paused,omitempty"`
	// Profiles are what the labels of the node choose; nil without profiles in its NodeConfig.
	Profiles *Profiles `json:"profiles,omitempty"`
}

// Profiles says how the profiles of a NodeConfig differ from what an operator may expect.
type Profiles struct {
	// Stale are the fields of the NodeConfig that the node's labels choose differently now
	// than when its daemon started.
	Stale []string `json:"stale,omitempty"`
	// Overlapping are the fields that several profiles of the node set, with these profiles.
	// The last one wins.
	Overlapping []string `json:"overlapping,omitempty"`
}

// ServiceIrqbalance is the name of irqbalance in Host.Services.
const ServiceIrqbalance = "irqbalance"

// Checkpoint is the content of the node's checkpoint.
type Checkpoint struct {
	Version int            `json:"version"` // of the file; 0 if there is no file, or it cannot be trusted
	BootID  string         `json:"bootID"`  // of the boot in which it was written
	Grants  []ledger.Grant `json:"grants"`  // ascending by UID
}

// Partition is a cpuset partition: the CPUs that a cgroup keeps from all other tasks of
// the node.
type Partition struct {
	Cgroup string     `json:"cgroup"` // path below the mount point
	CPUs   cpuset.Set `json:"cpus"`
	State  string     `json:"state"` // as cpuset.cpus.partition reads: root, isolated, or one of them with " invalid (reason)"
}

// Pin is what claims give to one cgroup.
type Pin struct {
	Cgroup     string     `json:"cgroup"` // path below the mount point
	Claims     []Claim    `json:"claims"` // ascending by UID
	CPUs       cpuset.Set `json:"cpus"`   // that it should have; empty means that they stay as they are
	Mems       cpuset.Set `json:"mems"`
	Partition  string     `json:"partition"`       // the kind that it should be: none, root or isolated
	Downgraded bool       `json:"downgraded"`      // its claim has another user elsewhere, so it has no partition until that user is gone
	Fault      string     `json:"fault,omitempty"` // why the kernel does not honour it
}

// IgnoredPolicy is a container that runs without the memory policy of a claim. The policies
// are as /proc/<pid>/numa_maps shows them.
type IgnoredPolicy struct {
	Cgroup string `json:"cgroup"` // of the container
	Claim  Claim  `json:"claim"`
	Want   string `json:"want"` // that the claim asks for
	Seen   string `json:"seen"` // that its first process had
}

// Claim names a claim.
type Claim struct {
	UID  string `json:"uid"`
	Name string `json:"name"` // namespace/name
}

// Part names a part of the document.
type Part string

// The parts. Each is read on its own.
const (
	CheckpointPart Part = "checkpoint"
	SpecsPart      Part = "CDI specs"
	PartitionsPart Part = "partitions"
	PinsPart       Part = "pins"
	LayoutPart     Part = "layout"
	ResctrlPart    Part = "resctrl"
)

// Problem says why a part is not complete.
type Problem struct {
	Part Part   `json:"part"`
	Why  string `json:"why"`
}

// Decode reads a document of this build. A document with another format or version, or with
// a field that this build does not know, is an error.
func Decode(text []byte) (*State, error) {
	var header struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(text, &header); err != nil {
		return nil, fmt.Errorf("read the state of a node: %w", err)
	}
	if header.Format != Format || header.Version != Version {
		return nil, otherBuild(fmt.Errorf("format %q, version %d, this build reads format %q, version %d", header.Format, header.Version, Format, Version))
	}
	state := &State{}
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(state); err != nil {
		return nil, otherBuild(err)
	}
	return state, nil
}

func otherBuild(err error) error {
	return fmt.Errorf("read the state of a node: %w: %w; use the kubectl-numa of the driver's build", ledger.ErrOtherBuild, err)
}

// Unread returns why a part could not be read completely, in one line. It is empty if
// the whole part was read.
func (s *State) Unread(part Part) string {
	for _, problem := range s.Problems {
		if problem.Part == part {
			return problem.Why
		}
	}
	return ""
}
