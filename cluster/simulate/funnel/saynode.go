package funnel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/requests"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// Causes that are not about devices.
type (
	// Cordoned is a node that takes no new pods.
	Cordoned struct{}
	// Untolerated is a taint of the node.
	Untolerated struct{ Taint *corev1.Taint }
	// InvalidAffinity is a node affinity of the pod that cannot be evaluated.
	InvalidAffinity struct{ Err error }
	// OtherNode is a node that the pod does not select.
	OtherNode struct{}
	// OutOfReach is an allocated claim whose device the node cannot reach.
	OutOfReach struct{ Claim string }
	// NotBound is an allocated claim whose driver says that its device cannot be bound. Shared
	// says that it is reserved for other pods, too.
	NotBound struct {
		Claim, Device, Driver string
		Failure               metav1.Condition
		Shared                bool
	}
	// TooManyPods is a node that runs as many pods as it may.
	TooManyPods struct{ Limit int64 }
	// TooLittle is a resource of the node, in the units of [requests.Amounts].
	TooLittle struct {
		Resource         corev1.ResourceName
		Asked, Free, All int64
	}
	// WithClaims is a cause that is there only with the devices of the pod's claims.
	WithClaims struct{ Cause }
	// Other is what another program says.
	Other struct{ Text string }
	// GivesUp is an error for which the scheduler gives up on the pod.
	GivesUp struct{ Err error }
)

func (Cordoned) String() string { return "the node is cordoned: spec.unschedulable is true" }

func (c Untolerated) String() string {
	return "the pod does not tolerate the node's taint " + c.Taint.ToString()
}

func (c InvalidAffinity) String() string {
	return fmt.Sprintf("the pod's node affinity is invalid: %v", c.Err)
}

func (OtherNode) String() string {
	return "the node does not match the pod's node selector or affinity"
}

func (c OutOfReach) String() string {
	return fmt.Sprintf("ResourceClaim %s is allocated to a device that this node cannot reach", c.Claim)
}

func (c NotBound) String() string {
	said := message.Short(message.OneLine(c.Failure.Reason+": "+c.Failure.Message), maxCondition)
	return fmt.Sprintf("ResourceClaim %s cannot be used: device %s of driver %s has the binding failure condition %s: %s", c.Claim, c.Device, c.Driver, c.Failure.Type, said)
}

// Hint is about what the scheduler does if no node fits (PostFilter).
func (c NotBound) Hint() string {
	if c.Shared {
		return "delete the other pods for which the claim is reserved: only then the scheduler frees its devices, and allocates again"
	}
	return "the scheduler frees the claim's devices, and then allocates again: if that does not help, ask the driver why it cannot bind them"
}

func (c TooManyPods) String() string {
	return fmt.Sprintf("the node already runs its maximum of %d pods", c.Limit)
}

func (c TooLittle) String() string {
	text := func(amount int64) string { return requests.Text(c.Resource, amount) }
	has := fmt.Sprintf("only %s of %s are free", text(c.Free), text(c.All))
	switch c.All {
	case 0:
		has = "the node has none"
	case c.Free:
		has = "the node has " + text(c.All)
	}
	return fmt.Sprintf("the pod requests %s %s, but %s", c.Resource, text(c.Asked), has)
}

func (c WithClaims) String() string { return "with the devices of its claims, " + c.Cause.String() }
func (c Other) String() string      { return c.Text }
func (c GivesUp) String() string    { return "the scheduler gives up: " + c.Err.Error() }

// Hint returns one thing to change, or "".
func (c GivesUp) Hint() string {
	text := c.Err.Error()
	switch {
	case errors.Is(c.Err, context.DeadlineExceeded):
		return "write requests for rare devices first and requests for many devices last: the scheduler tries combinations in the order of the requests, and each costs time"
	case strings.Contains(text, "no such key"):
		_, key, _ := strings.Cut(text, "no such key: ")
		key = key[:len(key)-len(strings.TrimLeftFunc(key, isIdentifier))]
		return fmt.Sprintf(`not every device has %[1]s: begin the selector with device.driver == "NAME" && and read device.attributes["DOMAIN"].?%[1]s.orValue(...)`, key)
	case strings.Contains(text, "requested both as"):
		return "ask for the capacity in one spelling"
	case strings.Contains(text, "feature is disabled"):
		return "the claim needs a feature gate that is off; see --feature-gates"
	}
	return ""
}

// isIdentifier reports whether a name of an attribute can contain the character.
func isIdentifier(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// InitHint gives a hint about claims that only init containers use, or "". A pod holds
// all its claims from its start to its end.
func InitHint(pod *corev1.Pod) string {
	later := make(map[string]bool)
	for _, container := range pod.Spec.Containers {
		for _, claim := range container.Resources.Claims {
			later[claim.Name] = true
		}
	}
	var only []string
	for _, container := range pod.Spec.InitContainers {
		if ptr.Deref(container.RestartPolicy, "") == corev1.ContainerRestartPolicyAlways {
			continue
		}
		for _, claim := range container.Resources.Claims {
			if !later[claim.Name] && !slices.Contains(only, claim.Name) {
				only = append(only, claim.Name)
			}
		}
	}
	if len(only) == 0 || len(pod.Spec.ResourceClaims) < 2 {
		return ""
	}
	return fmt.Sprintf("the pod holds the claims of its init containers in addition to its other claims; let the init containers use a claim of the main containers instead of %s", strings.Join(only, ", "))
}
