package diagnosis

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// broken breaks something in the facts, and has the finding that is expected: node,
// check, component, setting, expected, detected.
type broken struct {
	what string
	do   func(*Facts)
	want string
}

func (f *Facts) daemonPod() *corev1.Pod { return f.Objects.Pod("dra-numa", "dra-driver-numa-x") }

func (f *Facts) daemonArgs() *[]string {
	return &f.Installation.DaemonSets[0].Spec.Template.Spec.Containers[0].Args
}

func (f *Facts) zone() *resourceapi.Device { return &f.Objects.Slices[0].Spec.Devices[0] }

func breakages() []broken {
	return []broken{
		{
			"no answer", func(f *Facts) { f.Unread = []Unread{{"n1", "kubelet", "configz", "no route to host", false}} },
			"n1 | not-checked | kubelet | configz | readable | no route to host",
		},
		{
			"no right", func(f *Facts) { f.Unread = []Unread{{"", "kubelet", "configz", "nodes is forbidden", true}} },
			" | not-permitted | kubelet | configz | readable | nodes is forbidden",
		},
		{
			"old server", func(f *Facts) { f.Version = "v1.35.9" },
			" | kubernetes-version | kube-apiserver | version | 1.36 or newer | v1.35.9",
		},
		{
			"old kubelet", func(f *Facts) { f.Objects.Nodes[0].Status.NodeInfo.KubeletVersion = "v1.35.0-eks.1" },
			"n1 | kubernetes-version | kubelet | version | 1.36 or newer | v1.35.0-eks.1",
		},
		{
			"gate off", func(f *Facts) { f.Gates["DRAConsumableCapacity"] = false },
			" | feature-gate | kube-apiserver | DRAConsumableCapacity | true | false",
		},
		{
			"old runtime", func(f *Facts) { f.Objects.Nodes[0].Status.NodeInfo.ContainerRuntimeVersion = "containerd://1.7.27" },
			"n1 | runtime-version | containerd | version | 2.0 or newer, which enables CDI by default | 1.7.27",
		},
		{
			"no driver", func(f *Facts) {
				f.Installation.DaemonSets, f.Objects.Pods = nil, slices.DeleteFunc(f.Objects.Pods, func(p *corev1.Pod) bool { return p == f.daemonPod() })
			},
			" | driver-installed | dra-driver-numa | DaemonSet | exactly one with the label app.kubernetes.io/name=dra-driver-numa | 0",
		},
		{"two releases", func(f *Facts) {
			second := f.Installation.DaemonSets[0].DeepCopy()
			second.Name = "other"
			f.Installation.DaemonSets = append(f.Installation.DaemonSets, second)
		}, " | driver-installed | dra-driver-numa | DaemonSet | exactly one with the label app.kubernetes.io/name=dra-driver-numa | 2 dra-numa/dra-driver-numa, dra-numa/other"},
		{
			"no binding", func(f *Facts) {
				f.Installation = Installation{ClusterRoles: f.Installation.ClusterRoles}
			},
			" | driver-installed | dra-driver-numa | ClusterRoleBinding | one with the label app.kubernetes.io/name=dra-driver-numa for one namespace, or --driver-namespace | 0 namespaces",
		},
		{
			"pods of a tenant", func(f *Facts) {
				for _, name := range []string{"d", "c", "b", "a"} {
					pod := f.daemonPod().DeepCopy() // with the same owner
					pod.Namespace, pod.Name, pod.Status = "tenant", name, corev1.PodStatus{}
					f.Objects.Pods = append(f.Objects.Pods, pod)
				}
			},
			" | look-alike | Namespace tenant | pods with the label app.kubernetes.io/name=dra-driver-numa | only those of the DaemonSet in dra-numa | ignored 4 in namespace tenant: a, b, c and 1 more",
		},
		{
			"old image", func(f *Facts) { f.daemonPod().Spec.Containers[1].Image = "d:0" },
			"n1 | driver-version | Pod dra-driver-numa-x | image of keeper | d:1, as in the DaemonSet | d:0",
		},
		{
			"old webhook", func(f *Facts) { f.Installation.Deployments[0].Labels[versionLabel] = "v0" },
			" | driver-version | Deployment dra-driver-numa-webhook | app.kubernetes.io/version | v1, as in the DaemonSet | v0",
		},
		{"not ready", func(f *Facts) {
			f.daemonPod().Status = corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: "Ready", Status: "False", Message: "containers with unready status: [driver]"}}}
		}, "n1 | driver-ready | Pod dra-driver-numa-x | Ready | True | containers with unready status: [driver]"},
		{"crashing", func(f *Facts) {
			f.daemonPod().Status = corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
				Name:                 "driver",
				State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "dra-numa: error: damaged\n"}},
			}}}
		}, "n1 | driver-ready | Pod dra-driver-numa-x | Ready | True | container driver ended with status 1: dra-numa: error: damaged"},
		{"no image", func(f *Facts) {
			f.daemonPod().Status = corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
				Name:  "driver",
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off"}},
			}}}
		}, "n1 | driver-ready | Pod dra-driver-numa-x | Ready | True | ImagePullBackOff Back-off"},
		{
			"no pod", func(f *Facts) { f.Installation.DaemonSets[0].Status.DesiredNumberScheduled = 2 },
			" | driver-ready | DaemonSet dra-driver-numa | pods | 2 | 1",
		},
		{
			"right withdrawn", func(f *Facts) { f.Installation.ClusterRoles[0].Rules = Rights()[:6] },
			" | driver-rights | ServiceAccount dra-numa/dra-driver-numa | ClusterRole | create on events.events.k8s.io | not granted",
		},
		{
			"webhook down", func(f *Facts) { f.Installation.Deployments[0].Status.AvailableReplicas = 1 },
			" | webhook-ready | Deployment dra-driver-numa-webhook | available replicas | 2 | 1",
		},
		{
			"no class", func(f *Facts) {
				f.Objects.Classes = slices.DeleteFunc(f.Objects.Classes, func(c *resourceapi.DeviceClass) bool { return c.Name == "zone.dra.numa" })
			},
			" | device-class | DeviceClass zone.dra.numa | metadata.name | installed | missing",
		},
		{
			"other class", func(f *Facts) { f.Objects.Classes[0].Spec.Selectors = nil },
			" | device-class | DeviceClass gpu.dra.numa | spec.selectors | the driver's selectors | other selectors",
		},
		{
			"no slices", func(f *Facts) { f.Objects.Slices = nil },
			"n1 | zones-published | dra.numa | ResourceSlices | 1 or more | 0",
		},
		{
			"slice missing", func(f *Facts) { f.Objects.Slices[0].Spec.Pool.ResourceSliceCount = 2 },
			"n1 | zones-published | dra.numa | ResourceSlices | 2 or more | 1",
		},
		{"old kernel", func(f *Facts) {
			f.Objects.Nodes[0].Status.NodeInfo.KernelVersion = "6.1.0"
			f.zone().Attributes["dra.numa/exclusivity"] = resourceapi.DeviceAttribute{StringValue: ptr.To("cooperative")}
		}, "n1 | zone-exclusivity | dra.numa | dra.numa/exclusivity | kernel, which needs Linux 6.11 or newer | cooperative, with Linux 6.1.0"},
		{"taint", func(f *Facts) {
			f.zone().Taints = []resourceapi.DeviceTaint{{Key: "dra.numa/fault", Value: "cpus-gone", Effect: "NoSchedule"}}
		}, "n1 | device-taint | device numa-0 | taints | none | dra.numa/fault=cpus-gone:NoSchedule"},
		{"rival", func(f *Facts) {
			device := &f.Objects.Slices[1].Spec.Devices[0]
			device.NodeAllocatableResources = map[corev1.ResourceName]resourceapi.NodeAllocatableResource{"cpu": {Mapping: &resourceapi.NodeAllocatableMapping{}}}
		}, "n1 | other-cpu-driver | dra.net | ResourceSlices | no CPUs on a node with dra.numa | publishes CPUs"},
		{
			"static CPUs", func(f *Facts) { f.Kubelets["n1"] = Kubelet{"static", "None", ""} },
			"n1 | kubelet-manager | kubelet | cpuManagerPolicy | none | static",
		},
		{
			"static memory", func(f *Facts) { f.Kubelets["n1"] = Kubelet{"none", "Static", ""} },
			"n1 | kubelet-manager | kubelet | memoryManagerPolicy | None | Static",
		},
		{
			"reserved, not told", func(f *Facts) { *f.daemonArgs() = nil },
			"n1 | reserved-cpus | dra-driver-numa | reservedCPUs | at least 0-1, the kubelet's reservedSystemCPUs | the first core, because neither reservedCPUs nor kubelet.configFile is set",
		},
		{
			"reserved, told otherwise", func(f *Facts) { *f.daemonArgs() = append(*f.daemonArgs(), "--reserved-cpus=0,8") },
			"n1 | reserved-cpus | dra-driver-numa | reservedCPUs | at least 0-1, the kubelet's reservedSystemCPUs | 0,8",
		},
		{
			"overcommit", func(f *Facts) { f.Objects.Nodes[0].Status.Allocatable["cpu"] = resource.MustParse("1") },
			"n1 | overcommit | Node n1 | cpu | requests and claims of at most 1 | 1 too much: pods request 2, and claims hold 0 that no pod requests",
		},
		{
			"pod without requests", func(f *Facts) { f.Objects.Pod("default", "p").Spec.Containers[0].Resources.Requests = nil },
			"n1 | uncounted-pod | Pod default/p | requests.cpu | 2 more, because its claims hold 2 | 0",
		},
		{
			"hugepages without a claim", func(f *Facts) {
				pod := f.daemonPod()
				pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"hugepages-2Mi": resource.MustParse("4Mi")}
			},
			"n1 | unclaimed-hugepages | Pod dra-numa/dra-driver-numa-x | limits.hugepages-2Mi of driver | a claim for hugepages of a zone | 4Mi without a claim, which may be those of a claim",
		},
	}
}
