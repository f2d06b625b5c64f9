package quota

import (
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/accounting"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/probe"
	"github.com/dra-driver-numa/dra-driver-numa/webhook"
)

// A world is what the webhook looks up.
var _ webhook.Known = (*world)(nil)

func (w *world) DeviceClass(name string) *resourceapi.DeviceClass { return w.classes[name] }

func (w *world) ResourceClaim(_, name string) *resourceapi.ResourceClaim {
	return w.seenAs(w.claims[name])
}

func (w *world) ResourceClaimTemplate(string, string) *resourceapi.ResourceClaimTemplate { return nil }

func (w *world) Steps() accounting.Steps { return w.steps }

func (w *world) Selectors() *probe.Selectors { return w.probe }

func (w *world) ServerCounts() bool { return false }

func (w *world) Enforced() bool { return true }

// Translation implements webhook.Known: no pod is translated.
func (w *world) Translation() *webhook.Translation { return nil }

func (w *world) GeneratesClaims(string) bool { return false }

func (w *world) Waiting(string, string, func(*corev1.Pod) bool) error { return nil }
