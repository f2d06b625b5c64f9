package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
)

// withNext marks specs that upgrade to a release whose checkpoint the present one does not
// know: that of make upgrade-next.
var withNext = Label("next", withOwnBoot)

var _ = Describe("a release with a newer checkpoint", withNext, Ordered, func() {
	u := &upgrading{}
	var late *corev1.Pod // of a claim that comes while no daemon serves the node

	toNext := func(ctx context.Context) error {
		_, err := helm(ctx, "upgrade", *newChart, "--reset-then-reuse-values", "--set=image.tag="+*newTag, "--wait")
		return err
	}

	BeforeAll(func(ctx context.Context) {
		u.begin(ctx)
		u.hold(ctx, "old")
	})

	It("is upgraded to as any other", func(ctx context.Context) {
		u.change(ctx, "upgrade to the next release", *newTag, func() error { return toNext(ctx) })
		u.hold(ctx, "new")
	})

	It("cannot be left: the older daemon says why in one line, and containers keep their CPUs", func(ctx context.Context) {
		expectKept := u.follow(ctx)

		_, err := helm(ctx, "rollback") // without --wait: the older daemon never gets ready
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, endings).Should(ContainElement(MatchRegexp(
			`error: [^\n]*/%s: %s: format "[^"]+", version 2, this build reads format "[^"]+", version 1; install the build that wrote it`,
			ledger.CheckpointName, ledger.ErrOtherBuild)),
			"what the containers of the older daemon say")
		late = createClaimed(ctx, u.namespace, claimPod("late", u.core), u.core)
		Consistently(ctx, func(g Gomega) {
			pod, err := readPod(ctx, late)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pod.Status.Phase).To(Equal(corev1.PodPending), "phase of a pod with a new claim")
		}).WithTimeout(limit(consistently)).Should(Succeed())

		u.check(ctx)
		expectKept("meanwhile")
	})

	It("goes on from its checkpoint when it is installed again", func(ctx context.Context) {
		Expect(toNext(ctx)).To(Succeed())
		waitDriverReady(ctx)
		u.check(ctx)
		late = waitRunning(ctx, late)
		cpus := expectPinned(ctx, snapshot(ctx), late)
		u.pass(ctx)
		u.holders = append(u.holders, holder{late, cpus})
		u.check(ctx)
		u.end(ctx)
	})
})

// endings returns what the containers of the driver's pods on the node said when they last
// ended.
func endings(ctx context.Context) (messages []string, err error) {
	pods, err := driverPods(ctx)
	for _, pod := range pods {
		for _, status := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
			for _, state := range []corev1.ContainerState{status.State, status.LastTerminationState} {
				if state.Terminated != nil {
					messages = append(messages, state.Terminated.Message)
				}
			}
		}
	}
	return messages, err
}
