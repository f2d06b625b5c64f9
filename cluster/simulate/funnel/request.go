// Package funnel explains why a node's devices are not enough for the requests of claims.
// It mirrors the checks of the allocator and decides nothing: only the allocator says
// whether a claim can be allocated. It has three passes:
//
//   - View.Ask counts the devices that are left after each stage (driver, class, selector,
//     taint, in use, capacity, constraint), and keeps as Facts what each device lacks.
//   - Facts.Judge finds the stage that blocks, and everything else that rules out selected
//     devices. Each Finding has a Cause: a type for each kind, with names and amounts.
//   - Say has the sentences. Each Cause has its own, those of package simulate included.
package funnel

import "slices"

// Stage is a check that rules out devices. The constants are in the order of the checks.
type Stage string

// Stages. This package uses StageDriver to StageConstraint. StageNode is for reasons
// other than devices. StageTogether is for requests that fit alone but not together.
// StageAbort means that the scheduler gives up. StageStart is for a pod that has its
// node and does not start there.
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
	StageStart      Stage = "start"
)

func (s Stage) order() int {
	return slices.Index([]Stage{
		StageNode, StageDriver, StageClass, StageSelector, StageTaint, StageInUse, StageCapacity, StageConstraint, StageTogether, StageAbort,
	}, s)
}

// Request counts the devices that are left for a request, or for one of its alternatives,
// after each stage.
type Request struct {
	Claim   string `json:"claim"`   // name in the pod
	Request string `json:"request"` // request, or request/subrequest
	Wanted  int    `json:"wanted"`  // number of devices
	Devices int    `json:"devices"` // number of devices that the node can see
	Left    Left   `json:"left"`
	Blocks  Stage  `json:"blocks,omitempty"`
	// Sentence says why the stage in Blocks blocks.
	Sentence string `json:"sentence,omitempty"`
}

// Left counts the devices that passed a stage and all stages before it.
type Left struct {
	Driver     int `json:"driver"`
	Class      int `json:"class"`
	Selector   int `json:"selector"`
	Taint      int `json:"taint"`
	InUse      int `json:"inUse"`
	Capacity   int `json:"capacity"`
	Constraint int `json:"constraint"`
}
