// Package funnel says why a node's devices do not do for the requests of claims:
// how many are left after driver, class, selector, taint, in use, capacity and
// constraint, the first of these that blocks, a sentence about it, and a hint. It
// mirrors what the allocator looks at, and decides nothing: whether a claim can
// be allocated, only the allocator says.
package funnel

import (
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
)

// Stage is a step at which devices drop out, in the order in which they do.
type Stage string

// Stages. This package says which of StageDriver to StageConstraint blocks;
// StageNode is about the node as a whole, StageTogether about requests that could
// each be met alone, StageAbort about a scheduler that gives up.
const (
	StageNode       Stage = "node"
	StageDriver     Stage = "driver"
	StageClass      Stage = "class"
	StageSelector   Stage = "selector"
	StageTaint      Stage = "taint"
	StageInUse      Stage = "inUse"
	StageCapacity   Stage = "capacity"
	StageConstraint Stage = "constraint"
	StageTogether   Stage = "together"
	StageAbort      Stage = "abort"
)

func (s Stage) order() int {
	return slices.Index([]Stage{
		StageNode, StageDriver, StageClass, StageSelector, StageTaint, StageInUse, StageCapacity, StageConstraint, StageTogether, StageAbort,
	}, s)
}

// Request counts the devices that are left for a request, or for one
// alternative of it, after each stage.
type Request struct {
	Claim   string `json:"claim"`   // its name in the pod
	Request string `json:"request"` // request, or request/subrequest
	Wanted  int    `json:"wanted"`  // devices
	Devices int    `json:"devices"` // that the node can see
	Left    Left   `json:"left"`
	Blocks  Stage  `json:"blocks,omitempty"`
	// Sentence is about Blocks.
	Sentence string `json:"sentence,omitempty"`
	// Hint is one thing to do about it, or "".
	Hint string `json:"-"`
}

// Left is how many devices passed each stage and those before it.
type Left struct {
	Driver     int `json:"driver"`
	Class      int `json:"class"`
	Selector   int `json:"selector"`
	Taint      int `json:"taint"`
	InUse      int `json:"inUse"`
	Capacity   int `json:"capacity"`
	Constraint int `json:"constraint"`
}

// FirstBlocked is the first request that cannot be met; of one with alternatives
// all have to be blocked, and the one that gets furthest says why.
func FirstBlocked(list []Request) *Request {
	type name struct{ claim, request string }
	furthest := make(map[name]*Request)
	open := make(map[name]bool)
	var order []name
	for i := range list {
		r := &list[i]
		id := name{r.Claim, requests.Base(r.Request)}
		if furthest[id] == nil {
			order = append(order, id)
			furthest[id] = r
		}
		open[id] = open[id] || r.Blocks == ""
		if r.Blocks.order() > furthest[id].Blocks.order() {
			furthest[id] = r
		}
	}
	for _, id := range order {
		if !open[id] {
			return furthest[id]
		}
	}
	return nil
}
