package kubeletplugin

import (
	"errors"
	"fmt"
	"io/fs"
)

var errNotListed = errors.New("the API server has not listed the ResourceSlices of this node yet")

// guardError is a problem that an administrator has to solve outside this driver.
type guardError struct {
	reason Reason
	text   string
}

func (e guardError) Error() string { return e.text }

// guards check that nothing else gives out the CPUs of a node that offers zones.
type guards struct {
	dir         fs.FS  // the driver's, where the keeper writes the policies of the kubelet's managers
	boot        string // the id of this boot
	kubeletRoot string // for messages
	slices      *nodeSlices
	rivals      *rivals
}

// check returns the first reason why the node must not offer zones now, or nil. It
// looks again at each call. Until the API server has listed the node's slices, it
// returns errNotListed, and until the keeper has looked at the kubelet,
// keeperfile.ErrUnknown.
func (g *guards) check() error {
	if !g.slices.listed() {
		return errNotListed
	}
	if err := checkManagers(g.dir, g.boot, g.kubeletRoot); err != nil {
		return err
	}
	switch others := g.rivals.look(g.slices.all()); {
	case others.present:
		return guardError{ReasonOtherDriver, fmt.Sprintf("driver %q publishes CPUs of this node and could give out the CPUs of our claims: run only one of the two drivers on the node", others.cpus)}
	case others.cpus != "":
		return guardError{ReasonOtherDriver, fmt.Sprintf("driver %q published CPUs of this node and may only be restarting: zones come back when it has had no ResourceSlices and no socket for the kubelet for %s", others.cpus, rivalsLast)}
	}
	return nil
}
