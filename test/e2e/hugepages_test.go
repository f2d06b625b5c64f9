package e2e

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/test/kernel"
)

var _ = Describe("a claim of CPUs, memory and hugepages", func() {
	It("takes the hugepages of its zone and of no other", func(ctx context.Context) {
		const pages, pageBytes = 2, 2 << 20
		// The last zone: without the claim the kernel would start at the first.
		zone := node.zones[len(node.zones)-1]
		if zone.hugepages2Mi < pages*pageBytes {
			lacks("zone %s publishes %d bytes of 2 MiB hugepages", zone.device, zone.hugepages2Mi)
		}
		want := request{
			cpus: int64(zone.threadsPerCore), memoryBytes: 64 << 20,
			hugepages2MiBytes: pages * pageBytes, zone: zone.id,
		}
		namespace := createNamespace(ctx, "huge")
		before := snapshot(ctx)
		pod := waitRunning(ctx, createClaimed(ctx, namespace, hugepagesPod("huge", want), want))

		wanted := freeHugepages(before)
		wanted[zone.id] -= pages
		var held kernel.Snapshot
		Eventually(ctx, func() map[int]int {
			held = snapshot(ctx)
			return freeHugepages(held)
		}).Should(Equal(wanted), "free 2 MiB hugepages by NUMA node, the claim is of %d", zone.id)
		expectPinned(ctx, held, pod)

		deletePod(ctx, pod)
		Expect(freeHugepages(snapshot(ctx))).To(Equal(freeHugepages(before)), "free 2 MiB hugepages by NUMA node after the pod is gone")
	})

	It("does not start on pages that a pod without a claim has", func(ctx context.Context) {
		const pageBytes = 2 << 20
		zone := node.zones[len(node.zones)-1]
		s := snapshot(ctx)
		inZone, _ := s.Zone(zone.id)
		if inZone.FreeHugepages < 2 {
			lacks("NUMA node %d has %d free hugepages of 2 MiB", zone.id, inZone.FreeHugepages)
		}
		namespace := createNamespace(ctx, "huge")
		taken := request{hugepages2MiBytes: int64(inZone.FreeHugepages-1) * pageBytes, memoryBytes: 64 << 20}
		thief := waitRunning(ctx, createPod(ctx, namespace, withoutClaim(ctx, hugepagesPod("thief", taken), zone)))
		Eventually(ctx, func() int { return freeHugepages(snapshot(ctx))[zone.id] }).Should(Equal(1), "free 2 MiB hugepages of NUMA node %d", zone.id)

		want := request{cpus: int64(zone.threadsPerCore), memoryBytes: 64 << 20, hugepages2MiBytes: 2 * pageBytes, zone: zone.id}
		expectWaitsFor(ctx, thief, want, "2Mi of hugepages 2Mi free, the claim needs 4Mi")
	})

	It("is said to lack pages that an administrator takes from the pool", ofMachine, func(ctx context.Context) {
		const pageBytes = 2 << 20
		zone := node.zones[len(node.zones)-1]
		pages := zone.hugepages2Mi / pageBytes
		if pages < 2 {
			lacks("zone %s publishes %d hugepages of 2 MiB", zone.device, pages)
		}
		namespace := createNamespace(ctx, "huge")
		want := request{cpus: int64(zone.threadsPerCore), hugepages2MiBytes: zone.hugepages2Mi, zone: zone.id}
		pod := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("idle", want), want)) // it uses no page
		DeferCleanup(func(ctx context.Context) { Expect(observer.SetHugepages(ctx, zone.id, int(pages))).To(Succeed()) })
		Expect(observer.SetHugepages(ctx, zone.id, int(pages-1))).To(Succeed())
		missing := fmt.Sprintf("NUMA node %d has %dMi of hugepages 2Mi, but claims hold %dMi", zone.id, 2*(pages-1), 2*pages)
		expectHealth(ctx, pod, missing)
		Eventually(ctx, eventMessages).WithArguments("default", node.name).Should(ContainElement("NUMAHugepagesMissing: device "+zone.device+": "+missing), "events of node %s", node.name)
		expectPublished(ctx, zone.device, "a taint", tainted)

		Expect(observer.SetHugepages(ctx, zone.id, int(pages))).To(Succeed())
		Eventually(ctx, eventMessages).WithArguments("default", node.name).Should(ContainElement(HavePrefix("NUMAHugepagesRestored: ")), "events of node %s", node.name)
	})
})

// expectWaitsFor checks that a claim waits, and its pod says why, while a pod without a
// claim has its hugepages. Why is what its NUMA node has.
func expectWaitsFor(ctx context.Context, thief *corev1.Pod, want request, why string) {
	GinkgoHelper()
	late := createClaimed(ctx, thief.Namespace, hugepagesPod("late", want), want)
	Eventually(ctx, eventMessages).WithArguments(late.Namespace, late.Name).Should(ContainElement(
		ContainSubstring(fmt.Sprintf("NUMA node %d has %s: pods without a claim", want.zone, why))), "events of pod late")
	deletePod(ctx, thief)
	late = waitRunning(ctx, late)
	expectPinned(ctx, snapshot(ctx), late)
}

// hugepagesPod is a claim pod that allocates its hugepages as a file: hugetlbfs
// knows fallocate, but not write.
func hugepagesPod(name string, want request) *corev1.Pod {
	pod := claimPod(name, want)
	size, bytes := corev1.ResourceName(corev1.ResourceHugePagesPrefix+"2Mi"), want.hugepages2MiBytes
	if want.hugepages1GiBytes > 0 {
		size, bytes = corev1.ResourceHugePagesPrefix+"1Gi", want.hugepages1GiBytes
	}
	pod.Spec.Volumes = []corev1.Volume{{Name: "hugepages", VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMedium("HugePages-" + strings.TrimPrefix(string(size), corev1.ResourceHugePagesPrefix))},
	}}}
	container := &pod.Spec.Containers[0]
	container.VolumeMounts = []corev1.VolumeMount{{Name: "hugepages", MountPath: "/hugepages"}}
	container.Resources.Requests[corev1.ResourceMemory] = *resource.NewQuantity(want.memoryBytes, resource.BinarySI)
	container.Resources.Limits = corev1.ResourceList{size: *resource.NewQuantity(bytes, resource.BinarySI)}
	container.Command = []string{"/bin/sh", "-c", fmt.Sprintf(
		"fallocate -l %d /hugepages/buffer && exec sleep 2147483647", bytes)}
	return pod
}

// freeHugepages counts the free hugepages of 2 MiB by NUMA node.
func freeHugepages(s kernel.Snapshot) map[int]int {
	free := map[int]int{}
	for _, zone := range s.Zones {
		free[zone.ID] = zone.FreeHugepages
	}
	return free
}
