package quota

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	helpers "k8s.io/component-helpers/resource"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate/inventory"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/accounting"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/probe"
	"github.com/dra-driver-numa/dra-driver-numa/internal/allocation"
	"github.com/dra-driver-numa/dra-driver-numa/webhook"
)

var (
	caseCount = flag.Int("cases", 10_000, "how many random cases there are")
	caseSeed  = flag.Uint64("seed", rand.Uint64(), "makes up the cases; the same seed makes up the same")
)

// TestAcceptedPodsRequestWhatTheirClaimsGet makes up nodes, classes, claims and pods. What
// the scheduler's allocator gives of zones is never more than what it counts for a pod that
// the webhook accepted.
func TestAcceptedPodsRequestWhatTheirClaimsGet(t *testing.T) {
	cases := *caseCount
	if testing.Short() {
		cases = min(cases, 500)
	}
	t.Logf("seed %d: repeat it with -args -seed %[1]d", *caseSeed)
	w := newWorld(t, *caseSeed)
	for i := range cases {
		if wrong := w.try(); wrong != "" {
			t.Fatalf("seed %d, case %d: %s", *caseSeed, i, wrong)
		}
	}
	t.Log(w.seen)
	for what, least := range map[string]int{
		"accepted and allocated": 2000, "of mixed classes or beside other drivers": 500, "refused": 1000, "raised": 1000, "pod-level": 100, "shared": 100,
	} {
		if w.seen[what] < least*cases/10_000 {
			t.Errorf("%s: %d pods, want at least %d: not much of a test", what, w.seen[what], least*cases/10_000)
		}
	}
}

// world is a set of nodes, and the objects of a case.
type world struct {
	t       *testing.T
	random  random
	nodes   []*node
	classes inventory.Classes
	cache   *allocation.Cache
	probe   *probe.Selectors
	fault   int
	seen    map[string]int

	node   *node
	steps  accounting.Steps
	claims map[string]*resourceapi.ResourceClaim
	held   inventory.Holdings
	pod    *corev1.Pod // that is reviewed
}

func newWorld(t *testing.T, seed uint64) *world {
	r := random{rand.New(rand.NewPCG(seed, 0))}
	return &world{
		t: t, random: r, nodes: nodes(t, r), classes: classesOf(t), probe: probe.New(), seen: map[string]int{},
		cache: allocation.NewCache(10_000, allocation.DefaultFeatures()),
	}
}

// try makes up claims and one or two pods for an empty node, and says what is wrong.
func (w *world) try() (wrong string) {
	r := w.random
	w.node, w.held, w.claims = pick(r, w.nodes...), inventory.Holdings{}, map[string]*resourceapi.ResourceClaim{}
	w.steps = accounting.StepsOf(w.node.slices)
	names := []string{"a", "b", "c"}[:weighted(r, []choice[int]{{70, 1}, {20, 2}, {10, 3}})]
	for _, name := range names {
		w.claims[name] = w.node.claim(r, name)
	}
	for i := range weighted(r, []choice[int]{{80, 1}, {20, 2}}) {
		if wrong := w.tryPod(w.node.pod(r, fmt.Sprintf("p%d", i), names), i > 0); wrong != "" {
			return wrong
		}
	}
	return ""
}

func (w *world) tryPod(pod *corev1.Pod, second bool) (wrong string) {
	original := pod
	if w.random.chance(85) {
		pod = w.raised(pod)
	}
	if !valid(pod) || !w.accepted(pod) {
		w.seen["refused"]++
		return ""
	}
	w.seen["accepted"]++
	results, allocated := w.allocate(pod)
	given := givenOf(results)
	if !allocated || len(given) == 0 {
		return ""
	}
	w.count(pod, original, results, second)
	counts := helpers.PodRequests(pod, helpers.PodResourcesOptions{})
	for name, amount := range given {
		if scheduled(name, counts) < scheduled(name, given) {
			return fmt.Sprintf("%s: %s is given, and the scheduler counts %d of %s\n%s", name, amount.String(), scheduled(name, counts), name, w.describe(pod, original, results))
		}
	}
	return ""
}

// scheduled is an amount as the scheduler counts it.
func scheduled(name corev1.ResourceName, list corev1.ResourceList) int64 {
	amount := list[name]
	if name == corev1.ResourceCPU {
		return amount.MilliValue()
	}
	return amount.Value()
}

// raised is the pod after the webhook has changed it.
func (w *world) raised(pod *corev1.Pod) *corev1.Pod {
	if accounting.CheckAmounts(pod) != nil {
		return pod
	}
	w.pod = pod
	shares, _ := accounting.MostOf(pod, w)
	mirrored := accounting.Mirror(pod, shares)
	setDefaults(mirrored.Pod)
	return mirrored.Pod
}

