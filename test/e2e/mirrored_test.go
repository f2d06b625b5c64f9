package e2e

import (
	"context"
	"path"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/accounting"
)

var _ = Describe("a pod that requests nothing beside its claim, where the webhook mirrors claims", withDevices, func() {
	It("has the cgroups of a pod that requests as much, and the node has as much less", func(ctx context.Context) {
		zone, _ := wholeZone(snapshot(ctx))
		if zone.hugepages2Mi == 0 {
			lacks("zone %s publishes no 2 MiB hugepages", zone.device)
		}
		want := request{cpus: int64(zone.threadsPerCore), memoryBytes: 64 << 20, hugepages2MiBytes: 4 << 20, zone: zone.id}
		amounts := corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewQuantity(want.cpus, resource.DecimalSI),
			corev1.ResourceMemory: *resource.NewQuantity(want.memoryBytes, resource.BinarySI),
			"hugepages-2Mi":       *resource.NewQuantity(want.hugepages2MiBytes, resource.BinarySI),
		}
		namespace := createNamespace(ctx, "mirrored")
		plain := plainPod("plain")
		plain.Spec.Containers[0].Resources = corev1.ResourceRequirements{
			Requests: amounts,
			Limits:   corev1.ResourceList{"hugepages-2Mi": amounts["hugepages-2Mi"]},
		}
		plain = waitRunning(ctx, createPod(ctx, namespace, plain))
		mirrored := waitRunning(ctx, createClaimed(ctx, namespace, withoutRequests(claimPod("mirrored", want)), want))

		Expect(mirrored.Annotations).To(HaveKey(accounting.Annotation), "annotations of pod mirrored")
		for name, amount := range amounts {
			got := mirrored.Spec.Containers[0].Resources.Requests[name]
			Expect(got.Cmp(amount)).To(BeZero(), "pod mirrored requests %s %s, want %s", name, &got, &amount)
		}
		s := snapshot(ctx)
		expectHeld(s, mirrored, zone.id, zone.threadsPerCore)
		one, other := inKernel(s, mirrored).Cgroup, inKernel(s, plain).Cgroup
		for range 2 { // the container's, then the pod's
			for _, file := range []string{"cpu.weight", "cpu.max", "memory.max", "memory.high", "memory.min", "hugetlb.2MB.max"} {
				got, err := observer.ReadCgroup(ctx, one, file)
				Expect(err).NotTo(HaveOccurred())
				expected, err := observer.ReadCgroup(ctx, other, file)
				Expect(err).NotTo(HaveOccurred())
				Expect(got).To(Equal(expected), "%s of cgroup %s, and of %s, which requests as much itself", file, one, other)
			}
			one, other = path.Dir(one), path.Dir(other)
		}
		Expect(observer.ReadCgroup(ctx, inKernel(s, mirrored).Cgroup, "cpu.max")).To(HavePrefix("max "), "a claim's CPUs are never a limit")

		By("asking for more CPUs than the node has left")
		status, err := cluster.Kubernetes.CoreV1().Nodes().Get(ctx, node.name, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		most := status.Status.Allocatable[corev1.ResourceCPU].DeepCopy()
		most.Sub(*resource.NewQuantity(3*want.cpus/2, resource.DecimalSI)) // beside one of the two it would fit
		late := plainPod("late")
		late.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: most}
		expectPending(ctx, createPod(ctx, namespace, late), "Insufficient cpu")
	})
})
