package e2e

import (
	"context"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var _ = Describe("a pod without a claim that asks for a whole device as an extended resource", withDevices, func() {
	It("has one, which no claim gets", func(ctx context.Context) {
		const name = "example.com/drive"
		drives := publishedDrives(ctx)
		nvme, err := cluster.Kubernetes.ResourceV1().DeviceClasses().Get(ctx, "nvme.dra.numa", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		extended := name
		class := nvme.DeepCopy()
		class.ObjectMeta = metav1.ObjectMeta{Name: "drive.example.com"}
		class.Spec.ExtendedResourceName = &extended
		_, err = cluster.Kubernetes.ResourceV1().DeviceClasses().Create(ctx, class, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx context.Context) {
			Expect(cluster.Kubernetes.ResourceV1().DeviceClasses().Delete(ctx, class.Name, metav1.DeleteOptions{})).To(Succeed())
		})

		namespace := createNamespace(ctx, "extended")
		var nodes []string
		for i := range len(drives) {
			pod := plainPod("drive-" + strconv.Itoa(i))
			pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{name: resource.MustParse("1")}
			pod = waitRunning(ctx, createPod(ctx, namespace, pod))
			Expect(pod.Status.ExtendedResourceClaimStatus).NotTo(BeNil(), "claim that the scheduler made for pod %s", pod.Name)
			own := driveNodes(ctx, inKernel(snapshot(ctx), pod).PID)
			Expect(own).To(HaveLen(1), "nodes of drives in pod %s", pod.Name)
			Expect(nodes).NotTo(ContainElement(own[0]), "nodes of drives in other pods than %s", pod.Name)
			nodes = append(nodes, own...)
		}
		expectPending(ctx, createWithDrive(ctx, namespace, "late"), noDevices)
	})
})
