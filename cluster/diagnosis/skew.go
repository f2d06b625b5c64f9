package diagnosis

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// newestKubernetes is the newest minor version with which the driver is tested.
const newestKubernetes = "1.37"

// newestScheduler is the newest one whose rules package simulate has.
const newestScheduler = "1.38"

// Versions says which versions of the driver and of Kubernetes run in a cluster.
type Versions struct {
	// Client is the version of the program that asks.
	Client string `json:"client"`
	// Kubernetes is the version of the API server, such as v1.37.1; empty if it is not
	// known.
	Kubernetes string `json:"kubernetes"`
	// Chart is the chart's name and version, such as dra-driver-numa-0.1.0; empty if it is
	// not known. Namespace is where it is installed.
	Chart     string `json:"chart"`
	Namespace string `json:"namespace"`
	// Components are the programs with each of their versions.
	Components []Component `json:"components"`
	// Skew are versions that do not go together. It is empty if all do.
	Skew []Skew `json:"skew"`
	// Unread is what could not be read.
	Unread []Unread `json:"unread"`
}

// Component is one version of a program.
type Component struct {
	Name    string `json:"name"`            // kubelet, kernel, the name of a container runtime, DaemonName or WebhookName
	Version string `json:"version"`         // empty if the program's objects do not say it
	Image   string `json:"image,omitempty"` // of the driver's programs
	// Nodes are the nodes with this version, sorted. The webhook belongs to no node.
	Nodes []string `json:"nodes"`
}

// Skew is a difference of versions, and what it means.
type Skew struct {
	Between  []string `json:"between"` // names of components; kubectl-numa is the client
	Sentence string   `json:"sentence"`
}

// Client is the name of the client in a Skew.
const Client = "kubectl-numa"

// VersionsOf compares the versions of what runs with that of the client.
func VersionsOf(f *Facts, client string) Versions {
	v := Versions{
		Client: client, Kubernetes: f.Version, Namespace: f.Installation.Namespace,
		Components: []Component{}, Skew: []Skew{}, Unread: append([]Unread{}, f.Unread...),
	}
	for _, set := range f.Installation.DaemonSets {
		v.Chart = set.Labels[chartLabel]
	}
	v.Components = append(v.Components, f.kubelets()...)
	v.Components = append(v.Components, f.runtimes()...)
	v.Components = append(v.Components, f.kernels()...)
	v.Components = append(v.Components, f.daemons()...)
	for _, webhook := range f.Installation.webhooks() {
		v.Components = append(v.Components, Component{
			Name: WebhookName, Version: webhook.Labels[versionLabel], Image: firstImage(webhook.Spec.Template.Spec), Nodes: []string{},
		})
	}
	v.Skew = append(v.Skew, f.skewOfKubernetes()...)
	v.Skew = append(v.Skew, f.skewOfDriver(client)...)
	return v
}

// webhooks returns the Deployments that answer reviews.
func (i *Installation) webhooks() []*appsv1.Deployment {
	return slices.DeleteFunc(slices.Clone(i.Deployments), func(d *appsv1.Deployment) bool {
		return Renewer.isOn(d.Labels) || Templates.isOn(d.Labels)
	})
}

// daemons returns each pair of version and image that pods of the daemon have.
func (f *Facts) daemons() []Component { return daemonsOf(f.DaemonPods()) }

func daemonsOf(pods []*corev1.Pod) []Component {
	return grouped(pods, func(pod *corev1.Pod) (Component, string) {
		return Component{Name: DaemonName, Version: pod.Labels[versionLabel], Image: driverImage(pod.Spec)}, pod.Spec.NodeName
	})
}

// kubelets returns each version of the kubelets of nodes with the driver.
func (f *Facts) kubelets() []Component {
	return f.onNodes(func(info corev1.NodeSystemInfo) (name, version string) { return "kubelet", info.KubeletVersion })
}

// runtimes returns each version of the container runtimes of these nodes.
func (f *Facts) runtimes() []Component {
	return f.onNodes(func(info corev1.NodeSystemInfo) (name, version string) {
		name, version, _ = strings.Cut(info.ContainerRuntimeVersion, "://")
		return name, version
	})
}

// kernels returns each version of the kernels of these nodes.
func (f *Facts) kernels() []Component {
	return f.onNodes(func(info corev1.NodeSystemInfo) (name, version string) { return "kernel", info.KernelVersion })
}

// onNodes returns each version of a component of the nodes with the driver. It leaves out
// nodes that do not report one.
func (f *Facts) onNodes(of func(corev1.NodeSystemInfo) (name, version string)) []Component {
	var nodes []*corev1.Node
	objects := f.nodeObjects()
	for _, name := range f.Nodes() {
		if node := objects[name]; node != nil {
			if _, version := of(node.Status.NodeInfo); version != "" {
				nodes = append(nodes, node)
			}
		}
	}
	return grouped(nodes, func(node *corev1.Node) (Component, string) {
		name, version := of(node.Status.NodeInfo)
		return Component{Name: name, Version: version}, node.Name
	})
}

