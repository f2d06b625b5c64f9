package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// Folders of the node, as the chart mounts them by default.
const (
	kubeletFolder = "/var/lib/kubelet"
	driverFolder  = kubeletFolder + "/plugins/dra.numa"
	hookPath      = driverFolder + "-hook/numa-pin"
	formerHook    = driverFolder + "/numa-pin" // where former versions installed it
)

var _ = Describe("the driver's containers", func() {
	It("cannot replace the hook, and the daemon sees nothing of other pods", func(ctx context.Context) {
		for _, path := range []string{hookPath, hookPath + ".new"} {
			Expect(observer.Append(ctx, driverProcess, "", path)).To(HaveSuffix("Read-only file system"), "daemon opens %s to write", path)
		}
		Expect(observer.Append(ctx, driverProcess, "", driverFolder+"/instance.lock")).To(BeEmpty(), "daemon opens a file of its own")
		Expect(observer.List(ctx, driverProcess, "", kubeletFolder)).To(ConsistOf("plugins", "plugins_registry"), "the kubelet's folder in the daemon")
		Expect(observer.List(ctx, driverProcess, "", kubeletFolder+"/plugins")).To(ConsistOf("dra.numa", "dra.numa-hook"), "plugins in the daemon")
		Expect(observer.List(ctx, keeperProcess, keeperArgument, kubeletFolder+"/plugins")).To(ConsistOf("dra.numa"), "plugins in the keeper")
		Expect(observer.Append(ctx, keeperProcess, keeperArgument, "/host/kubelet/plugins/dra.numa-hook/numa-pin")).To(
			HaveSuffix("Read-only file system"), "keeper opens the hook to write")
	})
})

var _ = Describe("a claim whose CDI spec names the hook of a former version", func() {
	It("has its containers pinned before, during and after the upgrade", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "former"), oneCore(ctx)
		pod := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("former", core), core))
		held := expectPinned(ctx, snapshot(ctx), pod)
		restart := func() {
			GinkgoHelper()
			Expect(observer.Kill(ctx, inKernel(snapshot(ctx), pod).PID)).To(Succeed())
			pod = waitRestarted(ctx, pod)
			Expect(expectPinned(ctx, snapshot(ctx), pod).String()).To(Equal(held.String()), "CPUs of the restarted container")
		}

		By("having the hook where the former version had it, and nowhere else")
		stopDriver(ctx)
		Expect(observer.MoveHook(ctx, hookPath, formerHook)).To(Succeed())
		Expect(observer.CDISpecsNaming(ctx, `"`+formerHook+`"`)).To(HaveLen(1), "CDI specs that name the former hook")
		restart()
		Expect(driverPods(ctx)).To(BeEmpty(), "the driver came back too early for this test")

		By("starting this version")
		startDriver(ctx)
		Expect(observer.CDISpecsNaming(ctx, `"`+formerHook+`"`)).To(BeEmpty(), "CDI specs that name the former hook after the upgrade")
		Expect(observer.HasFile(ctx, formerHook)).To(BeTrue(), "a container that was just created may still need the former hook")
		restart()

		By("starting the daemon once more")
		killDriver(ctx)
		Eventually(ctx, observer.HasFile).WithArguments(ctx, formerHook).WithTimeout(limit(time.Minute)).Should(BeFalse(), "the former hook is there")
		restart()
	})
})
