package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

var _ = Describe("a machine that changes", ofKernel, ofMachine, func() {
	It("is published anew when hugepages are added and taken away", func(ctx context.Context) {
		const pages, pageBytes = 2, 2 << 20
		zone := node.zones[len(node.zones)-1]
		if zone.hugepages2Mi == 0 {
			lacks("zone %s publishes no 2 MiB hugepages", zone.device)
		}
		before := zone.hugepages2Mi / pageBytes
		DeferCleanup(func(ctx context.Context) { Expect(observer.SetHugepages(ctx, zone.id, int(before))).To(Succeed()) })
		for _, count := range []int64{before + pages, before} {
			Expect(observer.SetHugepages(ctx, zone.id, int(count))).To(Succeed())
			expectPublished(ctx, zone.device, fmt.Sprintf("%d hugepages", count), offers("hugepages2Mi", count*pageBytes))
		}
	})

	// Nobody can repair a partition that lacks a CPU. Up to Linux 6.12 at least, the
	// last CPU of a partition cannot be taken offline.
	It("tells everybody of a claim that cannot be repaired: its CPUs went offline", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "offline"), oneCore(ctx)
		pod := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("offline", core), core))
		held := expectPinned(ctx, snapshot(ctx), pod)
		zone := zoneOf(claimOf(ctx, pod).Status.Allocation.Devices.Results[0].Device)
		kept, _ := held.First()
		gone := held.Difference(cpuset.New(kept))
		if gone.IsEmpty() {
			lacks("a core of zone %s has one CPU only", zone.device)
		}
		DeferCleanup(func(ctx context.Context) { Expect(observer.SetOnline(ctx, gone, true)).To(Succeed()) })

		Expect(observer.SetOnline(ctx, gone, false)).To(Succeed())
		expectPublished(ctx, zone.device, "fewer CPUs and a taint", offers("cpu", int64(zone.cpus-held.Size()), tainted))
		expectNotExclusive(ctx, pod, "PartitionInvalid")
		expectHealth(ctx, pod, "are offline")
		expectEvent(ctx, pod, "NUMAExclusivityLost")

		By("bringing them back")
		Expect(observer.SetOnline(ctx, gone, true)).To(Succeed())
		expectPublished(ctx, zone.device, "all CPUs and no taint", offers("cpu", int64(zone.cpus), untainted))
		Expect(expectPinned(ctx, snapshot(ctx), pod).String()).To(Equal(held.String()), "CPUs of the claim")
		expectExclusive(ctx, pod, "KernelPartition")
		expectHealth(ctx, pod)
		expectEvent(ctx, pod, "NUMAExclusivityRestored")
	})
})

// expectHealth waits until the devices of a pod that are not healthy are those
// whose messages have these texts.
func expectHealth(ctx context.Context, pod *corev1.Pod, sick ...string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		current, err := readPod(ctx, pod)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(current.Status.ContainerStatuses[0].AllocatedResourcesStatus).NotTo(BeEmpty(), "allocatedResourcesStatus of pod %s", pod.Name)
		var messages []string
		for _, status := range current.Status.ContainerStatuses[0].AllocatedResourcesStatus {
			for _, resource := range status.Resources {
				if resource.Health != corev1.ResourceHealthStatusHealthy {
					messages = append(messages, ptr.Deref(resource.Message, string(resource.Health)))
				}
			}
		}
		g.Expect(messages).To(HaveLen(len(sick)), "what is not healthy of pod %s", pod.Name)
		for i, text := range sick {
			g.Expect(messages[i]).To(ContainSubstring(text), "health of pod %s", pod.Name)
		}
	}).Should(Succeed())
}

func expectEvent(ctx context.Context, pod *corev1.Pod, reason string) {
	GinkgoHelper()
	Eventually(ctx, func() ([]string, error) { return eventMessages(ctx, pod.Namespace, pod.Name) }).
		Should(ContainElement(HavePrefix(reason+":")), "events of pod %s", pod.Name)
}
