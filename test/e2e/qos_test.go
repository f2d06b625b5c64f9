package e2e

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

var _ = Describe("claim pods of every QoS class, one after the other", ofKernel, func() {
	// Each class has a folder of its own below kubepods: what one left exclusive
	// there would keep the CPUs from the next.
	It("hold the same CPUs", func(ctx context.Context) {
		namespace := createNamespace(ctx, "qos")
		zone, cpus := wholeZone(snapshot(ctx))
		whole := request{cpus: int64(zone.cpus), zone: zone.id}

		burstable := claimPod("burstable", whole)
		bestEffort := withoutRequests(claimPod("besteffort", whole))
		guaranteed := claimPod("guaranteed", whole)
		resources := &guaranteed.Spec.Containers[0].Resources
		resources.Requests[corev1.ResourceMemory] = resource.MustParse("64Mi")
		resources.Limits = resources.Requests

		for _, pod := range []*corev1.Pod{burstable, bestEffort, guaranteed} {
			name := pod.Name
			pod = waitRunning(ctx, createClaimed(ctx, namespace, pod, whole))
			Expect(strings.ToLower(string(pod.Status.QOSClass))).To(Equal(name), "QoS class of pod %s", name)
			Expect(expectPinned(ctx, snapshot(ctx), pod).String()).To(Equal(cpus.String()), "CPUs of pod %s", name)
			deletePod(ctx, pod)
			deleteClaim(ctx, pod)
		}
	})
})
