package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var _ = Describe("a node that restarts", func() {
	It("gives its claims the same CPUs again", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "reboot"), oneCore(ctx)
		pod := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("stays", core), core))
		held := expectPinned(ctx, snapshot(ctx), pod)
		before := bootID(ctx)

		Expect(observer.Reboot(ctx)).To(Succeed())
		Expect(bootID(ctx)).NotTo(Equal(before), "boot id of the node")
		pod = waitRestarted(ctx, pod)
		waitDriverReady(ctx)
		Expect(expectPinned(ctx, snapshot(ctx), pod).String()).To(Equal(held.String()), "CPUs of the claim")
		runAnother(ctx, namespace, core, held)
	})
})

func bootID(ctx context.Context) string {
	GinkgoHelper()
	current, err := cluster.Kubernetes.CoreV1().Nodes().Get(ctx, node.name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return current.Status.NodeInfo.BootID
}
