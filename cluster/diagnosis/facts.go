// Package diagnosis finds what is wrong with a cluster and its nodes as far as
// this driver depends on it, in facts that somebody else has read: package collect
// from a cluster, package bundle from a file. It reads and changes nothing itself.
package diagnosis

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
)

// Labels of what the chart installs.
const (
	// NameLabel says what an object is part of.
	NameLabel = "app.kubernetes.io/name"
	// DaemonName is its value for what belongs to the daemon.
	DaemonName = "dra-driver-numa"
	// WebhookName is its value for what belongs to the webhook.
	WebhookName = "dra-driver-numa-webhook"

	versionLabel = "app.kubernetes.io/version" // of the chart's application
)

// Facts are what is known of a cluster. A list is empty, and a pointer or map nil,
// if there is nothing; Unread says so if it was not seen.
type Facts struct {
	// Version is the API server's, such as v1.37.1.
	Version string
	// Gates are the API server's feature gates.
	Gates map[string]bool
	// Objects are those that decide where pods go; the daemon's pods are among them.
	Objects *snapshot.Snapshot
	// Installation is what the chart made.
	Installation Installation
	// Kubelets are the settings in force, by node.
	Kubelets map[string]Kubelet
	// States are what nodes have of claims, by node; only a bundle has them.
	States map[string]*nodestate.State
	// Unread is what should be here and is not.
	Unread []Unread
	// Missing is the same of what Validate does not look at: what a bundle has
	// beside, States among it.
	Missing []Unread
}

// Installation is what the chart made, whatever the release is called.
type Installation struct {
	DaemonSets   []*appsv1.DaemonSet          `json:"daemonSets"`
	Deployments  []*appsv1.Deployment         `json:"deployments"` // of the webhook
	ClusterRoles []*rbacv1.ClusterRole        `json:"clusterRoles"`
	Bindings     []*rbacv1.ClusterRoleBinding `json:"clusterRoleBindings"`
	ConfigMaps   []*corev1.ConfigMap          `json:"configMaps"` // with a NodeConfig; only a bundle has them
}

// Kubelet is what a kubelet's endpoint configz says, as far as it matters here
// (KubeletConfiguration of kubelet.config.k8s.io/v1beta1).
type Kubelet struct {
	CPUManagerPolicy    string `json:"cpuManagerPolicy"`
	MemoryManagerPolicy string `json:"memoryManagerPolicy"`
	ReservedSystemCPUs  string `json:"reservedSystemCPUs"`
}

// Unread is something that could not be read.
type Unread struct {
	Node      string `json:"node,omitempty"` // empty: of the cluster, or of every node
	Component string `json:"component"`      // whose it is
	Setting   string `json:"setting"`        // what it is
	Why       string `json:"why"`

	// Denied says that who asked has no right to it; else something is wrong with
	// what was asked.
	Denied bool `json:"denied,omitempty"`
}

// Nodes are the names of the nodes that have the daemon or zones, sorted.
func (f *Facts) Nodes() []string {
	names := make(map[string]bool)
	for _, pod := range f.DaemonPods() {
		names[pod.Spec.NodeName] = true
	}
	for _, slice := range f.zones() {
		names[*slice.Spec.NodeName] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// DaemonPods are those that have a node and have not ended, by node and name.
func (f *Facts) DaemonPods() (pods []*corev1.Pod) {
	for _, pod := range f.Objects.Pods {
		if pod.Labels[NameLabel] == DaemonName && pod.Spec.NodeName != "" && !snapshot.Finished(pod) {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Spec.NodeName, b.Spec.NodeName), cmp.Compare(a.Name, b.Name))
	})
	return pods
}

// zones are the slices of this driver; all of them name a node.
func (f *Facts) zones() (list []*resourceapi.ResourceSlice) {
	for _, slice := range f.Objects.Slices {
		if slice.Spec.Driver == driver.Name && slice.Spec.NodeName != nil {
			list = append(list, slice)
		}
	}
	return list
}

// Argument is the value of a flag that the container has, given as --name=value.
func Argument(container corev1.Container, name string) (value string, given bool) {
	for _, arg := range container.Args {
		if value, found := strings.CutPrefix(arg, "--"+name+"="); found {
			return value, true
		}
	}
	return "", false
}

// daemon is the container of the driver in the DaemonSet; without one it has no
// arguments.
func (i Installation) daemon() corev1.Container {
	for _, set := range i.DaemonSets {
		for _, container := range set.Spec.Template.Spec.Containers {
			if container.Name == DriverContainer {
				return container
			}
		}
	}
	return corev1.Container{}
}

// Names in the pods of the daemon, and in its ConfigMap.
const (
	// DriverContainer is the daemon's.
	DriverContainer = "driver"
	// KeeperContainer is beside it, of the same image, and sees no CDI specs.
	KeeperContainer = "keeper"
	// ConfigKey has the NodeConfig.
	ConfigKey = "node.yaml"
)
