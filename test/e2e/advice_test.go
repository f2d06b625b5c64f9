package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// What kubectl numa says before something happens, compared with what happens.
var _ = Describe("the advice of kubectl numa", Ordered, ContinueOnFailure, func() {
	var (
		machine string // folder with the node's sys and proc
		config  string // NodeConfig with what the daemon reserves
	)

	BeforeAll(func(ctx context.Context) {
		machine, config = copyOfMachine(ctx, GinkgoT().TempDir())
	})

	It("prints the slices that the driver published", func(ctx context.Context) {
		var printed struct { // a list, or the only slice
			Items []resourceapi.ResourceSlice
			resourceapi.ResourceSlice
		}
		text := answer(ctx, "slices", "--root", machine, "--node-name", node.name, "--config", config, "-o", "json")
		Expect(json.Unmarshal([]byte(text), &printed)).To(Succeed(), text)
		if len(printed.Items) == 0 {
			printed.Items = []resourceapi.ResourceSlice{printed.ResourceSlice}
		}
		Eventually(ctx, func(g Gomega) { // what a spec before has changed and changed back is published at a pace
			list, err := cluster.Kubernetes.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node.name + ",spec.driver=" + driverName})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(devicesIn(printed.Items)).To(MatchJSON(devicesIn(list.Items)))
		}).Should(Succeed())
	})

	It("says which CPUs the next claim gets", func(ctx context.Context) {
		namespace := createNamespace(ctx, "advice")
		want := oneCore(ctx)
		zone := zoneOf(fmt.Sprintf("numa-%d", want.zone))
		machineZone, _ := snapshot(ctx).Zone(zone.id)
		first := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("first", want), want))
		held := inKernel(snapshot(ctx), first).CPUs
		Expect(held.IsSubsetOf(machineZone.CPUs)).To(BeTrue(), "CPUs %s of NUMA node %d", held, zone.id)
		Expect(picked(ctx, machine, config, want, "")).To(Equal(held.String()))
		second := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("second", want), want))
		Expect(picked(ctx, machine, config, want, held.String())).To(Equal(inKernel(snapshot(ctx), second).CPUs.String()))
		exitCode, stdout, stderr := ask(ctx, "pick", "--root", machine, "--config", config, "--zone", fmt.Sprint(zone.id), "--cpus", fmt.Sprint(zone.cpus), "--used", held.String())
		Expect(exitCode).To(Equal(1), stdout+stderr)
	})

	It("generates a claim in which it finds no mistake, and which a pod holds", func(ctx context.Context) {
		namespace := createNamespace(ctx, "advice")
		want := oneCore(ctx)
		manifest := answer(ctx, "generate", "claim", "generated", "--cpus", fmt.Sprint(want.cpus), "--memory", "32Mi", "--numa-node", fmt.Sprint(want.zone), "-n", namespace)
		file := filepath.Join(GinkgoT().TempDir(), "claim.yaml")
		Expect(os.WriteFile(file, []byte(manifest), 0o600)).To(Succeed())
		Expect(answer(ctx, "lint", "--from-cluster", "-f", file)).To(BeEmpty())
		apply(ctx, namespace, "claim.yaml", manifest)
		pod := waitRunning(ctx, createPod(ctx, namespace, claimPod("generated", want)))
		got := inKernel(snapshot(ctx), pod)
		Expect(got.CPUs.Size()).To(BeEquivalentTo(want.cpus))
		Expect(got.Mems.String()).To(Equal(fmt.Sprint(want.zone)))
	})

	It("warns of a claim before it can harm", func(ctx context.Context) {
		file := filepath.Join(GinkgoT().TempDir(), "claim.yaml")
		Expect(os.WriteFile(file, []byte(answer(ctx, "generate", "claim", "unbound", "--cpus", "2")), 0o600)).To(Succeed())
		exitCode, stdout, _ := ask(ctx, "lint", "--from-cluster", "-f", file)
		Expect(exitCode).To(Equal(1))
		Expect(stdout).To(ContainSubstring("cpus-without-memory"))
	})

	It("prints the rule that keeps claims off a zone", func(ctx context.Context) {
		rules := cluster.Kubernetes.ResourceV1().DeviceTaintRules()
		if _, err := rules.List(ctx, metav1.ListOptions{}); apierrors.IsNotFound(err) {
			Skip("this version of Kubernetes has DeviceTaintRules only behind feature gates")
		}
		namespace, want := createNamespace(ctx, "advice"), oneCore(ctx)
		device := fmt.Sprintf("%s/numa-%d", node.name, want.zone)
		name := strings.TrimPrefix(strings.TrimSpace(answer(ctx, "taint", device, "-o", "name")), "devicetaintrule.resource.k8s.io/")
		apply(ctx, "", "rule.yaml", answer(ctx, "taint", device))
		removeRule := func(ctx context.Context) {
			if err := rules.Delete(ctx, name, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
				Expect(err).NotTo(HaveOccurred())
			}
		}
		DeferCleanup(removeRule)
		pod := drained(ctx, namespace, want)
		Eventually(ctx, func() string { _, stdout, _ := ask(ctx, "explain", "pod", pod.Name, "-n", namespace); return stdout }).
			Should(And(ContainSubstring("does not fit"), ContainSubstring("dra.numa/drain")))
		pod, err := readPod(ctx, pod)
		Expect(err).NotTo(HaveOccurred())
		Expect(pod.Spec.NodeName).To(BeEmpty())
		removeRule(ctx)
		waitRunning(ctx, pod)
	})

	It("names the pod whose eviction helps", func(ctx context.Context) {
		namespace := createNamespace(ctx, "advice")
		zone, _ := wholeZone(snapshot(ctx))
		all := request{cpus: int64(zone.cpus), zone: zone.id}
		low := waitRunning(ctx, createClaimed(ctx, namespace, withPriority(ctx, 1, withoutRequests(claimPod("low", all))), all))
		high := createClaimed(ctx, namespace, withPriority(ctx, 1000, withoutRequests(claimPod("high", all))), all)
		Eventually(ctx, func() string {
			_, stdout, stderr := ask(ctx, "suggest-evictions", "pod", high.Name, "-n", namespace, "-o", "name")
			return stdout + stderr
		}).Should(Equal("pod/" + low.Name + "\n"))
		deletePod(ctx, low)
		waitRunning(ctx, high)
	})

	It("tells a viewer of the cluster the same, and a tenant what they may see", func(ctx context.Context) {
		namespace := createNamespace(ctx, "advice")
		bindRoles(ctx, namespace)
		want := request{cpus: 1000, zone: anyZone}
		pending := createClaimed(ctx, namespace, claimPod("large", want), want)
		explain := []string{"explain", "pod", pending.Name, "-n", namespace}
		var all string
		Eventually(ctx, func() string { all = answer(ctx, explain...); return all }).Should(ContainSubstring("1000 cpu of one device"))
		Expect(answer(ctx, append(explain, "--as", viewerUser)...)).To(Equal(all))
		Expect(answer(ctx, "status", "--as", viewerUser)).To(ContainSubstring(pending.Name))
		exitCode, _, stderr := ask(ctx, "drift", "--as", viewerUser)
		Expect(exitCode).To(Equal(2))
		Expect(stderr).To(ContainSubstring("pods/exec"))

		text := answer(ctx, append(explain, "--as", tenantUser)...)
		Expect(text).To(ContainSubstring("you may not list"))
		Expect(text).NotTo(ContainSubstring(node.name))
		exitCode, _, stderr = ask(ctx, "status", "--as", tenantUser)
		Expect(exitCode).To(Equal(2))
		Expect(stderr).To(ContainSubstring("forbidden"))
	})
})

