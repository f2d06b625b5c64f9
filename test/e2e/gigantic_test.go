package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// withGiganticPages marks specs for a node that has hugepages of 1 GiB since it booted.
// Its NodeConfig reserves one of those of the last NUMA node.
var withGiganticPages = Label("gigantic", withOwnBoot)

var _ = Describe("a node with hugepages of 1 GiB", withGiganticPages, func() {
	It("keeps them for claims of their zone, but for those that are reserved", func(ctx context.Context) {
		const page = 1 << 30
		zone := node.zones[len(node.zones)-1]
		free := func() int { return freeGiganticPages(ctx, zone.id) }
		if free() != 2 || zone.hugepages1Gi != page {
			lacks("zone %s has %d free pages of 1 GiB and publishes %d bytes, want 2 pages of which one is reserved", zone.device, free(), zone.hugepages1Gi)
		}
		other := node.zones[len(node.zones)-2].id
		elsewhere := freeGiganticPages(ctx, other)
		namespace := createNamespace(ctx, "gigantic")
		want := request{cpus: int64(zone.threadsPerCore), memoryBytes: 64 << 20, hugepages1GiBytes: page, zone: zone.id}

		By("using the reserved page without a claim, and the other one with a claim")
		plain := waitRunning(ctx, createPod(ctx, namespace, withoutClaim(ctx, hugepagesPod("plain", request{hugepages1GiBytes: page, memoryBytes: 64 << 20}), zone)))
		Eventually(ctx, free).Should(Equal(1), "free pages of NUMA node %d", zone.id)
		pod := waitRunning(ctx, createClaimed(ctx, namespace, hugepagesPod("first", want), want))
		Eventually(ctx, free).Should(Equal(0), "free pages of NUMA node %d", zone.id)
		Expect(freeGiganticPages(ctx, other)).To(Equal(elsewhere), "free pages of NUMA node %d", other)
		expectPinned(ctx, snapshot(ctx), pod)
		onlyPages := request{memoryBytes: want.memoryBytes, hugepages1GiBytes: page, zone: zone.id} // there are CPUs for one claim
		second := createClaimed(ctx, namespace, withoutRequests(claimPod("second", onlyPages)), onlyPages)
		expectPending(ctx, second, noDevices)
		for _, pod := range []*corev1.Pod{second, pod, plain} {
			deletePod(ctx, pod)
		}
		deleteClaim(ctx, second)
		deleteClaim(ctx, pod)
		Expect(free()).To(Equal(2), "free pages of NUMA node %d", zone.id)

		By("using both pages without a claim")
		thief := waitRunning(ctx, createPod(ctx, namespace, withoutClaim(ctx, hugepagesPod("thief", request{hugepages1GiBytes: 2 * page, memoryBytes: 64 << 20}), zone)))
		Eventually(ctx, free).Should(Equal(0), "free pages of NUMA node %d", zone.id)
		expectWaitsFor(ctx, thief, want, "0 of hugepages 1Gi free, the claim needs 1Gi")
	})
})

// withoutClaim turns a pod into one that takes the pages of a zone without a claim: its
// program runs near them.
func withoutClaim(ctx context.Context, pod *corev1.Pod, zone publishedZone) *corev1.Pod {
	GinkgoHelper()
	inZone, _ := snapshot(ctx).Zone(zone.id)
	container := &pod.Spec.Containers[0]
	pod.Spec.ResourceClaims, container.Resources.Claims = nil, nil
	container.Command[2] = fmt.Sprintf("taskset -pc %s $$$$ && %s", inZone.CPUs, container.Command[2]) // $$ is the kubelet's for $
	return pod
}

// freeGiganticPages counts the free hugepages of 1 GiB of a NUMA node.
func freeGiganticPages(ctx context.Context, id int) int {
	GinkgoHelper()
	text, err := observer.Run(ctx, fmt.Sprintf("cat /sys/devices/system/node/node%d/hugepages/hugepages-1048576kB/free_hugepages", id))
	Expect(err).NotTo(HaveOccurred())
	count, err := strconv.Atoi(strings.TrimSpace(text))
	Expect(err).NotTo(HaveOccurred())
	return count
}
