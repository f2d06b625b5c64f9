package e2e

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The handlers of the rig. The last one ignores memory policies; see test/rig/README.md.
const newCrun, oldCrun = "crun", "crun-old"

var _ = Describe("memory policies of claims", ofKernel, Ordered, func() {
	var namespace string
	var pods map[string]*corev1.Pod

	// All at once: a pod takes seconds to start.
	BeforeAll(func(ctx context.Context) {
		if runtimeProcess(ctx) == crioProcess {
			Skip("CRI-O 1.34 passes no memory policy on, and the driver refuses such claims")
		}
		namespace = createNamespace(ctx, "mempolicy")
		core := oneCore(ctx)
		core.memoryBytes, core.zone = 64<<20, anyZone
		pods = map[string]*corev1.Pod{}
		for _, handler := range []string{"runc", newCrun, oldCrun} {
			needHandler(ctx, handler)
			pod := onRuntime(ctx, withoutRequests(claimPod(handler, core)), handler)
			pods[handler] = createConfigured(ctx, namespace, pod, core, `"memoryPolicy": "bind"`)
		}
		for handler, pod := range pods {
			pods[handler] = waitRunning(ctx, pod)
		}
	})

	It("are set by an OCI runtime that knows them", func(ctx context.Context) {
		for _, handler := range []string{"runc", newCrun} {
			pod := pods[handler]
			expectRuntime(ctx, pod, handler)
			process := inKernel(snapshot(ctx), pod)
			Expect(policyOf(ctx, process.PID)).To(Equal("bind=static:"+process.Mems.String()), "memory policy under %s", handler)
			expectMemoryPolicy(ctx, pod, metav1.ConditionTrue, "Requested")
		}
	})

	It("are seen to be ignored", func(ctx context.Context) {
		pod := pods[oldCrun]
		expectRuntime(ctx, pod, oldCrun)
		process := inKernel(snapshot(ctx), pod)
		Expect(policyOf(ctx, process.PID)).To(Equal("default"), "memory policy under %s", oldCrun)
		expectMemoryPolicy(ctx, pod, metav1.ConditionFalse, "Ignored")
		expectEvent(ctx, pod, "NUMAMemoryPolicyIgnored")
		expectExclusive(ctx, pod, "KernelPartition") // the CPUs are as they should be
		drift := func() string { _, stdout, stderr := ask(ctx, "drift"); return stdout + stderr }
		Eventually(ctx, drift).Should(ContainSubstring("policy-ignored"))
		deletePod(ctx, pod)
		Eventually(ctx, drift).ShouldNot(ContainSubstring("policy-ignored"))
	})
})

// needHandler ends a spec on a node without the handler.
func needHandler(ctx context.Context, handler string) {
	GinkgoHelper()
	object, err := cluster.Kubernetes.CoreV1().Nodes().Get(ctx, node.name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	if !slices.ContainsFunc(object.Status.RuntimeHandlers, func(h corev1.NodeRuntimeHandler) bool { return h.Name == handler }) {
		lacks("node %s has no runtime handler %s", node.name, handler)
	}
}

// policyOf is the memory policy of a task: that of its stack, see numa_maps in proc(5).
func policyOf(ctx context.Context, pid int) string {
	GinkgoHelper()
	maps, err := observer.Run(ctx, `cat "/proc/$1/numa_maps"`, fmt.Sprint(pid))
	Expect(err).NotTo(HaveOccurred())
	found := regexp.MustCompile(`(?m)^[0-9a-f]+ ([^/\n]*) stack `).FindStringSubmatch(maps)
	Expect(found).To(HaveLen(2), "line of the stack in numa_maps of %d:\n%s", pid, maps)
	return found[1]
}

// expectMemoryPolicy waits for the condition MemoryPolicy of the only device of the pod's
// claim.
func expectMemoryPolicy(ctx context.Context, pod *corev1.Pod, status metav1.ConditionStatus, reason string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		claim := claimOf(ctx, pod)
		g.Expect(claim.Status.Devices).To(HaveLen(1), "devices in the status of claim %s", claim.Name)
		var said []string
		for _, condition := range claim.Status.Devices[0].Conditions {
			if condition.Type == "MemoryPolicy" {
				said = append(said, string(condition.Status)+" "+condition.Reason)
			}
		}
		g.Expect(said).To(ConsistOf(string(status)+" "+reason), "condition MemoryPolicy of claim %s", claim.Name)
	}).Should(Succeed())
}
