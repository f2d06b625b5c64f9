package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/kernel"
)

var _ = Describe("a claim's partition that somebody breaks", ofKernel, Ordered, func() {
	const sibling = "sibling"
	var (
		pod  *corev1.Pod
		s    kernel.Snapshot
		held cpuset.Set
		main kernel.Process
	)

	BeforeAll(func(ctx context.Context) {
		namespace := createNamespace(ctx, "broken")
		core := oneCore(ctx)
		pod = claimPod("broken", core)
		pod.Spec.Containers = append(pod.Spec.Containers, plainContainer(sibling))
		pod = waitRunning(ctx, createClaimed(ctx, namespace, pod, core))
		s = snapshot(ctx)
		held, main = expectPinned(ctx, s, pod), inKernel(s, pod)
	})

	It("is repaired when it is switched off", func(ctx context.Context) {
		follow(ctx, main)
		Expect(observer.WriteCgroup(ctx, main.Cgroup, "cpuset.cpus.partition", "member")).To(Succeed())
		periods := expectSettled(ctx, main)
		Expect(len(periods)).To(BeNumerically(">", 1), "the partition never was off: %v", periods)
		Expect(expectPinned(ctx, snapshot(ctx), pod).String()).To(Equal(held.String()), "CPUs of the claim")
	})

	It("is repaired when its CPUs are taken away", func(ctx context.Context) {
		follow(ctx, main)
		Expect(observer.WriteCgroup(ctx, main.Cgroup, "cpuset.cpus.exclusive", "")).To(Succeed())
		expectSettled(ctx, main)
	})

	// Up to Linux 6.19 the kernel gives the partition up; later ones keep the
	// sibling off.
	It("is repaired when a sibling container is given its CPUs", func(ctx context.Context) {
		process, err := s.Container(pod, sibling)
		Expect(err).NotTo(HaveOccurred())
		for _, cpus := range []cpuset.Set{s.Online, held} {
			follow(ctx, main)
			Expect(observer.WriteCgroup(ctx, process.Cgroup, "cpuset.cpus", cpus.String())).To(Succeed())
			expectSettled(ctx, main)
			now, err := snapshot(ctx).Container(pod, sibling)
			Expect(err).NotTo(HaveOccurred())
			Expect(now.CPUs.Overlaps(held)).To(BeFalse(), "the sibling may run on %s, %s are the claim's", now.CPUs, held)
		}
	})
})