func (w *world) accepted(pod *corev1.Pod) bool {
	w.pod = pod
	raw, err := json.Marshal(pod)
	if err != nil {
		w.t.Fatal(err)
	}
	response, err := webhook.NewReviewer(w).Enforce(&admissionv1.AdmissionRequest{
		Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Namespace: pod.Namespace, Name: pod.Name,
		Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw},
	})
	return err == nil && response.Allowed
}

// filterTimeout is how long the scheduler searches (DynamicResourcesFilterTimeoutDefault).
// Few searches take longer, and some of those would take hours.
const filterTimeout = 10 * time.Second

// allocate allocates the claims of a pod that are not allocated yet, as the scheduler of
// Kubernetes 1.37 does with the default feature gates.
func (w *world) allocate(pod *corev1.Pod) (results []resourceapi.DeviceRequestAllocationResult, allocated bool) {
	var waiting []*resourceapi.ResourceClaim
	for _, entry := range pod.Spec.ResourceClaims {
		if claim := w.claims[*entry.ResourceClaimName]; claim.Status.Allocation == nil {
			waiting = append(waiting, claim)
		}
	}
	var pools []*inventory.Pool
	for id := range w.held {
		pools = append(pools, &inventory.Pool{ID: id})
	}
	allocator, err := allocation.NewAllocator(w.t.Context(), allocation.DefaultFeatures(), w.held.State(pools), w.classes, allocation.NewSlices(w.node.slices), w.cache)
	if err != nil {
		w.t.Fatal(err)
	}
	here := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.node.name}}
	ctx, cancel := context.WithTimeout(w.t.Context(), filterTimeout)
	defer cancel()
	allocations, err := allocator.Allocate(ctx, here, waiting)
	if err != nil && !errors.Is(err, allocation.ErrOnNode) {
		w.seen["given up"]++
	}
	if err != nil || len(allocations) < len(waiting) {
		return nil, false
	}
	for i, claim := range waiting {
		claim.Status.Allocation = &allocations[i]
		w.held.Add(claim, true)
	}
	for _, entry := range pod.Spec.ResourceClaims {
		claim := w.claims[*entry.ResourceClaimName]
		claim.Status.ReservedFor = append(claim.Status.ReservedFor, resourceapi.ResourceClaimConsumerReference{Resource: "pods", Name: pod.Name, UID: pod.UID})
		results = append(results, claim.Status.Allocation.Devices.Results...)
	}
	return results, true
}

// givenOf adds up what allocation results give of zones.
func givenOf(results []resourceapi.DeviceRequestAllocationResult) corev1.ResourceList {
	given := corev1.ResourceList{}
	for _, result := range results {
		if result.Driver != deviceclasses.DriverName || result.AdminAccess != nil && *result.AdminAccess {
			continue
		}
		for key, amount := range result.ConsumedCapacity {
			name, counts := corev1.ResourceName(key), key == deviceclasses.CapacityCPU || key == deviceclasses.CapacityMemory
			if size, huge := strings.CutPrefix(string(key), deviceclasses.CapacityHugepagesPrefix); huge {
				name, counts = corev1.ResourceName(corev1.ResourceHugePagesPrefix+size), true
			}
			if sum := given[name]; counts && !amount.IsZero() {
				sum.Add(amount)
				given[name] = sum
			}
		}
	}
	return given
}

// count counts an accepted pod that was given something of a zone.
func (w *world) count(pod, original *corev1.Pod, results []resourceapi.DeviceRequestAllocationResult, second bool) {
	w.seen["accepted and allocated"]++
	foreign := slices.ContainsFunc(results, func(result resourceapi.DeviceRequestAllocationResult) bool {
		return result.Driver != deviceclasses.DriverName
	})
	for what, is := range map[string]bool{
		"of mixed classes or beside other drivers": foreign || w.mixes(pod), "raised": pod != original, "shared": second,
		"pod-level": pod.Spec.Resources != nil, "with init containers": len(pod.Spec.InitContainers) > 0,
	} {
		if is {
			w.seen[what]++
		}
	}
}

// mixes reports whether a request of the pod's claims names a mixed class.
func (w *world) mixes(pod *corev1.Pod) bool {
	for _, entry := range pod.Spec.ResourceClaims {
		for _, request := range w.claims[*entry.ResourceClaimName].Spec.Devices.Requests {
			if request.Exactly != nil && mixed()[request.Exactly.DeviceClassName] != "" {
				return true
			}
			for _, alternative := range request.FirstAvailable {
				if mixed()[alternative.DeviceClassName] != "" {
					return true
				}
			}
		}
	}
	return false
}

func (w *world) describe(objects ...any) string {
	for _, claim := range w.claims {
		objects = append(objects, claim)
	}
	var out strings.Builder
	for _, one := range objects {
		text, _ := yaml.Marshal(one)
		fmt.Fprintf(&out, "---\n%s", text)
	}
	return out.String()
}
