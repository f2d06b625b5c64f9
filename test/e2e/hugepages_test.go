package e2e

import (
	"context"
	"fmt"

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
		thief := hugepagesPod("thief", taken)
		thief.Spec.ResourceClaims, thief.Spec.Containers[0].Resources.Claims = nil, nil
		thief.Spec.Containers[0].Command[2] = fmt.Sprintf("taskset -pc %s $$$$ && %s", inZone.CPUs, thief.Spec.Containers[0].Command[2]) // $$ is the kubelet's for $
		thief = waitRunning(ctx, createPod(ctx, namespace, thief))
		Eventually(ctx, func() int { return freeHugepages(snapshot(ctx))[zone.id] }).Should(Equal(1), "free 2 MiB hugepages of NUMA node %d", zone.id)

		want := request{cpus: int64(zone.threadsPerCore), memoryBytes: 64 << 20, hugepages2MiBytes: 2 * pageBytes, zone: zone.id}
		late := createClaimed(ctx, namespace, hugepagesPod("late", want), want)
		Eventually(ctx, eventMessages).WithArguments(namespace, late.Name).Should(ContainElement(
			ContainSubstring(fmt.Sprintf("NUMA node %d has 2Mi of hugepages 2Mi free, the claim needs 4Mi: pods without a claim", zone.id))), "events of pod late")
		deletePod(ctx, thief)
		late = waitRunning(ctx, late)
		expectPinned(ctx, snapshot(ctx), late)
	})
})

// hugepagesPod is a claim pod that allocates its hugepages as a file: hugetlbfs
// knows fallocate, but not write.
func hugepagesPod(name string, want request) *corev1.Pod {
	pod := claimPod(name, want)
	pod.Spec.Volumes = []corev1.Volume{{Name: "hugepages", VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumHugePagesPrefix + "2Mi"},
	}}}
	container := &pod.Spec.Containers[0]
	container.VolumeMounts = []corev1.VolumeMount{{Name: "hugepages", MountPath: "/hugepages"}}
	container.Resources.Requests[corev1.ResourceMemory] = *resource.NewQuantity(want.memoryBytes, resource.BinarySI)
	container.Resources.Limits = corev1.ResourceList{
		corev1.ResourceHugePagesPrefix + "2Mi": *resource.NewQuantity(want.hugepages2MiBytes, resource.BinarySI),
	}
	container.Command = []string{"/bin/sh", "-c", fmt.Sprintf(
		"fallocate -l %d /hugepages/buffer && exec sleep 2147483647", want.hugepages2MiBytes)}
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
