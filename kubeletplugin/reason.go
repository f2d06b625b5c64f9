package kubeletplugin

import (
	"errors"

	"github.com/dra-driver-numa/dra-driver-numa/internal/keeperfile"
)

// Reason says in one word why a daemon is not ready. The text of the problem, which names
// objects and files, is in the answer of /readyz, in the log and in events.
type Reason string

// The reasons.
const (
	ReasonStarting       Reason = "starting"        // recovering what claims hold, or nothing is known yet
	ReasonStandby        Reason = "standby"         // another daemon serves the node
	ReasonAPIServer      Reason = "api-server"      // the API server has not listed the node's ResourceSlices, or does not store them
	ReasonDroppedField   Reason = "dropped-field"   // the API server would drop a field of the ResourceSlices
	ReasonKeeper         Reason = "keeper"          // the keeper has not looked at the kubelet's files or at cgroups
	ReasonKubelet        Reason = "kubelet"         // the kubelet has not registered the driver
	ReasonKubeletManager Reason = "kubelet-manager" // a resource manager of the kubelet moves containers
	ReasonOtherDriver    Reason = "other-driver"    // another driver gives out CPUs of the node
	ReasonRehearsal      Reason = "rehearsal"       // the daemon could not prepare a made-up claim
)

// reasonOf returns the reason of a problem of the publisher.
func reasonOf(problem error) Reason {
	var guard guardError
	var dropped *droppedError
	switch {
	case errors.As(problem, &guard):
		return guard.reason
	case errors.As(problem, &dropped):
		return ReasonDroppedField
	case errors.Is(problem, keeperfile.ErrUnknown):
		return ReasonKeeper
	}
	return ReasonAPIServer
}
