package funnel

import (
	"fmt"
	"strings"
)

// Obstacle is one reason why a pod does not fit on a node, or does not start there.
type Obstacle struct {
	Stage Stage `json:"stage"`
	// Request is the request that cannot be met, as claim/request; "" if the obstacle is
	// not about a request.
	Request  string `json:"request,omitempty"`
	Sentence string `json:"sentence"`
	// Hint is one thing to change, or "".
	Hint string `json:"hint,omitempty"`
	// HeldBy are the holders of what is missing. Of each device, the largest holder is
	// first.
	HeldBy []Holder `json:"heldBy,omitempty"`
	// Absent is the kind of devices that the request needs and that no node has, as [Kind]
	// returns it.
	Absent string `json:"-"`
}

// Holder is a claim or a pod that has a part of what is missing.
type Holder struct {
	// Device is the name of the device; "" for a resource of the node itself.
	Device string `json:"device,omitempty"`
	// Resource is a capacity or a counter of the device, or a resource of the node; ""
	// means the whole device. Amount is how much of it the holder has.
	Resource string `json:"resource,omitempty"`
	Amount   string `json:"amount,omitempty"`
	// Claim is namespace/name of the claim that holds the device; "" if Device is "".
	Claim string `json:"claim,omitempty"`
	// Pods are the pods that use the claim, or the pod that takes the resource, as
	// namespace/name. If no pod uses an allocated claim, there are none.
	Pods []string `json:"pods,omitempty"`
	// Assumed means that the holder only holds this if pods that wait for a node are
	// placed first.
	Assumed bool `json:"assumed,omitempty"`
}

// String returns a sentence without its full stop.
func (h Holder) String() string {
	what := h.Device
	if h.Resource != "" {
		what = h.Amount + " " + h.Resource
		if h.Device != "" {
			what += " of " + h.Device
		}
	}
	who, verb := "pod "+strings.Join(h.Pods, ", "), "holds"
	if h.Device == "" {
		verb = "takes"
	}
	switch {
	case len(h.Pods) == 0:
		return fmt.Sprintf("claim %s holds %s, and no pod uses the claim", h.Claim, what)
	case h.Assumed:
		verb = "would " + strings.TrimSuffix(verb, "s")
	case len(h.Pods) > 1:
		verb = strings.TrimSuffix(verb, "s")
	}
	if len(h.Pods) > 1 {
		who = "pods " + listText(h.Pods)
	}
	if h.Claim != "" {
		return fmt.Sprintf("%s %s %s through claim %s", who, verb, what, h.Claim)
	}
	return fmt.Sprintf("%s %s %s", who, verb, what)
}
