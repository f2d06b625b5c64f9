package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

func driverInstalled(f *Facts) []Finding {
	sets := f.Installation.DaemonSets
	if len(sets) == 1 || len(sets) == 0 && (f.isUnread("DaemonSets") || f.isUnread("ClusterRoleBindings")) {
		return nil
	}
	if f.Installation.Namespace == "" {
		bound := f.Installation.boundNamespaces()
		return []Finding{{
			Component: DaemonName, Setting: "ClusterRoleBinding",
			Expected: "one with the labels " + Daemon.Selector() + " for one namespace, or --driver-namespace",
			Detected: strings.TrimSpace(fmt.Sprintf("%d namespaces %s", len(bound), strings.Join(bound, ", "))),
		}}
	}
	names := []string{}
	for _, set := range sets {
		names = append(names, set.Namespace+"/"+set.Name)
	}
	return []Finding{{
		Component: DaemonName, Setting: "DaemonSet", Expected: "exactly one with the labels " + Daemon.Selector(),
		Detected: strings.TrimSpace(fmt.Sprintf("%d %s", len(names), strings.Join(names, ", "))),
	}}
}

func (f *Facts) isUnread(setting string) bool {
	return slices.ContainsFunc(f.Unread, func(u Unread) bool { return u.Setting == setting })
}

// driverVersion compares what runs with what is installed. It finds rollouts that do
// not finish, and charts that were upgraded only in part.
func driverVersion(f *Facts) (findings []Finding) {
	for _, set := range f.Installation.DaemonSets {
		for _, pod := range f.DaemonPods() {
			if pod.Namespace == set.Namespace && !isCurrent(pod, set) {
				findings = append(findings, otherImages(pod, set.Spec.Template.Spec)...)
			}
		}
		for _, webhook := range f.Installation.Deployments {
			want, got := set.Labels[versionLabel], webhook.Labels[versionLabel]
			if webhook.Namespace == set.Namespace && want != got {
				findings = append(findings, Finding{
					Component: "Deployment " + webhook.Name, Setting: versionLabel, Expected: want + ", as in the DaemonSet", Detected: got,
				})
			}
		}
	}
	return findings
}

func otherImages(pod *corev1.Pod, want corev1.PodSpec) (findings []Finding) {
	for _, container := range want.Containers {
		for _, running := range pod.Spec.Containers {
			if running.Name == container.Name && running.Image != container.Image {
				findings = append(findings, Finding{
					Node: pod.Spec.NodeName, Component: "Pod " + pod.Name, Setting: "image of " + container.Name,
					Expected: container.Image + ", as in the DaemonSet", Detected: running.Image,
				})
			}
		}
	}
	return findings
}

func driverReady(f *Facts) (findings []Finding) {
	pods := f.DaemonPods()
	for _, pod := range pods {
		if ready, why := podReady(pod); !ready {
			findings = append(findings, Finding{
				Node: pod.Spec.NodeName, Component: "Pod " + pod.Name, Setting: "Ready", Expected: "True", Detected: why,
			})
		}
	}
	for _, set := range f.Installation.DaemonSets {
		if lacking := set.Status.DesiredNumberScheduled - set.Status.CurrentNumberScheduled; lacking > 0 {
			expected, detected := f.Installation.explained("DaemonSet", set.Name, fmt.Sprint(set.Status.DesiredNumberScheduled), fmt.Sprint(set.Status.CurrentNumberScheduled))
			findings = append(findings, Finding{Component: "DaemonSet " + set.Name, Setting: "pods", Expected: expected, Detected: detected})
		}
	}
	return findings
}

// podReady reports whether the pod is ready, and why not. The reason is that of a
// container that ended, otherwise that of the kubelet.
func podReady(pod *corev1.Pod) (ready bool, why string) {
	why = "not started yet"
	for _, condition := range pod.Status.Conditions {
		if condition.Type != corev1.PodReady {
			continue
		}
		if condition.Status == corev1.ConditionTrue {
			return true, ""
		}
		why = condition.Message
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		ended := status.State.Terminated
		if ended == nil || ended.ExitCode == 0 {
			ended = status.LastTerminationState.Terminated
		}
		if waiting := status.State.Waiting; !status.Ready && waiting != nil && ended == nil && waiting.Reason != "PodInitializing" {
			return false, strings.TrimSpace(waiting.Reason + " " + waiting.Message)
		}
		if !status.Ready && ended != nil && ended.ExitCode != 0 {
			return false, message.OneLine(fmt.Sprintf("container %s ended with status %d: %s", status.Name, ended.ExitCode, ended.Message))
		}
	}
	return false, why
}

