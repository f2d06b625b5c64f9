package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/test/kernel"
)

var _ = Describe("a node whose kubelet gives out CPUs itself, policy static", atLength, func() {
	It("offers no zones, says why, and offers them again when that has an end", func(ctx context.Context) {
		DeferCleanup(func(ctx context.Context) {
			setCPUManager(ctx, observer, "static", "none")
			waitDriverReady(ctx)
			Eventually(ctx, func() []publishedZone { return readNode(ctx).zones }).Should(HaveLen(len(node.zones)), "zones of the node")
		})
		setCPUManager(ctx, observer, "none", "static")
		Eventually(ctx, func(g Gomega) {
			slices, err := cluster.Kubernetes.ResourceV1().ResourceSlices().List(ctx, slicesOfNode())
			g.Expect(err).NotTo(HaveOccurred())
			for _, slice := range slices.Items {
				g.Expect(slice.Spec.Devices).To(BeEmpty(), "devices of slice %s", slice.Name)
			}
			events, err := cluster.Kubernetes.EventsV1().Events("").List(ctx, metav1.ListOptions{FieldSelector: "reason=NUMADriverNotReady"})
			g.Expect(err).NotTo(HaveOccurred())
			var notes []string
			for _, event := range events.Items {
				notes = append(notes, event.Note)
			}
			g.Expect(notes).To(ContainElement(ContainSubstring(`CPU manager policy is "static"`)), "events of the node")
			pods, err := driverPods(ctx)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pods).To(HaveLen(1))
			g.Expect(pods[0].Status.ContainerStatuses).To(ContainElement(HaveField("Ready", false)), "containers of the driver")
		}).Should(Succeed())
	})
})

// setCPUManager waits for the kubelet that has the new policy: until the one
// before is gone everything may still look as it is to look in the end.
func setCPUManager(ctx context.Context, there *kernel.Observer, from, to string) {
	GinkgoHelper()
	kubelet, err := there.SetCPUManager(ctx, from, to)
	Expect(err).NotTo(HaveOccurred())
	Expect(kubelet).NotTo(BeEmpty(), "processes of the kubelet")
	Eventually(ctx, func() error { return there.Gone(ctx, kubelet) }).Should(Succeed())
}
