// Package nodestate is the document in which one node says what it has of claims:
// what its checkpoint, its CDI specs and its cgroups say, each by itself. The
// daemon's program prints it, others compare it. The package reads no files and
// judges nothing.
package nodestate

import (
	"encoding/json"
	"fmt"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Version is that of the document.
const Version = 1

// State is the document. Lists are empty, not null, where there is nothing.
type State struct {
	Version    int           `json:"version"`
	Node       string        `json:"node"`    // empty if it was not told
	BootID     string        `json:"bootID"`  // of the boot in which it was read
	Settled    bool          `json:"settled"` // two looks found the same: nothing changed between its parts
	Checkpoint Checkpoint    `json:"checkpoint"`
	Specs      []cdi.Written `json:"specs"`      // by file name
	Partitions []Partition   `json:"partitions"` // that have CPUs, whoever made them; parents before their children
	Pins       []Pin         `json:"pins"`       // cgroups with a process, by the record that the hook made of them
	Problems   []Problem     `json:"problems"`   // parts of which not all could be read
}

// Checkpoint is what the node's checkpoint has.
type Checkpoint struct {
	Version int            `json:"version"` // of the file; 0: there is none, or it cannot be trusted
	BootID  string         `json:"bootID"`  // of the boot in which it was written
	Grants  []driver.Grant `json:"grants"`  // ascending by UID
}

// Partition is what a cgroup keeps from all other tasks of the node.
type Partition struct {
	Cgroup string     `json:"cgroup"` // below the mount
	CPUs   cpuset.Set `json:"cpus"`
	State  string     `json:"state"` // as cpuset.cpus.partition reads: root, isolated, or one of them with " invalid (reason)"
}

// Pin is what claims give one cgroup.
type Pin struct {
	Cgroup     string     `json:"cgroup"` // below the mount
	Claims     []Claim    `json:"claims"` // ascending by UID
	CPUs       cpuset.Set `json:"cpus"`   // that it should have; empty: they stay as they are
	Mems       cpuset.Set `json:"mems"`
	Partition  string     `json:"partition"`       // that it should be: none, root or isolated
	Downgraded bool       `json:"downgraded"`      // its claim has another user elsewhere: no partition until that is gone
	Fault      string     `json:"fault,omitempty"` // why the kernel does not honour it
}

// Claim names a claim.
type Claim struct {
	UID  string `json:"uid"`
	Name string `json:"name"` // namespace/name
}

// Part is a part of the document.
type Part string

// The parts that are read by themselves.
const (
	CheckpointPart Part = "checkpoint"
	SpecsPart      Part = "CDI specs"
	PartitionsPart Part = "partitions"
	PinsPart       Part = "pins"
)

// Problem is why a part is not all there.
type Problem struct {
	Part Part   `json:"part"`
	Why  string `json:"why"`
}

// Decode reads a document.
func Decode(text []byte) (*State, error) {
	state := &State{}
	if err := json.Unmarshal(text, state); err != nil {
		return nil, fmt.Errorf("read the state of a node: %w", err)
	}
	if state.Version != Version {
		return nil, fmt.Errorf("read the state of a node: version %d, want %d: take the kubectl-numa of the driver's version", state.Version, Version)
	}
	return state, nil
}

// Unread is why a part could not be read, in one line; empty if all of it was.
func (s *State) Unread(part Part) string {
	for _, problem := range s.Problems {
		if problem.Part == part {
			return problem.Why
		}
	}
	return ""
}
