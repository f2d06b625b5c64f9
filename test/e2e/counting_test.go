package e2e

import (
	"context"
	"path"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// withCounting marks specs that also run in a cluster whose scheduler counts claims.
var withCounting = Label("counting")

var _ = Describe("a claim that the scheduler counts", withCounting, Label(withOwnBoot), func() {
	It("takes of the node what it holds, though its pod requests nothing", func(ctx context.Context) {
		if !node.counts {
			lacks("node %s does not say which of its resources the capacities of a zone are", node.name)
		}
		namespace, core := createNamespace(ctx, "counted"), oneCore(ctx)
		pod := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("counted", core), core))
		expectPinned(ctx, snapshot(ctx), pod)
		expectExclusive(ctx, pod, "KernelPartition")
		counted := resource.Quantity{}
		for _, claim := range pod.Status.NodeAllocatableResourceClaimStatuses {
			for _, mapped := range claim.Mapping {
				if mapped.Name == corev1.ResourceCPU {
					counted.Add(*mapped.Quantity)
				}
			}
		}
		Expect(counted.Value()).To(Equal(core.cpus), "CPUs of claims in the status of pod %s", pod.Name)
		group := inKernel(snapshot(ctx), pod).Cgroup
		for range 2 { // the container's, then the pod's
			Expect(observer.ReadCgroup(ctx, group, "cpu.max")).To(HavePrefix("max "), "a claim's CPUs are never a limit")
			group = path.Dir(group)
		}

		By("asking for more CPUs than the node has left")
		status, err := cluster.Kubernetes.CoreV1().Nodes().Get(ctx, node.name, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		most := status.Status.Allocatable[corev1.ResourceCPU].DeepCopy()
		most.Sub(*resource.NewMilliQuantity(500*core.cpus, resource.DecimalSI)) // without the claim it fits
		late := plainPod("late")
		late.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: most}
		late = createPod(ctx, namespace, late)
		expectPending(ctx, late, "Insufficient cpu")

		By("deleting the pod of the claim")
		deletePod(ctx, pod)
		waitRunning(ctx, late)
	})
})
