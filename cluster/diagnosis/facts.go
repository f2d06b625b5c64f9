// Package diagnosis finds problems of a cluster and its nodes that affect this driver.
// It works on facts: package collect reads them from a cluster, and package bundle
// reads them from a file. The package itself reads and changes nothing.
//
// It is larger than other packages because all checks of validate are here: a few dozen
// functions of the same facts, none of which needs another.
package diagnosis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
)

// Labels of objects that the chart installs. No value of the chart changes these: the names
// of objects, and the labels app.kubernetes.io/name and app.kubernetes.io/instance, are the
// user's.
const (
	// PartOfLabel is the label that all objects of the chart have, except DeviceClasses.
	PartOfLabel = "app.kubernetes.io/part-of"
	// PartOf is the value of PartOfLabel.
	PartOf = "dra-driver-numa"
	// ComponentLabel is the label with the part of the driver that an object belongs to.
	ComponentLabel = "app.kubernetes.io/component"

	versionLabel = "app.kubernetes.io/version" // version of the program
	chartLabel   = "helm.sh/chart"             // name and version of the chart, only of DaemonSets
)

// Program is a program that runs as long as the driver is installed: the value of
// ComponentLabel.
type Program string

// The programs whose objects are read.
const (
	Daemon    Program = "daemon"
	Webhook   Program = "webhook"
	Renewer   Program = "webhook-renewer" // of the webhook's certificate
	Templates Program = "templates"       // of pods that the webhook has translated
)

// Names of the programs in answers.
const (
	DaemonName  = "dra-driver-numa"
	WebhookName = "dra-driver-numa-webhook"
)

// Selector selects the objects of the program by their labels. A tenant can write the same
// labels on objects of his namespace.
func (p Program) Selector() string {
	return PartOfLabel + "=" + PartOf + "," + ComponentLabel + "=" + string(p)
}

// WebhookSelector selects the objects of the webhook, of its renewer and of what makes
// templates.
func WebhookSelector() string {
	return fmt.Sprintf("%s=%s,%s in (%s,%s,%s)", PartOfLabel, PartOf, ComponentLabel, Webhook, Renewer, Templates)
}

// isOn reports whether Selector selects an object with the labels.
func (p Program) isOn(labels map[string]string) bool {
	return labels[PartOfLabel] == PartOf && labels[ComponentLabel] == string(p)
}

// Facts is what is known about a cluster. A list is empty, and a pointer or a map is
// nil, if there is nothing. Unread says what could not be read.
type Facts struct {
	// Time is when the facts were read.
	Time time.Time
	// Version is the version of the API server, such as v1.37.1.
	Version string
	// Gates are the feature gates of the API server.
	Gates map[string]bool
	// Objects are the objects that decide where pods go, including the daemon's pods.
	Objects *snapshot.Snapshot
	// Installation is what the chart installed.
	Installation Installation
	// Policies are the configurations of NRI resource policies, such as BalloonsPolicy
	// kube-system/default.
	Policies []string
	// Kubelets are the effective settings of the kubelets, by node.
	Kubelets map[string]Kubelet
	// States are the states of the nodes, by node. Bundles have them, and clusters whose
	// nodes were asked.
	States map[string]*nodestate.State
	// Unread is what Validate needs and could not read.
	Unread []Unread
	// Missing is additional content of a bundle that could not be read, such as States.
	// Validate does not need it.
	Missing []Unread
}

// Installation is what the chart installed, for any name of the release. Locate removes
// what is in other namespaces.
type Installation struct {
	Namespace    string                       `json:"namespace"` // of the driver; empty if it is not known
	DaemonSets   []*appsv1.DaemonSet          `json:"daemonSets"`
	Deployments  []*appsv1.Deployment         `json:"deployments"` // of the webhook, its renewer and what makes templates
	ClusterRoles []*rbacv1.ClusterRole        `json:"clusterRoles"`
	Bindings     []*rbacv1.ClusterRoleBinding `json:"clusterRoleBindings"`
	ConfigMaps   []*corev1.ConfigMap          `json:"configMaps"` // with a NodeConfig; only in a bundle
	ReplicaSets  []*appsv1.ReplicaSet         `json:"-"`          // of Deployments; only while a bundle is gathered
	// PodSecurity is the Pod Security level that the namespace enforces; empty if it has no label.
	PodSecurity string `json:"podSecurity,omitempty"`
	// Refusals are read only if LacksPods.
	Refusals []Refusal `json:"refusals,omitempty"`
}

