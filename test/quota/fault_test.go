package quota

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// What the webhook does wrong, to show that it is noticed. A fault changes what the webhook
// sees of a claim, so that it decides as it would with the fault in its code.
const (
	// searchIsProof takes it for a proof that no made-up zone matches the selectors.
	searchIsProof = 1 + iota
	// countsOverflow multiplies amounts in 64 bits.
	countsOverflow
	// limitsOfPodLevel forgets what the limits of containers leave uncounted, if the pod
	// itself requests a resource.
	limitsOfPodLevel
)

// The property finds each of these faults, or it would prove nothing.
func TestFaultsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine: make unit runs it without the race detector")
	}
	for fault, name := range map[int]string{searchIsProof: "a search is a proof", countsOverflow: "counts overflow", limitsOfPodLevel: "limits of pod-level requests"} {
		wrong, tried := "", 0
		w := newWorld(t, *caseSeed)
		for w.fault = fault; wrong == "" && tried < 10_000; tried++ {
			wrong = w.try()
		}
		if wrong == "" {
			t.Errorf("%s: nothing found, with seed %d", name, *caseSeed)
		}
		t.Logf("%s: case %d", name, tried)
	}
}

// seenAs is the claim as a webhook with the fault takes it.
func (w *world) seenAs(claim *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	if claim == nil || w.fault == 0 {
		return claim
	}
	claim = claim.DeepCopy()
	for i := range claim.Spec.Devices.Requests {
		request := &claim.Spec.Devices.Requests[i]
		asks := asksOf(request)
		overflows := slices.ContainsFunc(asks, ask.overflows)
		for _, ask := range asks {
			switch {
			case w.fault == searchIsProof && !w.mayBeFound(ask), w.fault == countsOverflow && overflows:
				*ask.capacity = nil
			case w.fault == limitsOfPodLevel && *ask.capacity != nil:
				w.limit((*ask.capacity).Requests)
			}
			if *ask.count > 32 && w.fault == countsOverflow {
				*ask.count = 1
			}
		}
	}
	return claim
}

// ask is a request, or an alternative.
type ask struct {
	class     string
	selectors []resourceapi.DeviceSelector
	count     *int64
	capacity  **resourceapi.CapacityRequirements
}

func asksOf(request *resourceapi.DeviceRequest) (asks []ask) {
	if one := request.Exactly; one != nil {
		return []ask{{one.DeviceClassName, one.Selectors, &one.Count, &one.Capacity}}
	}
	for i := range request.FirstAvailable {
		one := &request.FirstAvailable[i]
		asks = append(asks, ask{one.DeviceClassName, one.Selectors, &one.Count, &one.Capacity})
	}
	return asks
}

func (w *world) mayBeFound(ask ask) bool {
	class := w.classes[ask.class]
	if class == nil {
		return true
	}
	result := w.probe.Try(class.Spec.Selectors, ask.selectors)
	return result.Zones || result.Incomplete
}

// overflows reports whether the CPUs of the request are 0 or less in 64 bits.
func (a ask) overflows() bool {
	if *a.capacity == nil {
		return false
	}
	cpus := (*a.capacity).Requests["cpu"]
	return cpus.Sign() > 0 && *a.count > 32 && cpus.CmpInt64(64) < 0 && cpus.MilliValue()**a.count <= 0
}

// limit cuts amounts to the limits of the containers of a pod that itself requests the
// resource.
func (w *world) limit(amounts map[resourceapi.QualifiedName]resource.Quantity) {
	own := w.pod.Spec.Resources
	if own == nil {
		return
	}
	for _, key := range []resourceapi.QualifiedName{"cpu", "memory"} {
		name := corev1.ResourceName(key)
		if _, requests := own.Requests[name]; !requests {
			continue
		}
		sum, all := resource.Quantity{}, true
		for _, container := range w.pod.Spec.Containers {
			limit, limited := container.Resources.Limits[name]
			all = all && limited
			sum.Add(limit)
		}
		if amount, asks := amounts[key]; all && asks && amount.Cmp(sum) > 0 {
			amounts[key] = sum
		}
	}
}
