package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	resourceapi "k8s.io/api/resource/v1"
)

var _ = Describe("a node on which an administrator has stopped pinning", ofKernel, atLength, func() {
	It("starts new containers unpinned and says so, until the file is gone", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "stopped"), oneCore(ctx)
		early := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("early", core), core))
		held := expectPinned(ctx, snapshot(ctx), early)

		stopPinning(ctx)
		expectZonesSay(ctx, "none")
		Eventually(ctx, nodeEvents).Should(ContainElement(HavePrefix("NUMAModeLost: The exclusivity of claims on this node is none, and was kernel")))
		late := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("late", core), core))
		s := snapshot(ctx)
		process := inKernel(s, late)
		Expect(process.CPUs.String()).To(Equal(s.Online.Difference(held).String()), "CPUs of a container that starts meanwhile")
		Expect(process.Partition).NotTo(Equal("root"), "its partition")
		Expect(expectPinned(ctx, s, early).String()).To(Equal(held.String()), "CPUs of a container that runs")
		expectNotExclusive(ctx, late, "NotPinned")
		expectEvent(ctx, late, "NUMAContainerNotPinned")

		goOnPinning(ctx)
		expectZonesSay(ctx, "kernel")
		Eventually(ctx, nodeEvents).Should(ContainElement(HavePrefix("NUMAModeRestored: The exclusivity of claims on this node is kernel, and was none")))
		Expect(observer.Kill(ctx, process.PID)).To(Succeed())
		late = waitRestarted(ctx, late)
		s = snapshot(ctx)
		Expect(expectPinned(ctx, s, late).Overlaps(held)).To(BeFalse(), "CPUs of both claims")
		expectExclusive(ctx, late, "KernelPartition")
	})
})

// nodeEvents are the messages of the events on the node.
func nodeEvents(ctx context.Context) ([]string, error) {
	return eventMessages(ctx, "default", node.name)
}

// stopFile is docs/guarantees.md's, in the observer.
const stopFile = "/var/lib/kubelet/plugins/dra.numa/stop-pinning"

func stopPinning(ctx context.Context) {
	GinkgoHelper()
	DeferCleanup(goOnPinning)
	Expect(observer.WriteFile(ctx, stopFile, "")).To(Succeed())
}

func goOnPinning(ctx context.Context) {
	GinkgoHelper()
	_, err := observer.Run(ctx, `rm -f "/proc/1/root$1"`, stopFile)
	Expect(err).NotTo(HaveOccurred())
}

// expectZonesSay waits until the published zones have the exclusivity.
func expectZonesSay(ctx context.Context, exclusivity string) {
	GinkgoHelper()
	for _, zone := range node.zones {
		waitPublished(ctx, zone.device, "exclusivity "+exclusivity, func(device resourceapi.Device) bool {
			return attribute(device, driverName+"/exclusivity") == exclusivity
		})
	}
}
