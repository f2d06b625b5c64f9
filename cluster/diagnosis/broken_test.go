package diagnosis

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
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

// revisions gives the DaemonSet and its pod these template generations.
func (f *Facts) revisions(set, pod string) {
	f.Installation.DaemonSets[0].Annotations = map[string]string{"deprecated.daemonset.template.generation": set}
	f.daemonPod().Labels["pod-template-generation"] = pod
}

// refuse has an event say that the API server refuses pods of an object.
func (f *Facts) refuse(kind, name, message string) {
	f.Installation.AddRefusal(&corev1.Event{InvolvedObject: corev1.ObjectReference{Kind: kind, Name: name}, Message: message})
}

func (f *Facts) zone() *resourceapi.Device { return &f.Objects.Slices[0].Spec.Devices[0] }

// tune has the status of the claim say that it asks for these PerformanceSettings, in JSON.
func (f *Facts) tune(asked string) {
	f.Objects.Claims[0].Status.Devices = []resourceapi.AllocatedDeviceStatus{{
		Driver: "dra.numa", Pool: "n1", Device: "numa-0", Data: &runtime.RawExtension{Raw: []byte(`{"cpus": "2-3", "mems": "0", "performance": {"asked": ` + asked + `}}`)},
	}}
}

// schedulerPod is a pod of the control plane, if it is in kube-system.
func schedulerPod(namespace string, arguments ...string) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Name, pod.Namespace, pod.Labels = "kube-scheduler-a", namespace, map[string]string{"component": "kube-scheduler"}
	pod.Spec.NodeName = "control-plane"
	pod.Spec.Containers = []corev1.Container{{Name: "kube-scheduler", Command: append([]string{"kube-scheduler"}, arguments...)}}
	return pod
}

