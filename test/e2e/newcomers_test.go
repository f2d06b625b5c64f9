package e2e

import (
	"context"
	"flag"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

var crowd = flag.Int("e2e.crowd", 100, "how many newcomers a crowd has at pace 1; a slower node has fewer")

// Kubelet and runtime start pods side by side, and each start loads a handful of
// programs: more at a time take longer in all, and run into the kubelet's time limits.
const (
	newcomersAtATime = 12
	fewestNewcomers  = 12
	askPeriod        = 5 * time.Second // of those that ask for CPUs
	claimsInCrowd    = 7               // of one core each
)

var _ = Describe("a crowd of newcomers while the driver is away", ofKernel, withCrowd, func() {
	It("never runs on a claim's CPUs", func(ctx context.Context) {
		newcomers := max(fewestNewcomers, int(float64(*crowd)/float64(observer.Pace)))
		fmt.Printf("the crowd has %d newcomers\n", newcomers)
		namespace := createNamespace(ctx, "newcomers")
		zone, _ := wholeZone(snapshot(ctx))
		whole := request{cpus: int64(zone.cpus), zone: zone.id}
		holder := waitRunning(ctx, createClaimed(ctx, namespace, withoutRequests(claimPod("holder", whole)), whole))
		s := snapshot(ctx)
		held, owner := expectPinned(ctx, s, holder), inKernel(s, holder).Cgroup

		stopDriver(ctx)
		watch(ctx, held)
		for i := range newcomers {
			createPod(ctx, namespace, newcomer(i, s.Online, held))
			waitRunningPods(ctx, namespace, i+2-newcomersAtATime) // the holder is one
			if i%20 == 0 {
				expectNoStrangers(ctx, held, owner)
			}
		}
		waitRunningPods(ctx, namespace, newcomers+1)
		expectNoStrangers(ctx, held, owner)
		Expect(driverPods(ctx)).To(BeEmpty(), "the driver came back too early for this test")
		Expect(expectPinned(ctx, snapshot(ctx), holder).String()).To(Equal(held.String()), "CPUs of the claim")

		By("showing that the watch sees them as soon as they may")
		startDriver(ctx)
		deletePod(ctx, holder)
		Eventually(ctx, func() []string {
			Expect(observer.Watch(ctx, held)).To(Succeed()) // again: what was there before has no part in it
			time.Sleep(askPeriod)
			return strangers(ctx, held)
		}).Should(ContainElement(HavePrefix("ran: sh ")), "newcomers on CPUs that are nobody's")

		By("giving cores to claims, among the crowd")
		core := oneCore(ctx)
		core.zone = anyZone
		for i := range claimsInCrowd {
			createClaimed(ctx, namespace, withoutRequests(claimPod(fmt.Sprintf("core-%d", i), core)), core)
		}
		waitRunningPods(ctx, namespace, newcomers+claimsInCrowd)
		expectCheap(ctx, newcomers+claimsInCrowd)
	})
})

// newcomer is a pod without a claim: by turns of each QoS class, and now and
// then one that asks again and again for the wanted CPUs, alone or with all
// others, and is busy for a moment.
func newcomer(i int, online, wanted cpuset.Set) *corev1.Pod {
	pod := plainPod(fmt.Sprintf("newcomer-%d", i))
	noGrace := int64(0)
	pod.Spec.NodeName, pod.Spec.NodeSelector = node.name, nil // the scheduler costs time only
	pod.Spec.TerminationGracePeriodSeconds = &noGrace
	container := &pod.Spec.Containers[0]
	switch i % 3 {
	case 0: // Guaranteed; the limit is generous, as it also holds for the start of the container
		container.Resources.Limits = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("200m"), corev1.ResourceMemory: resource.MustParse("32Mi"),
		}
	case 1: // Burstable
		container.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1m")}
	}
	ask := ""
	switch i % 10 {
	case 1:
		ask = wanted.String()
	case 2:
		ask = online.String()
	}
	if ask != "" { // $$ in a command is the kubelet's for $
		container.Command = []string{
			"/bin/sh", "-c",
			`while :; do taskset -pc "$0" $$$$; i=0; while [ $i -lt 500 ]; do i=$((i + 1)); done; sleep "$1"; done >/dev/null 2>&1`,
			ask, fmt.Sprint(askPeriod.Seconds()),
		}
	}
	return pod
}

// waitRunningPods waits until so many pods of a namespace run, or more.
func waitRunningPods(ctx context.Context, namespace string, count int) {
	GinkgoHelper()
	if count <= 0 {
		return
	}
	Eventually(ctx, func() (running int, err error) {
		pods, err := listPods(ctx, namespace)
		for _, pod := range pods {
			if pod.Status.Phase == corev1.PodRunning {
				running++
			}
		}
		return running, err
	}).Should(BeNumerically(">=", count), "running pods of namespace %s", namespace)
}
