package apiserver

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/accounting"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin"
	"github.com/dra-driver-numa/dra-driver-numa/test/client"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// office is a node of 16 CPUs without a kubelet, on which the real scheduler puts
// pods with and without claims.
type office struct {
	t     *testing.T
	admin kubernetes.Interface
	node  string
}

// openOffice makes the node, whose kubelet would declare the features.
func openOffice(t *testing.T, admin kubernetes.Interface, node string, features ...string) office {
	t.Helper()
	all := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("16"),
		corev1.ResourceMemory: resource.MustParse("16Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	object := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node, Labels: map[string]string{"books": node}},
		Status:     corev1.NodeStatus{Capacity: all, Allocatable: all, DeclaredFeatures: features},
	}
	if _, err := admin.CoreV1().Nodes().Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeNode(t, admin, node) })
	return office{t, admin, node}
}

// publish has all CPUs of the node in slices, 4 in each of 4 zones.
func (o office) publish(counted bool) {
	o.t.Helper()
	config := driver.Config{NodeName: o.node, Exclusivity: driver.ExclusivityKernel, Gates: driver.Gates{NodeAllocatable: counted}}
	publishSlices(o.t.Context(), o.t, o.admin, o.node, driver.Resources(o.node, driver.Devices(rigMachine(), config, nil)).Pools[o.node].Slices)
}

// run creates a pod that requests CPUs and has a claim of others, and returns why
// the scheduler has no node for it, "" if it has.
func (o office) run(name string, cpus, claimed int64) (unschedulable string) {
	o.t.Helper()
	pod := o.pod(name)
	container := &pod.Spec.Containers[0]
	if cpus > 0 {
		container.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(cpus, resource.DecimalSI)}
	}
	if claimed > 0 {
		o.claim(pod.Name, claimed)
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "zone", ResourceClaimName: &pod.Name}}
		container.Resources.Claims = []corev1.ResourceClaim{{Name: "zone"}}
	}
	return o.start(pod)
}

// pod is one for this node only.
func (o office) pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: o.node + "-" + name},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"books": o.node},
			Tolerations:  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers:   []corev1.Container{{Name: "main", Image: "none"}},

			TerminationGracePeriodSeconds: ptr.To(int64(0)),
			AutomountServiceAccountToken:  ptr.To(false),
		},
	}
}

// start creates the pod until the test ends, and returns what the scheduler says.
func (o office) start(pod *corev1.Pod) (unschedulable string) {
	o.t.Helper()
	create(o.t, o.admin.CoreV1().Pods(metav1.NamespaceDefault), pod)
	return o.judgement(pod.Name)
}

func (o office) claim(name string, cpus int64) {
	o.t.Helper()
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{{
		Name: "zone",
		Exactly: &resourceapi.ExactDeviceRequest{
			DeviceClassName: "zone.dra.numa",
			Capacity: &resourceapi.CapacityRequirements{Requests: map[resourceapi.QualifiedName]resource.Quantity{
				"cpu": *resource.NewQuantity(cpus, resource.DecimalSI),
			}},
		},
	}}
	create(o.t, o.admin.ResourceV1().ResourceClaims(metav1.NamespaceDefault), claim)
}

// judgement waits for the scheduler's.
func (o office) judgement(name string) (unschedulable string) {
	o.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		pod, err := o.admin.CoreV1().Pods(metav1.NamespaceDefault).Get(o.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			o.t.Fatal(err)
		}
		if pod.Spec.NodeName == o.node {
			return ""
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled && strings.Contains(condition.Message, "nodes are available") {
				return condition.Message
			}
		}
	}
	o.t.Fatalf("the scheduler has nothing to say about pod %s", name)
	return ""
}

// fill runs pods that request 2 CPUs until one has no place, and returns how many have.
func (o office) fill() (count int) {
	o.t.Helper()
	for ; count < 9; count++ {
		if why := o.run(fmt.Sprintf("plain-%d", count), 2, 0); why != "" {
			if !strings.Contains(why, "Insufficient cpu") {
				o.t.Errorf("pod %d is refused with %q", count, why)
			}
			return count
		}
	}
	return count
}

