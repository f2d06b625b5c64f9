package diagnosis

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/dra-driver-numa/dra-driver-numa/simulate/snapshot"
)

// healthyObjects are a node with two zones, of which a pod that is counted has one.
const healthyObjects = `
apiVersion: v1
kind: Node
metadata: {name: n1}
status:
  allocatable: {cpu: 8, memory: 8Gi, pods: 110}
  nodeInfo: {kubeletVersion: v1.37.1, kernelVersion: 6.12.107, containerRuntimeVersion: containerd://2.4.2}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: n1-zones}
spec:
  driver: dra.numa
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: numa-0, allowMultipleAllocations: true, attributes: {dra.numa/exclusivity: {string: kernel}}, capacity: {cpu: {value: 4}, memory: {value: 4Gi}}}
  - {name: numa-1, allowMultipleAllocations: true, attributes: {dra.numa/exclusivity: {string: kernel}}, capacity: {cpu: {value: 4}, memory: {value: 4Gi}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: n1-network}
spec:
  driver: dra.net
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices: [{name: eth0, attributes: {dra.net/numaNode: {int: 0}}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c}
spec: {devices: {requests: [{name: zone, exactly: {deviceClassName: zone.dra.numa, capacity: {requests: {cpu: 2}}}}]}}
status:
  reservedFor: [{resource: pods, name: p, uid: p}]
  allocation: {devices: {results: [{request: zone, driver: dra.numa, pool: n1, device: numa-0, shareID: s, consumedCapacity: {cpu: 2}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: p, uid: p}
spec:
  nodeName: n1
  resourceClaims: [{name: cpus, resourceClaimName: c}]
  containers: [{name: main, resources: {claims: [{name: cpus}], requests: {cpu: 2}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: dra-driver-numa-x, namespace: dra-numa, labels: {app.kubernetes.io/name: dra-driver-numa}}
spec: {nodeName: n1, containers: [{name: driver, image: "d:1"}, {name: keeper, image: "d:1"}]}
status: {conditions: [{type: Ready, status: "True"}]}
`

const healthyDaemonSet = `
metadata: {name: dra-driver-numa, namespace: dra-numa, labels: {app.kubernetes.io/version: v1}}
spec:
  template:
    spec:
      serviceAccountName: dra-driver-numa
      containers:
      - {name: driver, image: "d:1", args: [--exclusivity=auto, --kubelet-config=/host/kubelet-config.yaml]}
      - {name: keeper, image: "d:1"}
status: {desiredNumberScheduled: 1, currentNumberScheduled: 1}
`

const healthyWebhook = `
metadata: {name: dra-driver-numa-webhook, namespace: dra-numa, labels: {app.kubernetes.io/version: v1}}
spec: {replicas: 2}
status: {availableReplicas: 2}
`

func parse[T any](t *testing.T, text string) *T {
	t.Helper()
	object := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		t.Fatal(err)
	}
	return object
}

// healthy is a cluster in which nothing is to be found.
func healthy(t *testing.T) *Facts {
	t.Helper()
	objects := &snapshot.Snapshot{}
	class, err := os.ReadFile("../deviceclasses/zone.dra.numa.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := objects.Read("objects", strings.NewReader(healthyObjects+"---\n"+string(class))); err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{Rules: Rights()}
	role.Name = "dra-driver-numa"
	binding := &rbacv1.ClusterRoleBinding{
		RoleRef:  rbacv1.RoleRef{Kind: "ClusterRole", Name: "dra-driver-numa"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "dra-driver-numa", Namespace: "dra-numa"}},
	}
	return &Facts{
		Version: "v1.37.1",
		Gates:   map[string]bool{"DRAConsumableCapacity": true, "DRAResourceClaimDeviceStatus": true, "DRANodeAllocatableResources": false},
		Objects: objects,
		Installation: Installation{
			DaemonSets: []*appsv1.DaemonSet{parse[appsv1.DaemonSet](t, healthyDaemonSet)}, Deployments: []*appsv1.Deployment{parse[appsv1.Deployment](t, healthyWebhook)},
			ClusterRoles: []*rbacv1.ClusterRole{role}, Bindings: []*rbacv1.ClusterRoleBinding{binding},
		},
		Kubelets: map[string]Kubelet{"n1": {CPUManagerPolicy: "none", MemoryManagerPolicy: "None", ReservedSystemCPUs: "0-1"}},
	}
}