// Rights returns the permissions that the daemon's service account needs, as the chart
// grants them.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{resourceapi.GroupName}, Resources: []string{"resourceslices"}, Verbs: []string{"list", "watch", "create", "update", "delete"}},
		{APIGroups: []string{resourceapi.GroupName}, Resources: []string{"resourceclaims"}, Verbs: []string{"get"}},
		{APIGroups: []string{resourceapi.GroupName}, Resources: []string{"resourceclaims/status"}, Verbs: []string{"update"}},
		{APIGroups: []string{resourceapi.GroupName}, Resources: []string{"resourceclaims/driver"}, ResourceNames: []string{driver.Name}, Verbs: []string{"associated-node:update"}},
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}},
		{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create"}},
	}
}

// driverRights checks the ClusterRoles that are bound to the daemon's service account by
// name. Without rbac.create, an administrator has made them: without the chart's labels, they
// are not known.
func driverRights(f *Facts) (findings []Finding) {
	if f.isUnread("ClusterRoles") || f.isUnread("ClusterRoleBindings") || len(f.Installation.Bindings) == 0 {
		return nil
	}
	for _, set := range f.Installation.DaemonSets {
		account := set.Spec.Template.Spec.ServiceAccountName
		_, lacking := validation.Covers(f.rulesOf(set.Namespace, account), Rights())
		for _, rule := range lacking {
			findings = append(findings, Finding{
				Component: "ServiceAccount " + set.Namespace + "/" + account, Setting: "ClusterRole",
				Expected: fmt.Sprintf("%s on %s", strings.Join(rule.Verbs, ","), strings.TrimSuffix(strings.Join(rule.Resources, ",")+"."+strings.Join(rule.APIGroups, ","), ".")),
				Detected: "not granted",
			})
		}
	}
	return findings
}

func (f *Facts) rulesOf(namespace, account string) (rules []rbacv1.PolicyRule) {
	for _, binding := range f.Installation.Bindings {
		if !slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool {
			return s.Kind == rbacv1.ServiceAccountKind && s.Namespace == namespace && s.Name == account
		}) {
			continue
		}
		for _, role := range f.Installation.ClusterRoles {
			if binding.RoleRef.Kind == "ClusterRole" && role.Name == binding.RoleRef.Name {
				rules = append(rules, role.Rules...)
			}
		}
	}
	return rules
}

func webhookReady(f *Facts) (findings []Finding) {
	for _, webhook := range f.Installation.Deployments {
		if want, got := wantedReplicas(webhook), webhook.Status.AvailableReplicas; got < want {
			expected, detected := f.Installation.explained("Deployment", webhook.Name, fmt.Sprint(want), fmt.Sprint(got))
			findings = append(findings, Finding{Component: "Deployment " + webhook.Name, Setting: "available replicas", Expected: expected, Detected: detected})
		}
	}
	return findings
}

// deviceClass compares the classes that come with the driver. It ignores other classes.
func deviceClass(f *Facts) (findings []Finding) {
	shipped, err := deviceclasses.All()
	if err != nil {
		panic(err) // impossible: they are embedded, and a test reads them
	}
	for _, want := range shipped {
		i := slices.IndexFunc(f.Objects.Classes, func(c *resourceapi.DeviceClass) bool { return c.Name == want.Name })
		finding := Finding{Component: "DeviceClass " + want.Name, Setting: "spec.selectors", Expected: "the driver's selectors", Detected: "other selectors"}
		switch {
		case i < 0:
			finding.Setting, finding.Expected, finding.Detected = "metadata.name", "installed", "missing"
		case equality.Semantic.DeepEqual(f.Objects.Classes[i].Spec.Selectors, want.Spec.Selectors):
			continue
		}
		findings = append(findings, finding)
	}
	return findings
}
