package kubeletplugin

import (
	"errors"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

var errNotListed = errors.New("ResourceSlices of this node are not yet listed")

// guardError is what somebody has to change outside this driver.
type guardError string

func (e guardError) Error() string { return string(e) }

// guards look for what must not be on a node that offers zones: somebody else
// who gives out its CPUs.
type guards struct {
	kubeletRoot string
	slices      *nodeSlices
}

// check returns the first reason why the node must not offer zones now. It
// keeps nothing: the answer is that of this moment. Before the API server has
// listed the node's slices it is errNotListed.
func (g *guards) check() error {
	if !g.slices.listed() {
		return errNotListed
	}
	if err := checkManagers(g.kubeletRoot); err != nil {
		return err
	}
	return checkDrivers(g.slices.all())
}

// checkDrivers returns which other driver gives out CPUs of the node.
func checkDrivers(all []*resourceapi.ResourceSlice) error {
	var others []string
	for _, slice := range all {
		if driver.IsRival(slice) {
			others = append(others, slice.Spec.Driver)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return guardError(fmt.Sprintf("driver %q publishes CPUs of this node, and would give out those of our claims: keep one of the two off the node",
		slices.Min(others)))
}
