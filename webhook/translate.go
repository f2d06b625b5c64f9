package webhook

import (
	"encoding/json"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/accounting"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// Translation is how pods for static managers get claims.
type Translation struct {
	translate.Options
	// Leave lets a pod pass that would lose something. Otherwise it is refused.
	Leave bool
}

// Limits of what an answer says. The API server cuts warnings at 256 bytes.
const (
	mostNotes     = 16
	mostNoteBytes = 250
	mostWhyBytes  = 1 << 10
)

// Translate gives a new pod that was written for static managers a claim that means the
// same, and raises its requests as Mutate does, in one patch. The claim's template need not
// exist: the answer depends on the pod, on the options and on what nodes give in one step.
// What the managers would give nothing, and what has a claim already, stays as it is.
func (r *Reviewer) Translate(request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	if request.Kind.Kind != "Pod" {
		return nil, fmt.Errorf("translate %s: want Pod", request.Kind)
	}
	pod, err := readPod(request)
	if err != nil {
		return nil, err
	}
	response := &admissionv1.AdmissionResponse{UID: request.UID, Allowed: true}
	how := r.known.Translation()
	if how == nil || request.Operation != admissionv1.Create || pod.Labels[translate.Label] == translate.LabelOff {
		return response, nil
	}
	translated, err := r.translate(pod, how.Options)
	if err != nil {
		switch {
		case errors.As(err, new(translate.NotStaticError)):
		case how.Leave:
			response.Warnings = []string{shown(message.Short("spec: the pod has no CPUs of its own: "+err.Error(), mostNoteBytes))}
		default:
			refuse(response, message.Short("spec: the pod cannot have CPUs of its own: "+err.Error(), mostWhyBytes))
		}
		return response, nil
	}
	for _, note := range translated.Notes[:min(len(translated.Notes), mostNotes)] {
		response.Warnings = append(response.Warnings, shown(message.Short("spec: "+note, mostNoteBytes)))
	}
	return response, respond(response, pod, translated.Pod)
}

// translate is a translation whose requests are what the claim may hold.
func (r *Reviewer) translate(pod *corev1.Pod, options translate.Options) (translate.Translated, error) {
	translated, err := translate.Pod(pod, options)
	if err != nil {
		return translated, err
	}
	if r.known.ServerCounts() {
		return translated, errors.New("the scheduler of this cluster counts claims in addition to requests, so the pod would count twice")
	}
	mirrored, ok := r.mirror(translated.Pod, withTemplate{r.known, templateOf(translated.Template, translated.Spec)})
	if !ok {
		return translated, errors.New("it has too many claims and containers")
	}
	// Requests that are raised, too: the template would be that of a pod with other amounts.
	if len(mirrored.Uncounted) > 0 {
		return translated, fmt.Errorf("its claim may hold %s more than its limits, because cores of a node have more threads than the translation assumes", accounting.Text(mirrored.Uncounted))
	}
	translated.Pod = mirrored.Pod
	return translated, nil
}

// respond adds the patch that changes a pod, if it has changed.
func respond(response *admissionv1.AdmissionResponse, before, after *corev1.Pod) error {
	operations := patch(before, after)
	if len(operations) == 0 {
		return nil
	}
	var err error
	if response.Patch, err = json.Marshal(operations); err != nil {
		return fmt.Errorf("render patch: %w", err)
	}
	response.PatchType = new(admissionv1.PatchTypeJSONPatch)
	return nil
}

// knownTo looks up what a pod refers to. If the pod is translated and its template is not
// made yet, that is the one that will be made. One that is stored counts as it is, whoever
// has written it: Kubernetes makes the claim of that one. If another one takes its place
// before, Enforce compares the claim with the pod.
func (r *Reviewer) knownTo(pod *corev1.Pod) Known {
	name := translate.TemplateOf(pod)
	if name == "" || r.known.ResourceClaimTemplate(pod.Namespace, name) != nil {
		return r.known
	}
	how := r.known.Translation()
	if how == nil {
		return r.known
	}
	_, spec, err := translate.Again(pod, how.Options)
	if err != nil {
		return r.known
	}
	return withTemplate{r.known, templateOf(name, spec)}
}

func templateOf(name string, spec resourceapi.ResourceClaimSpec) *resourceapi.ResourceClaimTemplate {
	template := &resourceapi.ResourceClaimTemplate{}
	template.Name, template.Spec.Spec = name, spec
	return template
}

// withTemplate finds a template that is not stored yet.
type withTemplate struct {
	Known
	template *resourceapi.ResourceClaimTemplate
}

// ResourceClaimTemplate implements accounting.Known.
func (w withTemplate) ResourceClaimTemplate(namespace, name string) *resourceapi.ResourceClaimTemplate {
	if name == w.template.Name {
		return w.template
	}
	return w.Known.ResourceClaimTemplate(namespace, name)
}
