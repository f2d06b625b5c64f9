package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("a claim whose CPUs another cgroup of the node holds", func() {
	It("does not let its container start, and the pod's event says why", func(ctx context.Context) {
		namespace := createNamespace(ctx, "blocked")
		zone, cpus := wholeZone(snapshot(ctx))
		DeferCleanup(func(ctx context.Context) { Expect(observer.Unblock(ctx)).To(Succeed()) })
		Expect(observer.Block(ctx, cpus)).To(Succeed())

		core := request{cpus: int64(zone.threadsPerCore), zone: zone.id}
		// Of a hook that fails, crun says the exit code. The daemon's event has the
		// reason.
		pod := createClaimed(ctx, namespace, claimPod("blocked", core), core)
		// The daemon refuses the claim, or the hook if the daemon has not seen it yet.
		Eventually(ctx, func() ([]string, error) { return eventMessages(ctx, namespace, pod.Name) }).
			Should(ContainElement(MatchRegexp("NUMAContainerRefused: A container did not start: pin container .* holds cpus|cpus .* are held by cgroup ")), "events of pod %s", pod.Name)
		s := snapshot(ctx)
		for _, process := range s.Processes {
			Expect(process.CPUs.Overlaps(cpus)).To(BeFalse(), "process %d of %s may run on the blocked %s", process.PID, process.Cgroup, cpus)
		}
		current, err := readPod(ctx, pod)
		Expect(err).NotTo(HaveOccurred())
		for _, status := range current.Status.ContainerStatuses {
			Expect(status.State.Running).To(BeNil(), "container %s of pod %s runs", status.Name, pod.Name)
		}

		By("freeing the CPUs")
		Expect(observer.Unblock(ctx)).To(Succeed())
		pod = waitRunning(ctx, pod)
		expectPinned(ctx, snapshot(ctx), pod)
	})
})
