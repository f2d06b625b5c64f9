package kubelet

import (
	"fmt"
	"strconv"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/trace"
)

// Placer has the node place the claims of a trace.
type Placer struct{ Node *Node }

// Place gives a pod CPUs. Every error of the kubelet counts as a claim that is not placed.
func (p Placer) Place(claim, cpus int) (cpuset.Set, error) {
	uid := strconv.Itoa(claim)
	if err := p.Node.Allocate(Pod(uid, cpus)); err != nil {
		return cpuset.Set{}, fmt.Errorf("%w: %w", trace.ErrNoRoom, err)
	}
	return p.Node.CPUs(uid)
}

// Release takes the CPUs of the pod back.
func (p Placer) Release(claim int, _ cpuset.Set) error { return p.Node.Release(strconv.Itoa(claim)) }