// mustClaim runs two pods that claim 4 CPUs each.
func (o office) mustClaim() {
	o.t.Helper()
	for _, name := range []string{"a", "b"} {
		if why := o.run(name, 0, 4); why != "" { // perhaps from before the scheduler knew the slices
			eventually(o.t, "pod "+name+" is bound, of which the scheduler said "+why, func() bool {
				pod, err := o.admin.CoreV1().Pods(metav1.NamespaceDefault).Get(o.t.Context(), name, metav1.GetOptions{})
				return err == nil && pod.Spec.NodeName == o.node
			})
		}
	}
}

// mustFill fills a node of 16 CPUs, 8 of which are claimed, with pods that request
// CPUs. Each CPU counts once: 4 pods of 2 CPUs fit, and no claim after them.
func (o office) mustFill() {
	o.t.Helper()
	if got := o.fill(); got != 4 {
		o.t.Errorf("%d pods of 2 CPUs have a place where 8 CPUs are claimed, want 4", got)
	}
	if why := o.run("late", 0, 4); !strings.Contains(why, "Insufficient cpu") {
		o.t.Errorf("a claim of zones that are free, but whose CPUs are promised: %q", why)
	}
	if pods := o.mustBalance("published 16 allocatable 16 claimed 8 requested 16 uncounted 0 overcommit 0"); len(pods) != 0 {
		o.t.Errorf("pods %+v", pods)
	}
}

// books adds up the node.
func (o office) books() (node accounting.Node, pods []accounting.Pod) {
	o.t.Helper()
	var cluster accounting.Cluster
	nodes, err := o.admin.CoreV1().Nodes().List(o.t.Context(), metav1.ListOptions{})
	if err != nil {
		o.t.Fatal(err)
	}
	cluster.Nodes = pointers(nodes.Items)
	slices, err := o.admin.ResourceV1().ResourceSlices().List(o.t.Context(), metav1.ListOptions{})
	if err != nil {
		o.t.Fatal(err)
	}
	cluster.Slices = pointers(slices.Items)
	claims, err := o.admin.ResourceV1().ResourceClaims(metav1.NamespaceDefault).List(o.t.Context(), metav1.ListOptions{})
	if err != nil {
		o.t.Fatal(err)
	}
	for _, claim := range pointers(claims.Items) {
		if claim.Status.Allocation != nil {
			cluster.Claims = append(cluster.Claims, claim)
		}
	}
	list, err := o.admin.CoreV1().Pods(metav1.NamespaceDefault).List(o.t.Context(), metav1.ListOptions{})
	if err != nil {
		o.t.Fatal(err)
	}
	cluster.Pods = pointers(list.Items)
	report := accounting.Balance(cluster)
	for _, node := range report.Nodes {
		if node.Name == o.node {
			return node, report.Pods
		}
	}
	o.t.Fatalf("the report has no node %s: %+v", o.node, report)
	return accounting.Node{}, nil
}

// mustBalance compares the CPUs of the node's accounting.
func (o office) mustBalance(want string) (pods []accounting.Pod) {
	o.t.Helper()
	node, pods := o.books()
	text := func(list corev1.ResourceList) string { return list.Cpu().String() }
	got := fmt.Sprintf("published %s allocatable %s claimed %s requested %s uncounted %s overcommit %s",
		text(node.Published), text(node.Allocatable), text(node.Claimed), text(node.Requested), text(node.Uncounted), text(node.Overcommit))
	if diff := cmp.Diff(want, got); diff != "" {
		o.t.Errorf("books of the node (-want +got):\n%s", diff)
	}
	return pods
}

// TestWithoutMirroringTheReportHasTheOvercommit: what two claims hold is promised
// again to pods that only request.
func TestWithoutMirroringTheReportHasTheOvercommit(t *testing.T) {
	admin := clientFor(t, "APISERVER_KUBECONFIG")
	installChart(t)
	office := openOffice(t, admin, "unmirrored")
	office.publish(false)
	office.mustClaim()
	if got := office.fill(); got != 8 {
		t.Errorf("%d pods of 2 CPUs have a place, want 8 of 16 CPUs", got)
	}
	pods := office.mustBalance("published 16 allocatable 16 claimed 8 requested 16 uncounted 8 overcommit 8")
	var found []string
	for _, pod := range pods {
		found = append(found, fmt.Sprintf("%s lacks %s of %s", pod.Name, pod.Uncounted.Cpu(), pod.Held.Cpu()))
	}
	if diff := cmp.Diff([]string{"unmirrored-a lacks 4 of 4", "unmirrored-b lacks 4 of 4"}, found); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
}

