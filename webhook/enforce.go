package webhook

import (
	"errors"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/accounting"
)

// Enforce refuses a pod that requests less than its claims may hold, or whose claims are
// not known, and a resize to less than that. It also refuses a claim that may hold more
// than a pod that waits for it requests: a pod names a claim by its name, so a larger
// claim can take the place of the one that the pod was compared with. What the stored pod
// already lacks is only a warning, and so is what nobody knows, if a resize lowers nothing.
func (r *Reviewer) Enforce(request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	response := &admissionv1.AdmissionResponse{UID: request.UID, Allowed: true}
	if r.known.ServerCounts() {
		return response, nil
	}
	var lacks string
	var err error
	switch request.Kind.Kind {
	case "Pod":
		lacks, err = r.podLacks(request, response)
	case "ResourceClaim":
		lacks, err = r.waitingPodLacks(request)
	default:
		err = fmt.Errorf("enforce %s: want Pod or ResourceClaim", request.Kind)
	}
	if err != nil {
		return nil, err
	}
	if lacks != "" {
		refuse(response, lacks)
	}
	return response, nil
}

// podLacks says why a pod is refused; "" if it is not.
func (r *Reviewer) podLacks(request *admissionv1.AdmissionRequest, response *admissionv1.AdmissionResponse) (string, error) {
	pod, err := readPod(request)
	if err != nil {
		return "", err
	}
	why, lacks := lackOf(pod, r.knownTo(pod))
	if why == "" || len(request.OldObject.Raw) == 0 {
		return why, nil
	}
	before, err := storedPod(request)
	if err != nil {
		return "", err
	}
	if lacks == nil && accounting.Lowers(before, pod) {
		return why + "; until it is known, a resize may lower no request", nil
	}
	if lacks != nil {
		if _, lacked := lackOf(before, r.knownTo(before)); !within(lacks, lacked) {
			return why, nil
		}
	}
	response.Warnings = append(response.Warnings, shown(why))
	return "", nil
}

// within reports whether each amount is at most its bound, which is 0 if it is not known.
func within(amounts, bounds corev1.ResourceList) bool {
	for name, amount := range amounts {
		if amount.Cmp(bounds[name]) > 0 {
			return false
		}
	}
	return true
}

// waitingPodLacks says why a claim is refused; "" if it is not.
func (r *Reviewer) waitingPodLacks(request *admissionv1.AdmissionRequest) (string, error) {
	claim, err := read[resourceapi.ResourceClaim](request, request.Object.Raw)
	if err != nil {
		return "", err
	}
	if refusedAnyway(claim.Spec) {
		return "", nil
	}
	claim.Namespace = request.Namespace
	if claim.Annotations[resourceapi.ExtendedResourceClaimAnnotation] == "true" && hasCapacity(claim) {
		return fmt.Sprintf("metadata.annotations[%s]: the scheduler would use this claim for a pod that does not name it, and the claim has capacities: remove the annotation",
			resourceapi.ExtendedResourceClaimAnnotation), nil
	}
	known := withClaim{r.known, claim}
	if shares, unresolved := accounting.MostOf(podOfOnly(claim), known); len(shares)+len(unresolved) == 0 {
		return "", nil // it holds nothing of zones
	}
	lacks, others := "", 0
	err = r.known.Waiting(request.Namespace, r.onlyPod(request, claim), func(pod *corev1.Pod) bool {
		named, waits := accounting.Naming(pod, claim)
		if !waits || pod.DeletionTimestamp != nil {
			return true
		}
		if others += len(named.Spec.ResourceClaims) - 1; others > mostLookups {
			lacks = fmt.Sprintf("spec.devices.requests: what waits for this claim is not known: the pods that wait for it have more than %d other claims", mostLookups)
		} else if why, _ := lackOf(named, known); why != "" {
			lacks = fmt.Sprintf("spec.devices.requests: pod %q waits for this claim, but does not request all of it: %s", pod.Name, why)
		}
		return lacks == ""
	})
	if errors.Is(err, errTooMuchWaits) {
		return fmt.Sprintf("spec.devices.requests: what waits for this claim is not known: %v", err), nil
	}
	if err != nil {
		return "", fmt.Errorf("list pods that wait for claim %s/%s: %w", request.Namespace, claim.Name, err)
	}
	return lacks, nil
}

// podOfOnly is a pod that has only the claim.
func podOfOnly(claim *resourceapi.ResourceClaim) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Namespace = claim.Namespace
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "claim", ResourceClaimName: &claim.Name}}
	return pod
}

func hasCapacity(claim *resourceapi.ResourceClaim) bool {
	return slices.ContainsFunc(claim.Spec.Devices.Requests, func(request resourceapi.DeviceRequest) bool {
		return request.Exactly != nil && request.Exactly.Capacity != nil ||
			slices.ContainsFunc(request.FirstAvailable, func(sub resourceapi.DeviceSubRequest) bool { return sub.Capacity != nil })
	})
}

// onlyPod is the only pod that can wait for a new claim; "" if any pod can. A claim that
// Kubernetes generates has a random name, so no other pod names it.
func (r *Reviewer) onlyPod(request *admissionv1.AdmissionRequest, claim *resourceapi.ResourceClaim) string {
	owner := metav1.GetControllerOfNoCopy(claim)
	if owner == nil || owner.Kind != "Pod" || request.Operation != admissionv1.Create {
		return ""
	}
	if r.known.GeneratesClaims(request.UserInfo.Username) {
		return owner.Name
	}
	return ""
}

// withClaim finds a claim that is not stored yet.
type withClaim struct {
	Known
	claim *resourceapi.ResourceClaim
}

// ResourceClaim implements accounting.Known.
func (w withClaim) ResourceClaim(namespace, name string) *resourceapi.ResourceClaim {
	if name == w.claim.Name {
		return w.claim
	}
	return w.Known.ResourceClaim(namespace, name)
}

// lackOf says why the pod's requests are not enough for what its claims may hold, and what
// they lack. It says "" if they lack nothing. The amounts are nil if they are not known.
func lackOf(pod *corev1.Pod, known Known) (why string, lacks corev1.ResourceList) {
	if len(pod.Spec.ResourceClaims) > mostClaims {
		return fmt.Sprintf("spec.resourceClaims: what the claims may hold is not known: there are %d, and at most %d are looked up", len(pod.Spec.ResourceClaims), mostClaims), nil
	}
	shares, unresolved := accounting.MostOf(pod, known)
	if len(unresolved) > 0 {
		return fmt.Sprintf("spec.resourceClaims[%d]: what the claim may hold is not known: %s", unresolved[0].Index, unresolved[0].Why), nil
	}
	if accounting.TooLarge(pod, shares) {
		return "spec.resourceClaims: what the claims may hold is not compared with the requests, because there are too many claims and containers", nil
	}
	mirrored := accounting.Mirror(pod, shares)
	if len(mirrored.Uncounted) == 0 {
		return "", mirrored.Uncounted
	}
	why = fmt.Sprintf("spec.containers: the requests lack %s, which the pod's claims may hold", accounting.Text(mirrored.Uncounted))
	if len(mirrored.Short) > 0 {
		why += fmt.Sprintf("; the limits are too low by %s", accounting.Text(mirrored.Short))
	}
	return why, mirrored.Uncounted
}
