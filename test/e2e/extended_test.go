package e2e

import (
	"context"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var _ = Describe("a pod without a claim that asks for a whole device as an extended resource", withDevices, func() {
	It("has one, which no claim gets", func(ctx context.Context) {
		const name = "example.com/drive"
		drives := publishedFunctions(ctx, "nvme")
		if len(drives) == 0 {
			lacks("node %s publishes no NVMe drives", node.name)
		}
		nvme, err := cluster.Kubernetes.ResourceV1().DeviceClasses().Get(ctx, "nvme.dra.numa", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		extended := name
		class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "drive.example.com"}, Spec: nvme.Spec}
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
			text, err := observer.Run(ctx, `cd "/proc/$1/root/dev" && ls -d nvme*`, strconv.Itoa(inKernel(snapshot(ctx), pod).PID))
			Expect(err).NotTo(HaveOccurred())
			Expect(strings.Fields(text)).To(HaveLen(1), "nodes of drives in pod %s", pod.Name)
			Expect(nodes).NotTo(ContainElement(text), "nodes of drives in other pods than %s", pod.Name)
			nodes = append(nodes, text)
		}
		expectPending(ctx, createWithDrive(ctx, namespace, "late"), noDevices)
	})
})