// TestWithMirroringANodeOf16CPUsCounts16: pods say again what their claims hold.
func TestWithMirroringANodeOf16CPUsCounts16(t *testing.T) {
	admin := clientFor(t, "APISERVER_KUBECONFIG")
	startWebhook(t, admin, 1, "true")
	refused(t, admin)
	office := openOffice(t, admin, "mirrored-16")
	office.publish(false)
	office.mustMirror()
	office.mustFill()
}

// mustMirror runs two pods with claims once the webhook mirrors them.
func (o office) mustMirror() {
	o.t.Helper()
	o.mustClaim()
	for _, name := range []string{"a", "b"} {
		pod, err := o.admin.CoreV1().Pods(metav1.NamespaceDefault).Get(o.t.Context(), o.node+"-"+name, metav1.GetOptions{})
		if err != nil {
			o.t.Fatal(err)
		}
		if got := pod.Spec.Containers[0].Resources.Requests.Cpu().String(); got != "4" {
			o.t.Fatalf("pod %s requests %s CPUs, mirrored are 4", name, got)
		}
	}
}

// nodeAllocatable is the gate of KEP-5517, and what a kubelet declares that has it.
const nodeAllocatable = "DRANodeAllocatableResources"

// TestSchedulerCountsClaimsWhereTheGateIsOn goes by what this API server keeps of a
// slice. Nothing is mirrored.
func TestSchedulerCountsClaimsWhereTheGateIsOn(t *testing.T) {
	admin := clientFor(t, "ALLOCATABLE_KUBECONFIG")
	if releaseOf(t, admin) == client.Release136 {
		openOffice(t, admin, "other-fields", nodeAllocatable).mustCount(false, "") // it drops those of 1.37
		return
	}
	openOffice(t, admin, "old-kubelet").mustCount(false, `node "old-kubelet" does not support DRANodeAllocatableResources feature`)
	office := openOffice(t, admin, "counted", nodeAllocatable)
	office.mustCount(true, "")
	installClasses(t, admin)
	office.publish(true)
	office.mustClaim()
	office.mustFill()
}

// TestDaemonMapsCapacitiesWhereTheGateIsOn looks at what the program publishes. It asks
// the API server only once it runs, when the driver is open already. Zones also have a
// capacity that no node has.
func TestDaemonMapsCapacitiesWhereTheGateIsOn(t *testing.T) {
	const cluster = "ALLOCATABLE_KUBECONFIG"
	admin := clientFor(t, cluster)
	knows := releaseOf(t, admin) != client.Release136 // it drops the fields of 1.37
	daemon := buildDaemon(t)
	for accounting, want := range map[string]bool{deviceclasses.AccountingAuto: knows, deviceclasses.AccountingRequests: false} {
		office := openOffice(t, admin, "mapped-"+accounting, nodeAllocatable)
		office.mustCount(knows, "")
		config := filepath.Join(t.TempDir(), "config.yaml")
		files.Write(t, config, "apiVersion: dra.numa/v1alpha1\nkind: NodeConfig\ngroups: [kafka]\naccounting: "+accounting+"\n")
		run(t, cluster, daemon, machineFolder(t), office.node, "--config="+config).answers(t, "200 ok")
		for _, device := range nodeDevices(t, admin, office.node) {
			if got := device.NodeAllocatableResources != nil; got != want {
				t.Errorf("accounting: %s: device %s maps its capacities: %t, want %t", accounting, device.Name, got, want)
			}
		}
	}
}

