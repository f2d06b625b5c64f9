package release

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What the programs that run hooks write to the objects that they install, hooks excepted.
// Both marks of Argo CD are needed: it can track objects by a label that the chart has, too.
const (
	helmRelease  = "meta.helm.sh/release-name"      // an annotation; pkg/action/validate.go of Helm 4
	argoTracking = "argocd.argoproj.io/tracking-id" // an annotation; docs/user-guide/resource_tracking.md of Argo CD
	argoManager  = "argocd-controller"              // the manager of its fields; gitops-engine/pkg/utils/kube
)

// RunsHooks is whether the program that has installed the DaemonSet runs the chart's hooks when
// it uninstalls it. Other programs apply them together with the DaemonSet.
func RunsHooks(daemons *appsv1.DaemonSet) bool {
	_, helm := daemons.Annotations[helmRelease]
	_, argo := daemons.Annotations[argoTracking]
	return helm || argo || slices.ContainsFunc(daemons.ManagedFields, func(f metav1.ManagedFieldsEntry) bool { return f.Manager == argoManager })
}
