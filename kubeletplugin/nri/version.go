package nri

import (
	"errors"
	"fmt"

	"github.com/containerd/nri/pkg/api"
	"k8s.io/apimachinery/pkg/util/version"
)

// firstWithPolicies is the first NRI that can set memory policies. It is also the first in
// which runtimes send their version of NRI. An older one leaves out what it does not know,
// and reports no error.
const firstWithPolicies = "0.12"

// firstContainerd is the first version of containerd with such an NRI.
const containerd, firstContainerd = "containerd", "2.3"

// setsPolicies reports whether a runtime sets memory policies. If the runtime does not send
// its version of NRI, nri is empty or what a table of the library says of the runtime. That
// table ends with containerd 2.2, and takes newer ones for it.
func setsPolicies(runtime, runtimeVersion, nri string) bool {
	if nri == api.UnknownVersion || nri == api.DevelVersion {
		return true // only a new one sends that
	}
	return atLeast(nri, firstWithPolicies) || runtime == containerd && atLeast(runtimeVersion, firstContainerd)
}

// ErrNotUsed is why the container runtime sets no memory policies on a node without NRI.
var ErrNotUsed = errors.New("container runtimes set it over NRI, which this node does not use")

var errNotConnected = errors.New("container runtimes set it over NRI, and that of this node is not connected")

// MissingPolicies returns why the container runtime does not set memory policies, or nil if
// it does.
func (p *Plugin) MissingPolicies() error {
	s := p.connection()
	switch {
	case s == nil:
		return errNotConnected
	case !s.policies:
		return fmt.Errorf("%s does not set it, want a container runtime with NRI %s or newer, such as %s %s", s.runtime, firstWithPolicies, containerd, firstContainerd)
	}
	return nil
}

// atLeast reports whether the version is first or newer. It is not, if it is no version.
func atLeast(text, first string) bool {
	parsed, err := version.ParseGeneric(text)
	return err == nil && parsed.AtLeast(version.MustParseGeneric(first))
}
