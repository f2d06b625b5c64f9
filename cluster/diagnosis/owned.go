package diagnosis

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// Anyone who may create pods can give them the chart's labels. This file decides which
// objects are the driver's.

// Locate finds the namespace of the driver, and drops objects of other namespaces. named
// is the namespace that the user names; if it is empty, the namespace is that of the
// service accounts of the chart's ClusterRoleBinding, which only administrators can
// create.
func (i *Installation) Locate(named string) error {
	i.Namespace = named
	if named == "" {
		found := i.boundNamespaces()
		if len(found) != 1 {
			return fmt.Errorf("find the namespace of the driver: want a ClusterRoleBinding with the labels %s for service accounts of one namespace, found %d namespaces %s",
				Daemon.Selector(), len(found), strings.Join(found, ", "))
		}
		i.Namespace = found[0]
	}
	i.DaemonSets = within(i.Namespace, i.DaemonSets)
	i.Deployments = within(i.Namespace, i.Deployments)
	i.ConfigMaps = within(i.Namespace, i.ConfigMaps)
	return nil
}

// boundNamespaces returns the namespaces of the daemon's service accounts, sorted.
func (i *Installation) boundNamespaces() []string {
	names := make(map[string]bool)
	for _, binding := range i.Bindings {
		for _, subject := range binding.Subjects {
			if subject.Kind == rbacv1.ServiceAccountKind {
				names[subject.Namespace] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func within[T metav1.Object](namespace string, objects []T) (list []T) {
	for _, object := range objects {
		if object.GetNamespace() == namespace {
			list = append(list, object)
		}
	}
	return list
}

// Program returns which program of the driver the pod runs, DaemonName or WebhookName.
// It returns "" for all other pods. A pod of the driver is in the driver's namespace, and
// its controller is the DaemonSet or a ReplicaSet of the webhook, its renewer or what
// makes templates, by UID.
// Labels decide nothing.
func (i *Installation) Program(pod *corev1.Pod) string {
	controller := metav1.GetControllerOf(pod)
	if i.Namespace == "" || pod.Namespace != i.Namespace || controller == nil || controller.UID == "" {
		return ""
	}
	switch {
	case slices.ContainsFunc(i.DaemonSets, func(set *appsv1.DaemonSet) bool { return set.UID == controller.UID }):
		return DaemonName
	case slices.ContainsFunc(i.ReplicaSets, func(set *appsv1.ReplicaSet) bool { return set.UID == controller.UID }):
		return WebhookName
	}
	return ""
}

// LookAlikes are pods of one namespace that have the daemon's labels and are not the
// driver's. Nothing that they say is believed.
type LookAlikes struct {
	Namespace string
	Pods      []string // names, sorted
}

// String returns the number of pods and the first names.
func (l LookAlikes) String() string {
	return fmt.Sprintf("%d in namespace %s: %s", len(l.Pods), l.Namespace, message.First(l.Pods, 3))
}

// LookAlikes returns the look-alikes of the daemon's pods, sorted by namespace. If it is
// not known which pods are the daemon's, it returns none.
func (f *Facts) LookAlikes() (list []LookAlikes) {
	if f.Installation.Namespace == "" || f.isUnread("DaemonSets") {
		return nil
	}
	pods := make(map[string][]string)
	for _, pod := range f.Objects.Pods {
		if Daemon.isOn(pod.Labels) && f.Installation.Program(pod) != DaemonName {
			pods[pod.Namespace] = append(pods[pod.Namespace], pod.Name)
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(pods)) {
		slices.Sort(pods[namespace])
		list = append(list, LookAlikes{namespace, pods[namespace]})
	}
	return list
}

func lookAlike(f *Facts) (findings []Finding) {
	for _, found := range f.LookAlikes() {
		findings = append(findings, Finding{
			Component: "Namespace " + found.Namespace, Setting: "pods with the labels " + Daemon.Selector(),
			Expected: "only those of the DaemonSet in " + f.Installation.Namespace, Detected: "ignored " + found.String(),
		})
	}
	return findings
}