// Users of the last spec.
const (
	viewerUser = "e2e-viewer" // has the chart's roles for viewers
	tenantUser = "e2e-tenant" // may edit one namespace
)

// bindRoles gives both users their rights.
func bindRoles(ctx context.Context, namespace string) {
	GinkgoHelper()
	const viewer = "dra-driver-numa-viewer"
	rbac := cluster.Kubernetes.RbacV1()
	if _, err := rbac.ClusterRoles().Get(ctx, viewer, metav1.GetOptions{}); err != nil {
		lacks("the chart was installed without viewer.enabled=true: %v", err)
	}
	subject := func(user string) []rbacv1.Subject {
		return []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}
	}
	binding, err := rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: viewerUser + "-"},
		Subjects:   subject(viewerUser), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: viewer},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) error {
		return rbac.ClusterRoleBindings().Delete(ctx, binding.Name, metav1.DeleteOptions{})
	})
	_, err = rbac.RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: tenantUser},
		Subjects:   subject(tenantUser), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// withPriority gives a pod a priority.
func withPriority(ctx context.Context, priority int32, pod *corev1.Pod) *corev1.Pod {
	GinkgoHelper()
	classes := cluster.Kubernetes.SchedulingV1().PriorityClasses()
	class, err := classes.Create(ctx, &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}, Value: priority, PreemptionPolicy: ptr.To(corev1.PreemptNever),
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) error { return classes.Delete(ctx, class.Name, metav1.DeleteOptions{}) })
	pod.Spec.PriorityClassName = class.Name
	Eventually(ctx, func() error { // the API server knows the class a moment later
		_, err := cluster.Kubernetes.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}).Should(Succeed())
	return pod
}

