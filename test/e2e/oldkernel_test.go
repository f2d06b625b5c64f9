package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// withOldKernel marks specs for a node whose kernel has no cpuset.cpus.exclusive, which
// Linux has since 6.7. All others need partitions, or do not care.
var withOldKernel = Label("old-kernel", withOwnBoot)

// withOwnBoot labels specs that need a node which was booted for them: make reach,
// make e2e-cache, make e2e-power and make upgrade-test run them.
const withOwnBoot = "boot"

var _ = Describe("a node whose kernel has no partitions", withOldKernel, func() {
	It("pins claims by the hook, and the runtime keeps other containers off, whoever restarts", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "old"), oneCore(ctx)
		bystander := waitRunning(ctx, createPod(ctx, namespace, plainPod("bystander")))
		if _, err := observer.ReadCgroup(ctx, inKernel(snapshot(ctx), bystander).Cgroup, "cpuset.cpus.exclusive"); err == nil {
			lacks("the kernel of node %s has cpuset.cpus.exclusive", node.name)
		}
		core.memoryBytes = 64 << 20
		pod := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("claim", core), core))
		held := inKernel(snapshot(ctx), pod).CPUs
		check := func(what string) {
			GinkgoHelper()
			By(what)
			Eventually(ctx, func(g Gomega) {
				s := snapshot(ctx)
				process := inKernel(s, pod)
				g.Expect(process.CPUs.String()).To(Equal(held.String()), "CPUs of the claim's container")
				g.Expect(process.Mems.String()).To(Equal(s.ZonesOf(held).String()), "memory of the claim's container")
				g.Expect(inKernel(s, bystander).CPUs.Overlaps(held)).To(BeFalse(), "the pod without a claim may run on %s", held)
			}).Should(Succeed())
			expectExclusive(ctx, pod, "SharedPool")
		}
		Expect(held.Size()).To(BeNumerically("==", core.cpus), "CPUs %s of the claim", held)
		check("looking at the kernel")
		killDriver(ctx)
		check("killing the driver")
		Expect(observer.Kill(ctx, inKernel(snapshot(ctx), pod).PID)).To(Succeed())
		pod = waitRestarted(ctx, pod)
		check("restarting the claim's container")
		deletePod(ctx, pod)
		Eventually(ctx, func() bool { return held.IsSubsetOf(inKernel(snapshot(ctx), bystander).CPUs) }).
			Should(BeTrue(), "the pod without a claim may run on %s again", held)
	})

	It("keeps what a pod has that is deleted by force, until its processes have ended", func(ctx context.Context) {
		for _, late := range deleteHolders(ctx, "alone", "mixed") {
			Expect(inKernel(snapshot(ctx), late.pod).CPUs.String()).To(Equal(late.cpus.String()), "CPUs of pod %s, which has waited", late.pod.Name)
		}
	})
})