// grouped returns the components of objects, each with its nodes, sorted by name, version
// and image.
func grouped[T any](objects []T, of func(T) (c Component, node string)) []Component {
	type key struct{ name, version, image string }
	found := make(map[key]Component)
	for _, object := range objects {
		c, node := of(object)
		k := key{c.Name, c.Version, c.Image}
		c.Nodes = append(found[k].Nodes, node)
		found[k] = c
	}
	for k, c := range found {
		slices.Sort(c.Nodes)
		found[k] = c
	}
	return slices.SortedFunc(maps.Values(found), func(a, b Component) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Image, b.Image))
	})
}

// driverImage returns the image of the daemon's container.
func driverImage(pod corev1.PodSpec) string {
	for _, container := range pod.Containers {
		if container.Name == DriverContainer {
			return container.Image
		}
	}
	return ""
}

func firstImage(pod corev1.PodSpec) string {
	if len(pod.Containers) == 0 {
		return ""
	}
	return pod.Containers[0].Image
}

func (f *Facts) skewOfKubernetes() (skew []Skew) {
	check := func(component, version, where string) {
		switch {
		case older(version, oldestKubernetes):
			skew = append(skew, Skew{[]string{component}, fmt.Sprintf(
				"%s %s%s is older than 1.36: feature gates that the driver needs are off by default there", component, version, where)})
		case newer(version, newestKubernetes):
			skew = append(skew, Skew{[]string{component}, fmt.Sprintf(
				"%s %s%s is newer than %s, with which this version was tested: simulate and explain place pods as the scheduler of %s does", component, version, where, newestKubernetes, newestScheduler)})
		}
	}
	check("kube-apiserver", f.Version, "")
	for _, kubelet := range f.kubelets() {
		check("kubelet", kubelet.Version, " on "+firstOf(kubelet.Nodes))
	}
	return skew
}

// skewOfDriver compares the client, the daemons and the webhook with the DaemonSet.
func (f *Facts) skewOfDriver(client string) (skew []Skew) {
	for _, set := range f.Installation.DaemonSets {
		want, image := set.Spec.Template.Labels[versionLabel], driverImage(set.Spec.Template.Spec)
		switch isSame, known := sameRelease(client, want); {
		case !known:
			skew = append(skew, Skew{[]string{Client, DaemonName}, fmt.Sprintf(
				"%s is %q and the driver is %q: the versions cannot be compared, because at least one is not that of a release", Client, client, want)})
		case !isSame:
			skew = append(skew, Skew{[]string{Client, DaemonName}, fmt.Sprintf(
				"%s is %s and the driver is %s: slices, pick, lint and drift follow the rules of %s. Use the %s of the driver's version", Client, client, want, client, Client)})
		}
		old := slices.DeleteFunc(f.DaemonPods(), func(pod *corev1.Pod) bool { return isCurrent(pod, set) })
		for _, daemon := range daemonsOf(old) {
			if daemon.Version != want || daemon.Image != image {
				skew = append(skew, Skew{[]string{DaemonName}, fmt.Sprintf(
					"the DaemonSet has version %q and image %s, and pods on %s have version %q and image %s: the rollout has not finished. Claims keep what they hold; %s validate says which pods are not ready",
					want, image, firstOf(daemon.Nodes), daemon.Version, daemon.Image, "kubectl numa")})
			}
		}
		for _, webhook := range f.Installation.webhooks() {
			if got := webhook.Labels[versionLabel]; got != set.Labels[versionLabel] {
				skew = append(skew, Skew{[]string{WebhookName, DaemonName}, fmt.Sprintf(
					"the webhook is from version %q of the chart and the DaemonSet from %q: the webhook may refuse what the driver accepts, or the other way round. Upgrade the whole chart", got, set.Labels[versionLabel])})
			}
		}
	}
	return skew
}

// sameRelease reports whether two versions of the driver are the same release, with or
// without a leading v. It is not known of a version such as "dev", which many builds have.
func sameRelease(a, b string) (isSame, known bool) {
	first, err := version.ParseSemantic(a)
	second, err2 := version.ParseSemantic(b)
	if err != nil || err2 != nil {
		return false, false
	}
	return first.String() == second.String(), true
}

// newer reports whether a version has a newer minor version than another. It returns
// false for a version that cannot be parsed.
func newer(text, than string) bool {
	parsed, err := version.ParseGeneric(text)
	other := version.MustParseGeneric(than)
	return err == nil && (parsed.Major() > other.Major() || parsed.Major() == other.Major() && parsed.Minor() > other.Minor())
}

// firstOf names a few nodes.
func firstOf(nodes []string) string {
	const named = 3
	text := message.First(nodes, named)
	if len(nodes) > named {
		text += " nodes"
	}
	return text
}