// broken says what is broken, and the finding that it is to be: node, check,
// component, setting, expected, detected.
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
		{"configz", func(f *Facts) { f.Unread = []Unread{{"n1", "kubelet", "configz", "nodes is forbidden"}} },
			"n1 | not-checked | kubelet | configz | readable | nodes is forbidden"},
		{"old server", func(f *Facts) { f.Version = "v1.35.9" },
			" | kubernetes-version | kube-apiserver | version | 1.36 or newer | v1.35.9"},
		{"old kubelet", func(f *Facts) { f.Objects.Nodes[0].Status.NodeInfo.KubeletVersion = "v1.35.0-eks.1" },
			"n1 | kubernetes-version | kubelet | version | 1.36 or newer | v1.35.0-eks.1"},
		{"gate off", func(f *Facts) { f.Gates["DRAConsumableCapacity"] = false },
			" | feature-gate | kube-apiserver | DRAConsumableCapacity | true | false"},
		{"old runtime", func(f *Facts) { f.Objects.Nodes[0].Status.NodeInfo.ContainerRuntimeVersion = "containerd://1.7.27" },
			"n1 | runtime-version | containerd | version | 2.0 or newer, which has CDI switched on | 1.7.27"},
		{"no driver", func(f *Facts) { f.Installation.DaemonSets = nil },
			" | driver-installed | dra-driver-numa | DaemonSet | one with the label app.kubernetes.io/name=dra-driver-numa | 0"},
		{"two releases", func(f *Facts) {
			second := f.Installation.DaemonSets[0].DeepCopy()
			second.Namespace, second.Spec.Template.Spec.ServiceAccountName = "other", "other"
			f.Installation.Bindings[0].Subjects = append(f.Installation.Bindings[0].Subjects, rbacv1.Subject{Kind: "ServiceAccount", Name: "other", Namespace: "other"})
			f.Installation.DaemonSets = append(f.Installation.DaemonSets, second)
		}, " | driver-installed | dra-driver-numa | DaemonSet | one with the label app.kubernetes.io/name=dra-driver-numa | 2 dra-numa/dra-driver-numa, other/dra-driver-numa"},
		{"old image", func(f *Facts) { f.daemonPod().Spec.Containers[1].Image = "d:0" },
			"n1 | driver-version | Pod dra-driver-numa-x | image of keeper | d:1, as the DaemonSet | d:0"},
		{"old webhook", func(f *Facts) { f.Installation.Deployments[0].Labels[versionLabel] = "v0" },
			" | driver-version | Deployment dra-driver-numa-webhook | app.kubernetes.io/version | v1, as the DaemonSet | v0"},
		{"not ready", func(f *Facts) {
			f.daemonPod().Status = corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: "Ready", Status: "False", Message: "containers with unready status: [driver]"}}}
		}, "n1 | driver-ready | Pod dra-driver-numa-x | Ready | True | containers with unready status: [driver]"},
		{"crashing", func(f *Facts) {
			f.daemonPod().Status = corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "driver",
				State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "dra-numa: error: damaged\n"}}}}}
		}, "n1 | driver-ready | Pod dra-driver-numa-x | Ready | True | container driver ended with status 1: dra-numa: error: damaged"},
		{"no image", func(f *Facts) {
			f.daemonPod().Status = corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "driver",
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "Back-off"}}}}}
		}, "n1 | driver-ready | Pod dra-driver-numa-x | Ready | True | ImagePullBackOff Back-off"},
		{"no pod", func(f *Facts) { f.Installation.DaemonSets[0].Status.DesiredNumberScheduled = 2 },
			" | driver-ready | DaemonSet dra-driver-numa | pods | 2 | 1"},
		{"right withdrawn", func(f *Facts) { f.Installation.ClusterRoles[0].Rules = Rights()[:6] },
			" | driver-rights | ServiceAccount dra-numa/dra-driver-numa | ClusterRole | create on events.events.k8s.io | not granted"},
		{"webhook down", func(f *Facts) { f.Installation.Deployments[0].Status.AvailableReplicas = 1 },
			" | webhook-ready | Deployment dra-driver-numa-webhook | available replicas | 2 | 1"},
		{"no class", func(f *Facts) { f.Objects.Classes = nil },
			" | device-class | DeviceClass zone.dra.numa | metadata.name | installed | missing"},
		{"other class", func(f *Facts) { f.Objects.Classes[0].Spec.Selectors = nil },
			" | device-class | DeviceClass zone.dra.numa | spec.selectors | those of the driver | others"},
		{"no slices", func(f *Facts) { f.Objects.Slices = nil },
			"n1 | zones-published | dra.numa | ResourceSlices | 1 or more | 0"},
		{"slice missing", func(f *Facts) { f.Objects.Slices[0].Spec.Pool.ResourceSliceCount = 2 },
			"n1 | zones-published | dra.numa | ResourceSlices | 2 or more | 1"},
		{"old kernel", func(f *Facts) {
			f.Objects.Nodes[0].Status.NodeInfo.KernelVersion = "6.1.0"
			f.zone().Attributes["dra.numa/exclusivity"] = resourceapi.DeviceAttribute{StringValue: ptr.To("cooperative")}
		}, "n1 | zone-exclusivity | dra.numa | dra.numa/exclusivity | kernel, which needs Linux 6.11 | cooperative, with Linux 6.1.0"},
		{"taint", func(f *Facts) {
			f.zone().Taints = []resourceapi.DeviceTaint{{Key: "dra.numa/fault", Value: "cpus-gone", Effect: "NoSchedule"}}
		}, "n1 | zone-taint | zone numa-0 | taints | none | dra.numa/fault=cpus-gone:NoSchedule"},
		{"rival", func(f *Facts) {
			device := &f.Objects.Slices[1].Spec.Devices[0]
			device.Capacity = map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"dra.net/cpu": {}}
		}, "n1 | other-cpu-driver | dra.net | ResourceSlices | no CPUs on a node of dra.numa | publishes CPUs"},
		{"static CPUs", func(f *Facts) { f.Kubelets["n1"] = Kubelet{"static", "None", ""} },
			"n1 | kubelet-manager | kubelet | cpuManagerPolicy | none | static"},
		{"static memory", func(f *Facts) { f.Kubelets["n1"] = Kubelet{"none", "Static", ""} },
			"n1 | kubelet-manager | kubelet | memoryManagerPolicy | None | Static"},
		{"reserved, not told", func(f *Facts) { *f.daemonArgs() = nil },
			"n1 | reserved-cpus | dra-driver-numa | reservedCPUs | all of 0-1, the kubelet's reservedSystemCPUs | the first core, as neither reservedCPUs nor kubelet.configFile is set"},
		{"reserved, told otherwise", func(f *Facts) { *f.daemonArgs() = append(*f.daemonArgs(), "--reserved-cpus=0,8") },
			"n1 | reserved-cpus | dra-driver-numa | reservedCPUs | all of 0-1, the kubelet's reservedSystemCPUs | 0,8"},
		{"overcommit", func(f *Facts) { f.Objects.Nodes[0].Status.Allocatable["cpu"] = resource.MustParse("1") },
			"n1 | overcommit | Node n1 | cpu | at most 1 promised | 1 too much: pods request 2, claims hold 0 more"},
		{"pod without requests", func(f *Facts) { f.Objects.Pod("default", "p").Spec.Containers[0].Resources.Requests = nil },
			"n1 | uncounted-pod | Pod default/p | requests.cpu | 2 more, for the 2 of its claims | 0"},
	}
}

