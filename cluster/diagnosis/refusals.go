package diagnosis

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// This file decides whether the API server lets the driver have its pods. Platforms forbid
// some pods in most namespaces: docs/platforms.md.

// RefusedPod is the reason of an event about an object whose pods the API server refuses.
// Source: k8s.io/kubernetes/pkg/controller, FailedCreatePodReason.
const RefusedPod = "FailedCreate"

// PodSecurityLabel is the label of a namespace with the Pod Security level of its pods.
// Source: k8s.io/pod-security-admission/api.
const PodSecurityLabel = "pod-security.kubernetes.io/enforce"

// Refusal is why the API server last refused a pod of an object.
type Refusal struct {
	Kind    string `json:"kind"` // DaemonSet or ReplicaSet
	Name    string `json:"name"`
	Message string `json:"message"`
}

// AddRefusal keeps the newest event of each object whose pods are refused.
func (i *Installation) AddRefusal(event *corev1.Event) {
	of := event.InvolvedObject
	for n := range i.Refusals {
		if i.Refusals[n].Kind == of.Kind && i.Refusals[n].Name == of.Name {
			i.Refusals[n].Message = event.Message
			return
		}
	}
	i.Refusals = append(i.Refusals, Refusal{Kind: of.Kind, Name: of.Name, Message: event.Message})
}

// LacksPods reports whether a DaemonSet or a Deployment of the driver has fewer pods than it
// should have. Only then it matters whether pods are refused: events stay for an hour.
func (i *Installation) LacksPods() bool {
	for _, set := range i.DaemonSets {
		if set.Status.CurrentNumberScheduled < set.Status.DesiredNumberScheduled {
			return true
		}
	}
	for _, deployment := range i.Deployments {
		if deployment.Status.AvailableReplicas < wantedReplicas(deployment) {
			return true
		}
	}
	return false
}

func wantedReplicas(deployment *appsv1.Deployment) int32 {
	if deployment.Spec.Replicas == nil {
		return 1
	}
	return *deployment.Spec.Replicas
}

// remedies are the settings with which the API server accepts pods that it refuses with a
// text. Sources: apiserver/pkg/admission/plugin/resourcequota, pod-security-admission/admission,
// and openshift/apiserver-library-go, securitycontextconstraints/sccadmission.
func remedies() [][2]string {
	return [][2]string{
		{"insufficient quota to match these scopes", "resourceQuota.create in the chart"},
		{"violates PodSecurity", "the label " + PodSecurityLabel + "=privileged on the namespace"},
		{"unable to validate against any security context constraint", "rbac.scc in the chart"},
	}
}

// explained adds to what is expected what accepts the pods of an object, and to what is
// detected why they are refused. It adds nothing if they are not refused.
func (i *Installation) explained(kind, name, expected, detected string) (string, string) {
	for _, refusal := range i.Refusals {
		of := refusal.Name
		if kind == "Deployment" && refusal.Kind == "ReplicaSet" {
			of = of[:max(0, strings.LastIndexByte(of, '-'))] // without the hash of the template
		} else if refusal.Kind != kind {
			continue
		}
		if of != name {
			continue
		}
		for _, remedy := range remedies() {
			if strings.Contains(refusal.Message, remedy[0]) {
				expected += ", with " + remedy[1]
			}
		}
		detected += "; the API server refuses the others: " + message.Short(message.OneLine(strings.TrimPrefix(refusal.Message, "Error creating: ")), 400)
	}
	return expected, detected
}

// podSecurity finds a namespace whose Pod Security level refuses the daemon's pods. Those
// that it has stay until they are replaced.
func podSecurity(f *Facts) []Finding {
	switch level := f.Installation.PodSecurity; level {
	case "", "privileged":
		return nil
	default:
		return []Finding{{
			Component: "Namespace " + f.Installation.Namespace, Setting: PodSecurityLabel,
			Expected: "privileged, because the pods of the daemon mount folders of the node", Detected: level,
		}}
	}
}
