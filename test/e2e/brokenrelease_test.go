package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// withBroken marks specs that upgrade to a release whose hook cannot be run.
var withBroken = Label("broken", withOwnBoot)

var _ = Describe("a release that could prepare no claim", withBroken, Ordered, func() {
	u := &upgrading{}
	var late *corev1.Pod // of a claim that comes meanwhile

	BeforeAll(func(ctx context.Context) {
		u.begin(ctx)
		u.hold(ctx, "old")
	})

	It("is never ready, so that its rollout stops at this node, and says why", func(ctx context.Context) {
		expectKept := u.follow(ctx)

		_, err := helm(ctx, "upgrade", *newChart, "--reset-then-reuse-values", "--set=image.tag="+*newTag) // without --wait
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, nodeEvents).Should(ContainElement(MatchRegexp("^NUMADriverNotReady: .*numa-pin")), "events of the node")
		late = createClaimed(ctx, u.namespace, claimPod("late", u.core), u.core)
		Consistently(ctx, func(g Gomega) {
			set, err := cluster.Kubernetes.AppsV1().DaemonSets(*driverNamespace).Get(ctx, *driverDaemonSet, metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(set.Status.NumberReady).To(BeZero(), "ready daemons")
			pod, err := readPod(ctx, late)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pod.Status.Phase).To(Equal(corev1.PodPending), "phase of a pod with a new claim")
		}).Should(Succeed())

		u.check(ctx)
		expectKept("meanwhile")
	})

	It("is rolled back, and pods that came meanwhile start", func(ctx context.Context) {
		_, err := helm(ctx, "rollback", "--wait")
		Expect(err).NotTo(HaveOccurred())
		waitDriverReady(ctx)
		u.check(ctx)
		late = waitRunning(ctx, late) // after attempts that the hook let fail
		Expect(expectPinned(ctx, snapshot(ctx), late).Overlaps(u.holders[0].has)).To(BeFalse(), "CPUs of both claims")
		u.pass(ctx)
		u.check(ctx)
		deletePod(ctx, late)
		deleteClaim(ctx, late)
		u.end(ctx)
	})
})
