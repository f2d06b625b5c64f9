package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("a driver that is killed between Prepare and Unprepare", func() {
	It("keeps its grants and leaks nothing", func(ctx context.Context) {
		namespace := createNamespace(ctx, "killed")
		first := calm(ctx)
		zone, zoneCPUs := wholeZone(first)
		sharedBefore := shared(first)
		core := request{cpus: int64(zone.threadsPerCore), zone: zone.id}
		early := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("early", core), core))
		held := expectPinned(ctx, snapshot(ctx), early)

		By("killing the driver")
		killDriver(ctx)
		Expect(expectPinned(ctx, snapshot(ctx), early).String()).To(Equal(held.String()), "CPUs of the pod after the driver's restart")

		By("preparing another claim of the same zone")
		late := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("late", core), core))
		s := snapshot(ctx)
		Expect(expectPinned(ctx, s, early).String()).To(Equal(held.String()), "CPUs of the pod after another claim was prepared")
		others := expectPinned(ctx, s, late)
		Expect(others.Overlaps(held)).To(BeFalse(), "the second claim was given %s, the first holds %s", others, held)

		By("deleting both")
		claim := claimOf(ctx, early)
		deletePod(ctx, early)
		deletePod(ctx, late)
		specs, err := observer.CDISpecsNaming(ctx, string(claim.UID))
		Expect(err).NotTo(HaveOccurred())
		Expect(specs).To(BeEmpty(), "CDI specs of a claim that is gone")
		Eventually(ctx, func() string { return shared(snapshot(ctx)).String() }).Should(Equal(sharedBefore.String()),
			"CPUs of a pod without a claim after the claims are gone")
		deleteClaim(ctx, early)
		deleteClaim(ctx, late)

		By("claiming the whole zone")
		whole := request{cpus: int64(zone.cpus), zone: zone.id}
		all := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("whole", whole), whole))
		Expect(expectPinned(ctx, snapshot(ctx), all).String()).To(Equal(zoneCPUs.String()), "CPUs of a claim of the whole zone")
	})
})

var _ = Describe("a container that restarts while the driver is away", func() {
	It("is pinned again", func(ctx context.Context) {
		namespace := createNamespace(ctx, "away")
		core := oneCore(ctx)
		pod := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("restarted", core), core))
		s := snapshot(ctx)
		held := expectPinned(ctx, s, pod)

		By("removing the driver")
		stopDriver(ctx)
		Expect(observer.Kill(ctx, inKernel(s, pod).PID)).To(Succeed())
		Eventually(ctx, func(g Gomega) {
			current, err := readPod(ctx, pod)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(current.Status.ContainerStatuses[0].RestartCount).To(BeNumerically("==", 1))
			g.Expect(current.Status.ContainerStatuses[0].State.Running).NotTo(BeNil())
			pod = current
		}).Should(Succeed(), "the kubelet has not restarted the container")
		Expect(driverPods(ctx)).To(BeEmpty(), "the driver came back too early for this test")
		Expect(expectPinned(ctx, snapshot(ctx), pod).String()).To(Equal(held.String()), "CPUs of the restarted container")

		By("bringing the driver back")
		startDriver(ctx)
		Expect(expectPinned(ctx, snapshot(ctx), pod).String()).To(Equal(held.String()), "CPUs of the container after the driver's return")
	})
})