// TestPodsShareClaimsThatTheSchedulerDoesNotCount: for those who share claims, a node can
// leave out the mapping. Nothing else is different.
func TestPodsShareClaimsThatTheSchedulerDoesNotCount(t *testing.T) {
	admin := clientFor(t, "ALLOCATABLE_KUBECONFIG")
	if releaseOf(t, admin) == client.Release136 {
		t.Skip("Kubernetes 1.36 has other fields for what is counted, which nothing here writes")
	}
	installClasses(t, admin)
	for name, counted := range map[string]bool{"shared-counted": true, "shared-uncounted": false} {
		office := openOffice(t, admin, name, nodeAllocatable)
		office.publish(counted)
		office.claim(office.node+"-shared", 4)
		var why []string
		for _, pod := range []*corev1.Pod{office.pod("first"), office.pod("second")} {
			pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "zone", ResourceClaimName: ptr.To(office.node + "-shared")}}
			pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "zone"}}
			why = append(why, office.start(pod))
		}
		if why[0] != "" || counted != strings.Contains(why[1], "cannot be shared") || !counted && why[1] != "" {
			t.Errorf("counted: %t: the first pod waits for %q, the second for %q", counted, why[0], why[1])
		}
	}
}

func TestNothingIsMappedWhereTheGateIsOff(t *testing.T) {
	admin := clientFor(t, "APISERVER_KUBECONFIG")
	openOffice(t, admin, "uncounted", nodeAllocatable).mustCount(false, "")
}

// mustCount asks as the daemon does. The API server's cache of nodes is behind.
func (o office) mustCount(want bool, problem string) {
	o.t.Helper()
	var counts bool
	var err error
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if counts, err = kubeletplugin.NodeAllocatable().Ask(o.t.Context(), o.admin, o.node); err == nil || !strings.Contains(err.Error(), "not found") {
			break
		}
	}
	if counts != want || (err == nil) != (problem == "") || err != nil && !strings.Contains(err.Error(), problem) {
		o.t.Fatalf("the API server counts claims of node %s: %t, %v, want %t, %q", o.node, counts, err, want, problem)
	}
}

// installClasses are those of the chart, in a cluster without it.
func installClasses(t *testing.T, admin kubernetes.Interface) {
	t.Helper()
	classes, err := deviceclasses.All()
	if err != nil {
		t.Fatal(err)
	}
	createAll(t, admin.ResourceV1().DeviceClasses(), pointers(classes))
}

// TestExtendedResourceOfZonesHasNoAmounts holds the documented limit to what a real
// scheduler does.
func TestExtendedResourceOfZonesHasNoAmounts(t *testing.T) {
	admin := clientFor(t, "APISERVER_KUBECONFIG")
	installChart(t)
	office := openOffice(t, admin, "extended")
	office.publish(false)
	classes := admin.ResourceV1().DeviceClasses()
	class, err := classes.Get(t.Context(), "zone.dra.numa", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	class.ObjectMeta = metav1.ObjectMeta{Name: "extended-zone"}
	class.Spec.ExtendedResourceName = ptr.To("example.com/zone")
	create(t, classes, class)
	pod := office.pod("two")
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"example.com/zone": resource.MustParse("2")}
	why := office.start(pod)
	// The scheduler may see the pod before the class.
	for deadline := time.Now().Add(patience); strings.Contains(why, "Insufficient example.com/zone") && time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		why = office.judgement(pod.Name)
	}
	if why != "" {
		t.Fatal(why)
	}
	placed, err := admin.CoreV1().Pods(metav1.NamespaceDefault).Get(t.Context(), pod.Name, metav1.GetOptions{})
	if err != nil || placed.Status.ExtendedResourceClaimStatus == nil {
		t.Fatalf("pod status %+v, %v", placed.Status, err)
	}
	name := placed.Status.ExtendedResourceClaimStatus.ResourceClaimName
	claim, err := admin.ResourceV1().ResourceClaims(metav1.NamespaceDefault).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, result := range claim.Status.Allocation.Devices.Results {
		cpu, memory := result.ConsumedCapacity["cpu"], result.ConsumedCapacity["memory"]
		got = append(got, fmt.Sprintf("%s cpu=%s memory=%s of %d", result.Device, cpu.String(), memory.String(), len(result.ConsumedCapacity)))
	}
	if diff := cmp.Diff([]string{"numa-0 cpu=0 memory=0 of 3", "numa-1 cpu=0 memory=0 of 3"}, got); diff != "" {
		t.Errorf("allocated (-want +got):\n%s", diff)
	}
	office.mustBalance("published 16 allocatable 16 claimed 0 requested 0 uncounted 0 overcommit 0")
}
