package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

var _ = Describe("a node that restarts", ofMachine, func() {
	It("gives its claims the same CPUs again, all zones full", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "reboot"), oneCore(ctx)
		holders := fillZones(ctx, namespace)
		held := make([]cpuset.Set, len(holders))
		for i, holder := range holders {
			held[i] = expectPinned(ctx, snapshot(ctx), holder)
		}
		before := bootID(ctx)

		Expect(observer.Reboot(ctx)).To(Succeed())
		Expect(bootID(ctx)).NotTo(Equal(before), "boot id of the node")
		for i, holder := range holders {
			holders[i] = waitRestarted(ctx, holder)
		}
		waitDriverReady(ctx)
		s := snapshot(ctx)
		for i, holder := range holders {
			Expect(expectPinned(ctx, s, holder).String()).To(Equal(held[i].String()), "CPUs of the claim of pod %s", holder.Name)
		}
		last := len(holders) - 1
		deletePod(ctx, holders[last])
		deleteClaim(ctx, holders[last])
		var others cpuset.Set
		for _, cpus := range held[:last] {
			others = others.Union(cpus)
		}
		core.zone = anyZone
		runAnother(ctx, namespace, core, others)
	})
})

func bootID(ctx context.Context) string {
	GinkgoHelper()
	current, err := cluster.Kubernetes.CoreV1().Nodes().Get(ctx, node.name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return current.Status.NodeInfo.BootID
}
