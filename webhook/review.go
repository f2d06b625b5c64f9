// Package webhook answers the API server's admission reviews. Package lint finds
// mistakes, and package accounting says what a pod must request. This package reads the
// reviews, and looks up the objects that they refer to. It changes nothing in the cluster,
// and has no right to: what it reads is written by tenants. Its certificate comes from
// package certificate, which another process runs, or from elsewhere.
package webhook

import (
	"encoding/json"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/accounting"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/lint"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// Known looks up objects, and says how the cluster counts claims.
type Known interface {
	accounting.Known
	// ServerCounts reports whether the scheduler counts all claims for zones by itself
	// (KEP-5517). A pod's requests must then not repeat them.
	ServerCounts() bool
	// Enforced reports whether each pod must request all that its claims may hold.
	Enforced() bool
	// Translation says how pods for static managers get claims; nil if they get none.
	Translation() *Translation
	// GeneratesClaims reports whether Kubernetes creates claims for pods as this user.
	GeneratesClaims(user string) bool
	// Waiting calls each for the pods of a namespace that name claims and may still wait for
	// one, or only for the pod with the name, if it is not "", until each returns false. The
	// pods have no more than what counts.
	Waiting(namespace, name string, each func(*corev1.Pod) (more bool)) error
}

// Reviewer answers reviews.
type Reviewer struct {
	known  Known
	linter *lint.Linter
}

// NewReviewer returns a Reviewer that looks up in known what objects refer to.
func NewReviewer(known Known) *Reviewer { return &Reviewer{known, lint.New(known)} }

// Validate refuses an object with an error, and returns its warnings. An error that the
// stored object already has is only a warning. It returns an error for an object that it
// cannot read; then the failurePolicy of the webhook configuration decides.
func (r *Reviewer) Validate(request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	findings, err := r.findings(request, request.Object.Raw)
	if err != nil {
		return nil, err
	}
	var before []lint.Finding
	if len(request.OldObject.Raw) > 0 {
		if before, err = r.findings(request, request.OldObject.Raw); err != nil {
			return nil, err
		}
	}
	response := &admissionv1.AdmissionResponse{UID: request.UID, Allowed: true}
	for _, finding := range findings {
		if finding.Severity == lint.Error && !slices.Contains(before, finding) {
			refuse(response, finding.String())
			return response, nil
		}
		response.Warnings = append(response.Warnings, shown(finding.String()))
	}
	return response, nil
}

// shown returns a text as kubectl can print it: one line, in which nothing of the object is
// obeyed or invisible. The API server drops warnings with control characters, so a tenant
// could hide a warning.
func shown(text string) string { return message.Visible(message.OneLine(text)) }

func refuse(response *admissionv1.AdmissionResponse, text string) {
	response.Allowed = false
	response.Result = &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: 422, Message: shown(text)}
	response.Warnings = nil
}

func (r *Reviewer) findings(request *admissionv1.AdmissionRequest, raw []byte) ([]lint.Finding, error) {
	switch request.Kind.Kind {
	case "ResourceClaim":
		claim, err := read[resourceapi.ResourceClaim](request, raw)
		if refusedAnyway(claim.Spec) {
			return nil, err
		}
		return r.linter.Claim(claim), err
	case "ResourceClaimTemplate":
		template, err := read[resourceapi.ResourceClaimTemplate](request, raw)
		if refusedAnyway(template.Spec.Spec) {
			return nil, err
		}
		return r.linter.Template(template), err
	case "DeviceClass":
		class, err := read[resourceapi.DeviceClass](request, raw)
		return r.linter.Class(class), err
	case "Pod":
		pod, err := podOf(request, raw)
		if r.known.ServerCounts() || len(pod.Spec.ResourceClaims) > mostClaims {
			return nil, err
		}
		findings := lint.New(r.knownTo(pod)).Pod(pod)
		if r.known.Enforced() { // a claim counts in each pod, and Enforce refuses what it cannot count
			findings = slices.DeleteFunc(findings, func(finding lint.Finding) bool { return finding.Rule == lint.UnresolvedClaim })
		}
		return findings, err
	}
	return nil, fmt.Errorf("review %s: want ResourceClaim, ResourceClaimTemplate, DeviceClass or Pod", request.Kind)
}

// Mutate raises the requests of a pod to what its claims hold, or may hold if that is
// enforced. It ignores claims that cannot be looked up: Validate warns of them, and
// Enforce refuses the pod.
func (r *Reviewer) Mutate(request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	if request.Kind.Kind != "Pod" {
		return nil, fmt.Errorf("mutate %s: want Pod", request.Kind)
	}
	pod, err := readPod(request)
	if err != nil {
		return nil, err
	}
	response := &admissionv1.AdmissionResponse{UID: request.UID, Allowed: true}
	if r.known.ServerCounts() {
		return response, nil
	}
	mirrored, ok := r.mirror(pod, r.knownTo(pod))
	if !ok || !mirrored.Changed {
		return response, nil
	}
	return response, respond(response, pod, mirrored.Pod)
}

// mirror raises the requests of a pod. It returns false if that would take long.
func (r *Reviewer) mirror(pod *corev1.Pod, known Known) (accounting.Mirrored, bool) {
	if len(pod.Spec.ResourceClaims) > mostClaims {
		return accounting.Mirrored{}, false
	}
	sharesOf := accounting.SharesOf
	if known.Enforced() {
		sharesOf = accounting.MostOf
	}
	shares, _ := sharesOf(pod, known)
	if accounting.TooLarge(pod, shares) {
		return accounting.Mirrored{}, false
	}
	return accounting.Mirror(pod, shares), true
}

// readPod reads a pod. Its status is that of the stored pod: the API server drops a status
// that the user sends with a pod, but only after it has asked for changes.
func readPod(request *admissionv1.AdmissionRequest) (*corev1.Pod, error) {
	pod, err := podOf(request, request.Object.Raw)
	if err != nil {
		return pod, err
	}
	stored, err := storedPod(request)
	if err != nil {
		return new(corev1.Pod), err
	}
	pod.Status = stored.Status
	return pod, nil
}

// storedPod reads the pod as it is stored. A pod that is being created is empty.
func storedPod(request *admissionv1.AdmissionRequest) (*corev1.Pod, error) {
	if len(request.OldObject.Raw) == 0 {
		return new(corev1.Pod), nil
	}
	return podOf(request, request.OldObject.Raw)
}

// podOf reads a pod from its text. A pod that is being created has no namespace of its
// own yet.
func podOf(request *admissionv1.AdmissionRequest, raw []byte) (*corev1.Pod, error) {
	pod, err := read[corev1.Pod](request, raw)
	if err != nil {
		return pod, err
	}
	pod.Namespace = request.Namespace
	if err := accounting.CheckAmounts(pod); err != nil {
		return new(corev1.Pod), fmt.Errorf("read Pod %s/%s: %w", request.Namespace, request.Name, err)
	}
	return pod, nil
}

// read never returns a nil object.
func read[T any](request *admissionv1.AdmissionRequest, raw []byte) (*T, error) {
	object := new(T)
	if err := json.Unmarshal(raw, object); err != nil {
		return new(T), fmt.Errorf("read %s %s/%s: %w", request.Kind.Kind, request.Namespace, request.Name, err)
	}
	return object, nil
}