func breakages() []broken {
	return append(differences(), []broken{
		{
			"no answer", func(f *Facts) {
				f.Unread = []Unread{{Node: "n1", Component: "kubelet", Setting: "configz", Why: "no route to host", Denied: false}}
			},
			"n1 | not-checked | kubelet | configz | readable | no route to host",
		},
		{
			"no right", func(f *Facts) {
				f.Unread = []Unread{{Node: "", Component: "kubelet", Setting: "configz", Why: "nodes is forbidden", Denied: true}}
			},
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
			" | driver-installed | dra-driver-numa | DaemonSet | exactly one with the labels app.kubernetes.io/part-of=dra-driver-numa,app.kubernetes.io/component=daemon | 0",
		},
		{"two releases", func(f *Facts) {
			second := f.Installation.DaemonSets[0].DeepCopy()
			second.Name = "other"
			f.Installation.DaemonSets = append(f.Installation.DaemonSets, second)
		}, " | driver-installed | dra-driver-numa | DaemonSet | exactly one with the labels app.kubernetes.io/part-of=dra-driver-numa,app.kubernetes.io/component=daemon | 2 dra-numa/dra-driver-numa, dra-numa/other"},
		{
			"no binding", func(f *Facts) {
				f.Installation = Installation{ClusterRoles: f.Installation.ClusterRoles}
			},
			" | driver-installed | dra-driver-numa | ClusterRoleBinding | one with the labels app.kubernetes.io/part-of=dra-driver-numa,app.kubernetes.io/component=daemon for one namespace, or --driver-namespace | 0 namespaces",
		},
		{
			"pods of a tenant", func(f *Facts) {
				for _, name := range []string{"d", "c", "b", "a"} {
					pod := f.daemonPod().DeepCopy() // with the same owner
					pod.Namespace, pod.Name, pod.Status = "tenant", name, corev1.PodStatus{}
					f.Objects.Pods = append(f.Objects.Pods, pod)
				}
			},
			" | look-alike | Namespace tenant | pods with the labels app.kubernetes.io/part-of=dra-driver-numa,app.kubernetes.io/component=daemon | only those of the DaemonSet in dra-numa | ignored 4 in namespace tenant: a, b, c and 1 more",
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
			"pods refused for their priority class", func(f *Facts) {
				f.Installation.DaemonSets[0].Status.DesiredNumberScheduled = 2
				f.refuse("DaemonSet", "dra-driver-numa", "old news")
				f.refuse("DaemonSet", "dra-driver-numa", "Error creating: insufficient quota to match these scopes: [{PriorityClass In [system-node-critical system-cluster-critical]}]")
				f.refuse("ReplicaSet", "dra-driver-numa-webhook-5d5f", "that of another object")
			},
			" | driver-ready | DaemonSet dra-driver-numa | pods | 2, with resourceQuota.create in the chart | 1; the API server refuses the others: insufficient quota to match these scopes: [{PriorityClass In [system-node-critical system-cluster-critical]}]",
		},
		{
			"pods refused for their rights", func(f *Facts) {
				f.Installation.DaemonSets[0].Status.DesiredNumberScheduled = 2
				f.refuse("DaemonSet", "dra-driver-numa", `Error creating: pods "dra-driver-numa-" is forbidden: violates PodSecurity "baseline:latest": hostPath volumes`)
			},
			` | driver-ready | DaemonSet dra-driver-numa | pods | 2, with the label pod-security.kubernetes.io/enforce=privileged on the namespace | 1; the API server refuses the others: pods "dra-driver-numa-" is forbidden: violates PodSecurity "baseline:latest": hostPath volumes`,
		},
		{
			"pods refused for another reason", func(f *Facts) {
				f.Installation.DaemonSets[0].Status.DesiredNumberScheduled = 2
				f.refuse("DaemonSet", "dra-driver-numa", "Error creating: admission webhook denied the request:\n"+strings.Repeat("x", 1000))
			},
			" | driver-ready | DaemonSet dra-driver-numa | pods | 2 | 1; the API server refuses the others: admission webhook denied the request: " + strings.Repeat("x", 159) + " ... " + strings.Repeat("x", 197),
		},
		{
			"webhook refused for its user", func(f *Facts) {
				f.Installation.Deployments[0].Status.AvailableReplicas = 0
				f.refuse("ReplicaSet", "dra-driver-numa-webhook-renewer-5d5f", "that of the renewer")
				f.refuse("ReplicaSet", "dra-driver-numa-webhook-5d5f", `Error creating: pods "dra-driver-numa-webhook-5d5f-" is forbidden: unable to validate against any security context constraint: []`)
			},
			` | webhook-ready | Deployment dra-driver-numa-webhook | available replicas | 2, with rbac.scc in the chart | 0; the API server refuses the others: pods "dra-driver-numa-webhook-5d5f-" is forbidden: unable to validate against any security context constraint: []`,
		},
		{
			"namespace with a Pod Security level", func(f *Facts) { f.Installation.PodSecurity = "baseline" },
			" | pod-security | Namespace dra-numa | pod-security.kubernetes.io/enforce | privileged, because the pods of the daemon mount folders of the node | baseline",
		},
		{
			"no pod", func(f *Facts) { f.Installation.DaemonSets[0].Status.DesiredNumberScheduled = 2 },
			" | driver-ready | DaemonSet dra-driver-numa | pods | 2 | 1",
		},
		{
			"right withdrawn", func(f *Facts) { f.Installation.ClusterRoles[0].Rules = Rights()[:6] },
			" | driver-rights | ServiceAccount dra-numa/dra-driver-numa | ClusterRole | create on events.events.k8s.io | not granted",
		},
		{
			"renewer down", func(f *Facts) {
				renewer := f.Installation.Deployments[0].DeepCopy()
				renewer.Name, renewer.Spec.Replicas, renewer.Status.AvailableReplicas = "dra-driver-numa-webhook-renewer", nil, 0
				f.Installation.Deployments = append(f.Installation.Deployments, renewer)
			},
			" | webhook-ready | Deployment dra-driver-numa-webhook-renewer | available replicas | 1 | 0",
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
			" | device-class | DeviceClass bound.dra.numa | spec.selectors | the driver's selectors | other selectors",
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
			(*f.daemonArgs())[0] = "--exclusivity=kernel"
			f.Objects.Nodes[0].Status.NodeInfo.KernelVersion = "6.1.0"
			f.zone().Attributes["exclusivity"] = resourceapi.DeviceAttribute{StringValue: ptr.To("cooperative")}
		}, "n1 | zone-exclusivity | dra.numa | dra.numa/exclusivity | kernel, which needs Linux 6.11 or newer | cooperative, with Linux 6.1.0"},
		{"new kernel, and auto", func(f *Facts) {
			f.zone().Attributes["exclusivity"] = resourceapi.DeviceAttribute{StringValue: ptr.To("cooperative")}
		}, "n1 | zone-exclusivity | dra.numa | dra.numa/exclusivity | kernel, which needs Linux 6.11 or newer | cooperative, with Linux 6.12.107"},
		{"a made-up machine", func(f *Facts) {
			f.zone().Attributes["exclusivity"] = resourceapi.DeviceAttribute{StringValue: ptr.To("none")}
			f.zone().Attributes["madeUp"] = resourceapi.DeviceAttribute{BoolValue: ptr.To(true)}
		}, "n1 | made-up-machine | dra.numa | machine | that of the node | a made-up one (madeUpMachine of the chart): no container is pinned"},
		{"old kernel without NRI", func(f *Facts) {
			f.Objects.Nodes[0].Status.NodeInfo.KernelVersion = "5.14.0-570.el9.x86_64"
			f.zone().Attributes["exclusivity"] = resourceapi.DeviceAttribute{StringValue: ptr.To("none")}
		}, "n1 | zone-exclusivity | dra.numa | dra.numa/exclusivity | kernel, which needs Linux 6.11 or newer, or cooperative, which needs NRI | none, with Linux 5.14.0-570.el9.x86_64"},
		{"an old pod, whose image a policy has pinned", func(f *Facts) {
			f.revisions("2", "1")
			f.daemonPod().Spec.Containers[1].Image = "d@sha256:0"
		}, "n1 | driver-version | Pod dra-driver-numa-x | image of keeper | d:1, as in the DaemonSet | d@sha256:0"},
		{
			"more hugepages without a claim than are reserved", func(f *Facts) {
				f.Objects.Nodes[0].Status.Allocatable["hugepages-2Mi"] = resource.MustParse("12Mi")
				f.zone().Capacity["hugepages2Mi"] = resourceapi.DeviceCapacity{Value: resource.MustParse("10Mi")}
				f.daemonPod().Spec.Containers[0].Resources.Limits = corev1.ResourceList{"hugepages-2Mi": resource.MustParse("4Mi")}
			},
			"n1 | unclaimed-hugepages | Pod dra-numa/dra-driver-numa-x | limits.hugepages-2Mi of driver | a claim for hugepages of a zone, or at most 2Mi in all pods without claims | 4Mi without a claim, which may be those of a claim",
		},
		{"taint", func(f *Facts) {
			f.zone().Taints = []resourceapi.DeviceTaint{{Key: "try", Effect: "None"}, {Key: "dra.numa/fault", Value: "cpus-gone", Effect: "NoSchedule"}}
		}, "n1 | device-taint | device numa-0 | taints | none | dra.numa/fault=cpus-gone:NoSchedule"},
		{"rival", func(f *Facts) {
			device := &f.Objects.Slices[1].Spec.Devices[0]
			device.NodeAllocatableResources = map[corev1.ResourceName]resourceapi.NodeAllocatableResource{"cpu": {Mapping: &resourceapi.NodeAllocatableMapping{}}}
		}, "n1 | other-cpu-driver | dra.net | ResourceSlices | no CPUs on a node with dra.numa | publishes CPUs"},
		{
			"a driver whose claims share CPUs", func(f *Facts) {
				slice := f.Objects.Slices[1].DeepCopy()
				slice.Name, slice.Spec.Driver, slice.Spec.Devices[0].AllowMultipleAllocations = "cpus", "cpu.example.com", ptr.To(true)
				slice.Spec.Devices[0].Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"cpu.example.com/cpu": {}}
				f.Objects.Slices = append(f.Objects.Slices, slice)
			}, "n1 | suspected-cpu-driver | cpu.example.com | ResourceSlices | no CPUs that claims of dra.numa may get; if it gives out such CPUs, name it in otherCPUDrivers or reserve them | publishes a capacity of CPUs that claims share",
		},
		{
			"time slots", func(f *Facts) {
				for cpu := range int64(3) {
					slice := f.Objects.Slices[1].DeepCopy()
					slice.Name, slice.Spec.Driver = fmt.Sprint("slots-", cpu), "time-share.example.com"
					slice.Spec.Devices[0].Attributes = map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"core": {IntValue: &cpu}, "slotIndex": {IntValue: ptr.To[int64](0)}}
					f.Objects.Slices = append(f.Objects.Slices, slice)
				}
				f.States = map[string]*nodestate.State{"n1": {Layout: &nodestate.Layout{Reserved: ptr.To(cpuset.New(0, 1)), Caches: []nodestate.Cache{{Cores: []cpuset.Set{cpuset.New(0, 1), cpuset.New(2, 3)}}}}}}
			}, "n1 | suspected-cpu-driver | time-share.example.com | ResourceSlices | no CPUs that claims of dra.numa may get; if it gives out such CPUs, name it in otherCPUDrivers or reserve them | publishes time slots of CPUs 2",
		},
		{
			"an NRI resource policy", func(f *Facts) {
				pod := f.Objects.Pod("default", "p").DeepCopy()
				pod.Name, pod.Namespace, pod.UID, pod.Spec.ResourceClaims = "policy-x", "kube-system", "policy", nil
				pod.Spec.NodeName = "n1"
				pod.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Name: "nri-resource-policy-balloons", UID: "b", Controller: ptr.To(true)}}
				pod.Spec.Containers = []corev1.Container{{Image: "ghcr.io/containers/nri-plugins/nri-resource-policy-balloons:v0.12.0@sha256:1"}}
				elsewhere, bare := pod.DeepCopy(), pod.DeepCopy()
				elsewhere.Spec.NodeName, bare.OwnerReferences = "n8", nil
				f.Objects.Pods = append(f.Objects.Pods, elsewhere, bare, pod)
				f.Policies = []string{"BalloonsPolicy kube-system/default"}
			},
			"n1 | resource-policy | DaemonSet kube-system/nri-resource-policy-balloons | NRI resource policy | none on a node with dra.numa, because it rewrites the cpusets of all containers | runs nri-resource-policy-balloons, configured by BalloonsPolicy kube-system/default",
		},
		{
			"an NRI resource policy of another image", func(f *Facts) { f.Policies = []string{"TopologyAwarePolicy a/default"} },
			" | resource-policy | TopologyAwarePolicy a/default | NRI resource policy | none on a node with dra.numa, because it rewrites the cpusets of all containers | exists; its DaemonSet is not known",
		},
		{
			"static CPUs", func(f *Facts) { f.Kubelets["n1"] = Kubelet{CPUManagerPolicy: "static", MemoryManagerPolicy: "None"} },
			"n1 | kubelet-manager | kubelet | cpuManagerPolicy | none | static",
		},
		{
			"static memory", func(f *Facts) { f.Kubelets["n1"] = Kubelet{CPUManagerPolicy: "none", MemoryManagerPolicy: "Static"} },
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
			"reserved in a file that the daemon does not read", func(f *Facts) {
				f.States = map[string]*nodestate.State{"n1": {Layout: &nodestate.Layout{Reserved: new(cpuset.New(0))}}}
			},
			"n1 | reserved-cpus | dra-driver-numa | reservedCPUs | at least 0-1, the kubelet's reservedSystemCPUs | 0, as the node says",
		},
		{
			"topology manager", func(f *Facts) { f.Kubelets["n1"] = Kubelet{TopologyManagerPolicy: "single-numa-node"} },
			"n1 | topology-manager | kubelet | topologyManagerPolicy | none or best-effort, because the others refuse pods without considering claims | single-numa-node",
		},
		{
			"gate only in the API server", func(f *Facts) { f.Gates["DRANodeAllocatableResources"] = true },
			"n1 | feature-gate | kubelet | DRANodeAllocatableResources | true, as in the API server | not set, so false",
		},
		{
			"scheduler without a gate", func(f *Facts) {
				f.Objects.Pods = append(f.Objects.Pods, schedulerPod("kube-system", "--feature-gates=A=true,kube:DRAConsumableCapacity=false"), schedulerPod("tenant", "--feature-gates=DRANodeAllocatableResources=true"))
			},
			" | control-plane-gate | Pod kube-system/kube-scheduler-a | DRAConsumableCapacity | true, as in the API server | false",
		},
		{
			"scheduler that does not count", func(f *Facts) {
				f.Gates["DRANodeAllocatableResources"] = true
				f.Kubelets["n1"] = Kubelet{FeatureGates: map[string]bool{"DRANodeAllocatableResources": true}}
				f.Objects.Pods = append(f.Objects.Pods, schedulerPod("kube-system"))
			},
			" | control-plane-gate | Pod kube-system/kube-scheduler-a | DRANodeAllocatableResources | true, as in the API server | not set, so false",
		},
		{
			"scheduler of 1.36 without rules", func(f *Facts) {
				f.Version, f.Gates["DRADeviceTaintRules"] = "v1.36.3", true
				f.Objects.Pods = append(f.Objects.Pods, schedulerPod("kube-system"))
			},
			" | control-plane-gate | Pod kube-system/kube-scheduler-a | DRADeviceTaintRules | true, as in the API server | not set, so false",
		},
		{
			"controllers without taints", func(f *Facts) {
				f.Gates["DRADeviceTaints"] = true
				pod := schedulerPod("kube-system", "--feature-gates", "DRAConsumableCapacity=false,DRADeviceTaints=false")
				pod.Name, pod.Labels["component"] = "kube-controller-manager-a", "kube-controller-manager"
				f.Objects.Pods = append(f.Objects.Pods, pod)
			},
			" | control-plane-gate | Pod kube-system/kube-controller-manager-a | DRADeviceTaints | true, as in the API server | false",
		},
		{
			"no NRI", func(f *Facts) {
				f.States = map[string]*nodestate.State{"n1": {Host: &nodestate.Host{NRI: ptr.To(false)}}}
			},
			"n1 | nri | container runtime | NRI | on, because nri.enabled is set in the chart: mixed and shared claims and memoryPolicy need it | no socket nri.sock",
		},
		{
			"a pause", func(f *Facts) {
				f.States = map[string]*nodestate.State{"n1": {Host: &nodestate.Host{Paused: "there is the file /d/pause-publishing"}}}
			},
			"n1 | publishing-paused | dra.numa | publishing | running, when the work on the node is done | paused: there is the file /d/pause-publishing",
		},
		{
			"zones in several caches", func(f *Facts) {
				f.States = map[string]*nodestate.State{"n1": {Host: &nodestate.Host{NoCaches: "caches are not published: zone numa-0 has CPUs of 2 level-3 caches: want each zone in one level-3 cache; set zoneBy to l3"}}}
			},
			"n1 | caches-published | NodeConfig | cache | caches that the node can divide | caches are not published: zone numa-0 has CPUs of 2 level-3 caches: want each zone in one level-3 cache; set zoneBy to l3",
		},
		{
			"labels that came after the start", func(f *Facts) {
				f.States = map[string]*nodestate.State{"n1": {Host: &nodestate.Host{Profiles: &nodestate.Profiles{Stale: []string{"reservedCPUs"}}}}}
			},
			"n1 | stale-profile | NodeConfig | reservedCPUs | as the profiles for the labels of the node say; the daemon starts again for them within an hour, if the machine can have these settings | as the labels said when the daemon started",
		},
		{
			"profiles that overlap", func(f *Facts) {
				f.States = map[string]*nodestate.State{"n1": {Host: &nodestate.Host{Profiles: &nodestate.Profiles{Overlapping: []string{"zoneBy: profiles[0], profiles[2]"}}}}}
			},
			"n1 | profile-overlap | NodeConfig | zoneBy | one profile that sets it, or profiles in this order: the last one wins | profiles[0], profiles[2]",
		},
		{
			"irqbalance", func(f *Facts) {
				f.States = map[string]*nodestate.State{"n1": {Host: &nodestate.Host{Irqbalance: "system.slice/irqbalance.service"}}}
			},
			"n1 | irqbalance | irqbalance | IRQBALANCE_BANNED_CPULIST | the CPUs that claims may get, or no irqbalance | not visible; irqbalance runs in the cgroup system.slice/irqbalance.service",
		},
		{
			"tuned, on a node whose claims have frequencies", func(f *Facts) {
				f.States = map[string]*nodestate.State{"n1": {Host: &nodestate.Host{Services: []string{"irqbalance", "tuned"}}}}
				f.tune(`{"governor": "performance"}`)
			},
			"n1 | power-service | tuned | CPUs of claims | not changed by the service, because claims of this node set their frequencies, idle states or interrupts: default/c | not visible; the service runs",
		},
		{
			"rules that the scheduler waits for", func(f *Facts) {
				f.Gates["DRADeviceTaintRules"], f.Objects.RuleVersion = true, snapshot.NotServed
			},
			" | feature-gate | kube-apiserver | DeviceTaintRules of resource.k8s.io | served, because DRADeviceTaintRules is on and the scheduler reads them | no version is served",
		},
		{
			"reserved memory, not told", func(f *Facts) {
				*f.daemonArgs() = nil
				f.Kubelets["n1"] = Kubelet{ReservedMemory: []MemoryReservation{{0, corev1.ResourceList{"memory": resource.MustParse("1Gi"), "hugepages-2Mi": resource.MustParse("4Mi")}}}}
			},
			"n1 | reserved-memory | dra-driver-numa | reservedMemory | what the kubelet reserves: 4Mi of hugepages-2Mi of NUMA node 0, 1Gi of memory of NUMA node 0 | nothing, because neither reservedMemory nor kubelet.configFile is set",
		},
		{
			"slices of a node that is gone", func(f *Facts) {
				slice := f.Objects.Slices[0].DeepCopy()
				slice.Name, slice.Spec.NodeName, slice.Spec.Pool.Name = "n9-zones", ptr.To("n9"), "n9"
				f.Objects.Slices = append(f.Objects.Slices, slice)
			},
			"n9 | stale-slices | dra.numa | ResourceSlices | only of nodes that exist | no Node n9",
		},
		{
			"autoscaler", func(f *Facts) {
				pod := f.Objects.Pod("default", "p").DeepCopy()
				pod.Name, pod.Namespace, pod.UID, pod.Spec.ResourceClaims = "ca-0", "kube-system", "ca", nil
				pod.Spec.Containers = []corev1.Container{{Image: "registry.example.com/autoscaling/cluster-autoscaler:v1.37.0@sha256:1"}}
				tenant := pod.DeepCopy()
				tenant.Namespace = "tenant"
				f.Objects.Pods = append(f.Objects.Pods, tenant, pod)
			},
			" | cluster-autoscaler | Pod kube-system/ca-0 | removal of nodes | the annotation cluster-autoscaler.kubernetes.io/scale-down-disabled=true on nodes with zones, because a node whose claims hold all CPUs can look unused | not on n1",
		},
		{
			"unprepared", func(f *Facts) {
				f.Time = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
				start := metav1.NewTime(f.Time.Add(-25 * time.Minute))
				f.Objects.Pod("default", "p").Status.StartTime = &start
			},
			"n1 | unprepared-claim | ResourceClaim default/c | status.devices | devices of dra.numa, at the latest 10 minutes after a pod has a node | none after 25m0s; kubectl numa explain pod p says why",
		},
		{
			"a scheduler that is gone", func(f *Facts) {
				f.Time = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
				for name, change := range map[string]func(*corev1.Pod){
					"waits": func(*corev1.Pod) {},
					"other": func(p *corev1.Pod) { p.Spec.SchedulerName = "slow-scheduler" },
					"new":   func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(f.Time.Add(-9 * time.Minute)) },
					"tried": func(p *corev1.Pod) {
						p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: "False"}}
					},
				} {
					pod := &corev1.Pod{}
					pod.Name, pod.Namespace, pod.Spec.SchedulerName = name, "team", "topo-aware-scheduler"
					pod.CreationTimestamp = metav1.NewTime(f.Time.Add(-25 * time.Minute))
					change(pod)
					f.Objects.Pods = append(f.Objects.Pods, pod)
				}
			},
			" | numa-scheduler | Pod team/waits | schedulerName | a scheduler that runs, such as default-scheduler | topo-aware-scheduler, which has not looked at a pod for 25m0s",
		},
		{
			"not pinned", func(f *Facts) {
				f.Objects.Claims[0].Status.Devices = []resourceapi.AllocatedDeviceStatus{{
					Driver: "dra.numa", Pool: "n1", Device: "numa-0", Conditions: []metav1.Condition{{Type: "Exclusive", Status: "False", Reason: "NotPinned"}},
				}}
			},
			"n1 | not-pinned | ResourceClaim default/c | condition Exclusive | containers that start with the driver's hook: CDI on in the container runtime, an OCI runtime that runs hooks, and no file stop-pinning | NotPinned",
		},
		{
			"memory policy ignored", func(f *Facts) {
				f.Objects.Claims[0].Status.Devices = []resourceapi.AllocatedDeviceStatus{{
					Driver: "dra.numa", Pool: "n1", Device: "numa-0", Conditions: []metav1.Condition{{Type: "MemoryPolicy", Status: "False", Reason: "Ignored", Message: "why"}},
				}}
			},
			"n1 | memory-policy | ResourceClaim default/c | condition MemoryPolicy | containers with the memoryPolicy of the claim: an OCI runtime that sets it, such as runc 1.4 or crun 1.24 | why",
		},
		{
			"another writer of cgroups", func(f *Facts) {
				f.Objects.Pod("default", "p").Annotations = map[string]string{"cpu-load-balancing.crio.io": "disable"}
			},
			"n1 | cgroup-writer | Pod default/p | annotation cpu-load-balancing.crio.io | none, because CRI-O would change the partition of the claim; ask for partition: isolated in the claim | disable",
		},
		{
			"another governor", func(f *Facts) {
				f.tune(`{"minFrequency": "max"}`)
				f.Objects.Pod("default", "p").Annotations = map[string]string{
					"cpu-freq-governor.crio.io": "schedutil", "cpu-c-states.crio.io": "disable", "irq-load-balancing.crio.io": "disable", "cpu-quota.crio.io": "disable",
				}
			},
			"n1 | performance-annotation | Pod default/p | annotation cpu-freq-governor.crio.io | none, because CRI-O would change the governor of its CPUs, which claim c sets | schedutil",
		},
		{
			"other idle states", func(f *Facts) {
				f.tune(`{"idleLatency": 0}`)
				f.Objects.Pod("default", "p").Annotations = map[string]string{"cpu-c-states.crio.io": "max_latency:10", "cpu-freq-governor.crio.io": "schedutil"}
			},
			"n1 | performance-annotation | Pod default/p | annotation cpu-c-states.crio.io | none, because CRI-O would change the idle states of its CPUs, which claim c sets | max_latency:10",
		},
		{
			"other interrupts", func(f *Facts) {
				f.tune(`{"interrupts": "away"}`)
				f.Objects.Pod("default", "p").Annotations = map[string]string{"irq-load-balancing.crio.io": "housekeeping", "cpu-c-states.crio.io": "disable"}
			},
			"n1 | performance-annotation | Pod default/p | annotation irq-load-balancing.crio.io | none, because CRI-O would change which CPUs handle interrupts, which claim c sets | housekeeping",
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
			"n1 | unclaimed-hugepages | Pod dra-numa/dra-driver-numa-x | limits.hugepages-2Mi of driver | a claim for hugepages of a zone, or at most 0 in all pods without claims | 4Mi without a claim, which may be those of a claim",
		},
	}...)
}
