package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

var _ = Describe("a node whose zones are all full", Ordered, func() {
	var (
		namespace string
		holders   []*corev1.Pod
	)

	BeforeAll(func(ctx context.Context) {
		namespace = createNamespace(ctx, "full")
		holders = fillZones(ctx, namespace)
	})

	It("keeps its reserved CPUs out of every claim", func(ctx context.Context) {
		s := snapshot(ctx)
		var claimed cpuset.Set
		for _, holder := range holders {
			cpus := expectPinned(ctx, s, holder)
			Expect(cpus.Overlaps(claimed)).To(BeFalse(), "pod %s may run on %s, others on %s", holder.Name, cpus, claimed)
			claimed = claimed.Union(cpus)
		}
		left := s.Online.Difference(claimed)
		Expect(left.IsEmpty()).To(BeFalse(), "claims hold every CPU of the node")
		Expect(shared(s).String()).To(Equal(left.String()), "CPUs of a pod without a claim while %s are claimed", claimed)
		reserved := kubeletReserved(ctx)
		Expect(reserved.Overlaps(claimed)).To(BeFalse(), "claims hold %s, the kubelet reserves %s", claimed, reserved)
	})

	It("leaves a further pod pending with the reason, and runs it when one is gone", func(ctx context.Context) {
		zone := node.zones[0]
		core := request{cpus: int64(zone.threadsPerCore), zone: anyZone}
		further := createClaimed(ctx, namespace, withoutRequests(claimPod("further", core)), core)
		expectPending(ctx, further, noDevices)

		deletePod(ctx, holders[0])
		deleteClaim(ctx, holders[0])
		further = waitRunning(ctx, further)
		expectPinned(ctx, snapshot(ctx), further)
	})
})

// fillZones runs a pod for each zone, whose claim has all CPUs of the zone.
func fillZones(ctx context.Context, namespace string) (holders []*corev1.Pod) {
	GinkgoHelper()
	for _, zone := range node.zones {
		whole := request{cpus: int64(zone.cpus), zone: zone.id}
		// No requests: other pods' requests may leave less than all CPUs.
		pod := withoutRequests(claimPod(fmt.Sprintf("holder-%d", zone.id), whole))
		holders = append(holders, createClaimed(ctx, namespace, pod, whole))
	}
	for i, holder := range holders {
		holders[i] = waitRunning(ctx, holder)
	}
	return holders
}

var _ = Describe("a claim larger than any zone", func() {
	It("leaves its pod pending with the reason", func(ctx context.Context) {
		largest := 0
		for _, zone := range node.zones {
			largest = max(largest, zone.cpus+zone.threadsPerCore)
		}
		tooMuch := request{cpus: int64(largest), zone: anyZone}
		pod := withoutRequests(claimPod("too-large", tooMuch))
		expectPending(ctx, createClaimed(ctx, createNamespace(ctx, "large"), pod, tooMuch), noDevices)
	})
})

// noDevices is why the scheduler refuses a pod because of its claim.
const noDevices = "cannot allocate all claims"

// expectPending checks that the scheduler refuses a pod, says so with the reason,
// and does not change its mind.
func expectPending(ctx context.Context, pod *corev1.Pod, reason string) {
	GinkgoHelper()
	scheduled := func(g Gomega) string { return scheduling(ctx, g, pod) }
	unschedulable := And(HavePrefix(corev1.PodReasonUnschedulable), ContainSubstring(reason))
	Eventually(ctx, scheduled).Should(unschedulable, "condition PodScheduled of pod %s", pod.Name)
	Consistently(ctx, scheduled).Should(unschedulable, "condition PodScheduled of pod %s", pod.Name)
}

// scheduling is what the scheduler says of a pod: empty until it has decided, and no more
// than the separator when the pod has a node.
func scheduling(ctx context.Context, g Gomega, pod *corev1.Pod) string {
	current, err := readPod(ctx, pod)
	g.Expect(err).NotTo(HaveOccurred())
	for _, condition := range current.Status.Conditions {
		if condition.Type == corev1.PodScheduled {
			return condition.Reason + ": " + condition.Message
		}
	}
	return ""
}
