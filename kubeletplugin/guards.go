package kubeletplugin

import (
	"errors"
	"fmt"
	"slices"

	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

var errNotListed = errors.New("the API server has not listed the ResourceSlices of this node yet")

// guardError is a problem that an administrator has to solve outside this driver.
type guardError string

func (e guardError) Error() string { return string(e) }

// guards check that nothing else gives out the CPUs of a node that offers zones.
type guards struct {
	kubeletRoot string
	slices      *nodeSlices
}

// check returns the first reason why the node must not offer zones now, or nil. It
// looks again at each call. Until the API server has listed the node's slices, it
// returns errNotListed.
func (g *guards) check() error {
	if !g.slices.listed() {
		return errNotListed
	}
	if err := checkManagers(g.kubeletRoot); err != nil {
		return err
	}
	return checkDrivers(g.slices.all())
}

// checkDrivers returns an error if another driver gives out CPUs of the node.
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
	return guardError(fmt.Sprintf("driver %q publishes CPUs of this node and could give out the CPUs of our claims: run only one of the two drivers on the node",
		slices.Min(others)))
}
