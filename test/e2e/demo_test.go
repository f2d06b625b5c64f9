package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/demo"
)

var _ = Describe("the manifests in demo", atLength, func() {
	It("run, and their claims are pinned", func(ctx context.Context) {
		if node.counts {
			Skip("the scheduler counts claims, and these pods request what their claims hold")
		}
		namespace := createNamespace(ctx, "demo")
		Expect(cluster.Apply(ctx, demo.Manifests, namespace)).To(Succeed())
		pods := podsIn(ctx, namespace)
		Expect(pods).NotTo(BeEmpty())
		s := snapshot(ctx)
		for _, pod := range pods {
			if pod.Spec.NodeName != node.name || len(pod.Spec.ResourceClaims) == 0 {
				continue
			}
			zone, count := templateResult(ctx, pod)
			expectHeld(s, pod, zone, count)
		}
	})
})

// templateResult returns zone and number of CPUs that the only claim made from a
// template for a pod was allocated.
func templateResult(ctx context.Context, pod *corev1.Pod) (zone, cpus int) {
	GinkgoHelper()
	claim := onlyClaim(ctx, pod)
	result := claim.Status.Allocation.Devices.Results[0]
	amount := result.ConsumedCapacity["cpu"]
	return zoneOf(result.Device).id, int(amount.Value())
}