// devicesIn returns the devices of slices by name, in JSON.
func devicesIn(list []resourceapi.ResourceSlice) string {
	GinkgoHelper()
	devices := map[string]resourceapi.Device{}
	for _, slice := range list {
		for _, device := range slice.Spec.Devices {
			devices[device.Name] = device
		}
	}
	Expect(devices).NotTo(BeEmpty())
	text, err := json.Marshal(devices)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// picked returns the CPUs that pick names.
func picked(ctx context.Context, machine, config string, want request, used string) string {
	GinkgoHelper()
	args := []string{"pick", "--root", machine, "--config", config, "--cpus", fmt.Sprint(want.cpus), "--zone", fmt.Sprint(want.zone), "-o", "json"}
	if used != "" {
		args = append(args, "--used", used)
	}
	var pick struct{ CPUs string }
	text := answer(ctx, args...)
	Expect(json.Unmarshal([]byte(text), &pick)).To(Succeed(), text)
	cpus, err := cpuset.Parse(pick.CPUs)
	Expect(err).NotTo(HaveOccurred())
	return cpus.String()
}

// copyOfMachine unpacks the node's files from a bundle, and writes a NodeConfig with what
// the daemon reserves.
func copyOfMachine(ctx context.Context, dir string) (machine, config string) {
	GinkgoHelper()
	unpack := func(archive, into string) {
		Expect(os.MkdirAll(into, 0o700)).To(Succeed())
		output, err := exec.CommandContext(ctx, "tar", "-xzf", archive, "-C", into).CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(output))
	}
	archive, unpacked := filepath.Join(dir, "bundle.tar.gz"), filepath.Join(dir, "bundle")
	answer(ctx, "gather", "--file", archive)
	unpack(archive, unpacked)
	machine = filepath.Join(dir, "machine")
	unpack(filepath.Join(unpacked, "machines", node.name+".tar.gz"), machine)
	effective, err := os.ReadFile(filepath.Join(unpacked, "configs", node.name+".yaml"))
	Expect(err).NotTo(HaveOccurred())
	var reserved string
	for line := range strings.Lines(string(effective)) {
		if list, found := strings.CutPrefix(line, "reservedCPUs: "); found {
			reserved = strings.TrimSpace(list)
		}
	}
	config = filepath.Join(dir, "node.yaml")
	text := "apiVersion: dra.numa/v1alpha1\nkind: NodeConfig\nreservedCPUs: " + reserved + "\n"
	Expect(os.WriteFile(config, []byte(text), 0o600)).To(Succeed())
	return machine, config
}

// drained creates a pod after a rule against the zone of its claim, and returns the first
// that the scheduler refuses: it hears of rules and of pods on different watches, so a pod
// made right after a rule can still get a node.
func drained(ctx context.Context, namespace string, want request) *corev1.Pod {
	GinkgoHelper()
	for attempt := range 5 {
		pod := createClaimed(ctx, namespace, claimPod(fmt.Sprintf("drained-%d", attempt), want), want)
		var answer string
		Eventually(ctx, func(g Gomega) string { answer = scheduling(ctx, g, pod); return answer }).ShouldNot(BeEmpty())
		if strings.HasPrefix(answer, corev1.PodReasonUnschedulable) {
			return pod
		}
		deletePod(ctx, pod)
	}
	Fail("the scheduler does not follow the rule")
	return nil
}