// Kubelet is a part of what the kubelet's endpoint configz reports
// (KubeletConfiguration of kubelet.config.k8s.io/v1beta1).
type Kubelet struct {
	CPUManagerPolicy    string `json:"cpuManagerPolicy"`
	MemoryManagerPolicy string `json:"memoryManagerPolicy"`
	ReservedSystemCPUs  string `json:"reservedSystemCPUs"`

	TopologyManagerPolicy string              `json:"topologyManagerPolicy,omitempty"`
	ReservedMemory        []MemoryReservation `json:"reservedMemory,omitempty"`
	FeatureGates          map[string]bool     `json:"featureGates,omitempty"` // those that are set
}

// MemoryReservation is an entry of the kubelet's reservedMemory.
type MemoryReservation struct {
	NumaNode int                 `json:"numaNode"`
	Limits   corev1.ResourceList `json:"limits"`
}

// Unread is something that could not be read.
type Unread struct {
	Node      string `json:"node,omitempty"` // empty for the cluster, or for all nodes
	Component string `json:"component"`      // component that has the setting
	Setting   string `json:"setting"`        // name of the setting
	Why       string `json:"why"`

	// Denied means that the user is not allowed to read it. Otherwise something is
	// wrong with the component.
	Denied bool `json:"denied,omitempty"`
	// Silent means that the node did not answer in time.
	Silent bool `json:"silent,omitempty"`
}

// Silent returns the nodes that did not answer in time.
func (f *Facts) Silent() map[string]bool {
	nodes := make(map[string]bool)
	for _, unread := range slices.Concat(f.Unread, f.Missing) {
		if unread.Silent && unread.Node != "" {
			nodes[unread.Node] = true
		}
	}
	return nodes
}

// Nodes returns the names of the nodes with a pod of the daemon or with zones, sorted.
func (f *Facts) Nodes() []string { return slices.Sorted(maps.Keys(f.nodeNames())) }

// nodeNames is Nodes as a set.
func (f *Facts) nodeNames() map[string]bool {
	names := make(map[string]bool)
	for _, pod := range f.DaemonPods() {
		names[pod.Spec.NodeName] = true
	}
	for _, slice := range f.zones() {
		names[*slice.Spec.NodeName] = true
	}
	return names
}

// nodeObjects returns the Nodes by name.
func (f *Facts) nodeObjects() map[string]*corev1.Node {
	nodes := make(map[string]*corev1.Node, len(f.Objects.Nodes))
	for _, node := range f.Objects.Nodes {
		nodes[node.Name] = node
	}
	return nodes
}

// DaemonPods returns the pods of the DaemonSet that have a node and have not ended,
// sorted by node and name.
func (f *Facts) DaemonPods() (pods []*corev1.Pod) {
	for _, pod := range f.Objects.Pods {
		if f.Installation.Program(pod) == DaemonName && pod.Spec.NodeName != "" && !snapshot.Finished(pod) {
			pods = append(pods, pod)
		}
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Spec.NodeName, b.Spec.NodeName), cmp.Compare(a.Name, b.Name))
	})
	return pods
}

// zones returns the slices of this driver. All of them name a node.
func (f *Facts) zones() (list []*resourceapi.ResourceSlice) {
	for _, slice := range f.Objects.Slices {
		if slice.Spec.Driver == driver.Name && slice.Spec.NodeName != nil {
			list = append(list, slice)
		}
	}
	return list
}

// Argument returns the value of a flag of the container, written as --name=value. If there
// are several, the last one counts.
func Argument(container corev1.Container, name string) (value string, given bool) {
	for _, arg := range slices.Backward(container.Args) {
		if value, found := strings.CutPrefix(arg, "--"+name+"="); found {
			return value, true
		}
	}
	return "", false
}

// daemon returns the daemon's container in the DaemonSet. Without a DaemonSet, it
// returns a container without arguments.
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

// nodeConfig returns the NodeConfig of the daemon, which is empty without one. known says whether
// the facts have it.
func (i Installation) nodeConfig() (config deviceclasses.NodeConfig, known bool) {
	if _, given := Argument(i.daemon(), "config"); !given {
		return deviceclasses.NodeConfig{}, true
	}
	for _, object := range i.ConfigMaps {
		if text, is := object.Data[ConfigKey]; is {
			config, err := deviceclasses.DecodeNodeConfig([]byte(text))
			return config, err == nil
		}
	}
	return deviceclasses.NodeConfig{}, false
}

// Names of the daemon's containers, and of the key in its ConfigMap.
const (
	// DriverContainer is the container of the daemon.
	DriverContainer = "driver"
	// KeeperContainer runs in the same pod with the same image, and sees no CDI specs.
	KeeperContainer = "keeper"
	// ConfigKey is the key of the NodeConfig.
	ConfigKey = "node.yaml"
)