func line(f Finding) string {
	return strings.Join([]string{f.Node, f.Check, f.Component, f.Setting, f.Expected, f.Detected}, " | ")
}

func TestHealthyClusterHasNoFinding(t *testing.T) {
	if findings := Validate(healthy(t)); len(findings) != 0 || findings == nil {
		t.Errorf("findings are %+v", findings)
	}
}

// TestEveryBrokenThingIsItsFinding and no other; every check has a thing that it finds.
func TestEveryBrokenThingIsItsFinding(t *testing.T) {
	found := make(map[string]bool)
	for _, b := range breakages() {
		facts := healthy(t)
		b.do(facts)
		var got []string
		for _, finding := range Validate(facts) {
			got = append(got, line(finding))
			found[finding.Check] = true
		}
		if diff := cmp.Diff([]string{b.want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", b.what, diff)
		}
	}
	for _, check := range Checks() {
		if !found[check.Name] {
			t.Errorf("nothing is broken that %s finds", check.Name)
		}
	}
}

// TestUnreadIsNoSecondFinding: what was not seen is not missing.
func TestUnreadIsNoSecondFinding(t *testing.T) {
	facts := healthy(t)
	facts.Installation, facts.Gates, facts.Kubelets = Installation{}, nil, nil
	for _, what := range []string{"DaemonSets", "Deployments", "ClusterRoles", "ClusterRoleBindings", "feature gates", "configz"} {
		facts.Unread = append(facts.Unread, Unread{Setting: what, Why: "forbidden"})
	}
	for _, finding := range Validate(facts) {
		if finding.Check != "not-checked" {
			t.Errorf("found %+v", finding)
		}
	}
}

// TestFindingsAreByNode with those of the cluster before them.
func TestFindingsAreByNode(t *testing.T) {
	facts := healthy(t)
	facts.Unread = []Unread{{Node: "n2"}, {Node: "n1"}, {}}
	facts.Kubelets["n1"] = Kubelet{CPUManagerPolicy: "static"}
	var got []string
	for _, finding := range Validate(facts) {
		got = append(got, finding.Node+" "+finding.Check)
	}
	if want := []string{" not-checked", "n1 not-checked", "n1 kubelet-manager", "n2 not-checked"}; !slices.Equal(got, want) {
		t.Errorf("findings are %q, want %q", got, want)
	}
}

// TestRightsAreTheCharts: the rules of its ClusterRole, one for one.
func TestRightsAreTheCharts(t *testing.T) {
	text, err := os.ReadFile("../deployments/helm/dra-driver-numa/templates/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	document := strings.Split(string(text), "---")[1]
	_, rules, _ := strings.Cut(document, "\nrules:\n")
	role := parse[rbacv1.ClusterRole](t, "rules:\n"+rules)
	if diff := cmp.Diff(role.Rules, Rights()); diff != "" {
		t.Errorf("rules (-chart +Rights):\n%s", diff)
	}
}

// TestEveryCheckIsDocumented in a row of its own, and nothing else is.
func TestEveryCheckIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/validate.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented, checks []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| ([a-z]+) \\|").FindAllStringSubmatch(string(text), -1) {
		documented = append(documented, row[1]+" "+row[2])
	}
	for _, check := range Checks() {
		checks = append(checks, check.Name+" "+check.Area)
	}
	if diff := cmp.Diff(checks, documented); diff != "" {
		t.Errorf("rows of docs/validate.md (-checks +rows):\n%s", diff)
	}
}
