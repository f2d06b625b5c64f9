package kernel

import (
	"context"
	_ "embed" // work.sh
	"fmt"
	"strconv"
	"time"
)

//go:embed work.sh
var workScript string

// Pace is how many times longer a node takes for a piece of work than the node at
// which the tests' limits were chosen; never below 1. The zero value is 1.
type Pace float64

// Of is a limit that was chosen for pace 1.
func (p Pace) Of(limit time.Duration) time.Duration {
	return time.Duration(float64(limit) * float64(max(p, 1)))
}

// work is what [Observer.Measure] measures: as many processes as the node has CPUs, all
// at the same time, start a program workStarts times each. workTime is how long that took
// at pace 1: a node of the rig with 16 CPUs, emulated by 2 cores of an AMD EPYC. The
// fastest of workRounds counts, as a node has other things to do now and then.
const (
	workStarts = 20
	workRounds = 3
	workTime   = 2 * time.Second

	// unknownPace holds while the pace is measured: no limit may depend on the speed that
	// the measurement is to find.
	unknownPace Pace = 30
)

// Measure has the node do a known piece of work, sets the observer's pace by it, and
// returns how long the work took. To start programs is most of what an emulated node
// does while a test waits; that all CPUs are busy tells a machine with few cores from
// one with many.
func (o *Observer) Measure(ctx context.Context) (took time.Duration, err error) {
	o.Pace = unknownPace
	for round := range workRounds {
		text, err := o.Run(ctx, workScript, strconv.Itoa(workStarts))
		if err != nil {
			return 0, err
		}
		one, err := parseWork(text)
		if err != nil {
			return 0, fmt.Errorf("measure node %s: %w", o.pod.Spec.NodeName, err)
		}
		if round == 0 || one < took {
			took = one
		}
	}
	o.Pace = max(1, Pace(took)/Pace(workTime))
	return took, nil
}

// parseWork reads the output of work.sh.
func parseWork(text string) (time.Duration, error) {
	var begin, end float64
	if _, err := fmt.Sscanf(text, "%f %f\n", &begin, &end); err != nil {
		return 0, fmt.Errorf("parse begin and end of work %q: %w", text, err)
	}
	if end <= begin {
		return 0, fmt.Errorf("parse begin and end of work %q: the end is not after the begin", text)
	}
	return time.Duration((end - begin) * float64(time.Second)).Round(10 * time.Millisecond), nil
}
