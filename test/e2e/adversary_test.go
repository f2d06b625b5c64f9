package e2e

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/test/kernel"
)

// What the daemon of a node may write in any minute: docs/guarantees.md. It offers something
// new so many times, and takes back what it has offered once before each and once after the last.
const (
	eventsInAMinute = 20
	offersInAMinute = 6
	writesInAMinute = 2*offersInAMinute + 1
	attackPeriod    = 40 * time.Second
)

var _ = Describe("a node whose partitions and pools change every second", ofKernel, atLength, ofMachine, func() {
	It("writes few slices and events, and claims keep what they have", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "adversary"), oneCore(ctx)
		pod := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("victim", core), core))
		s := snapshot(ctx)
		held, victim := expectPinned(ctx, s, pod), inKernel(s, pod)
		zone := node.zones[len(node.zones)-1]
		pages := int(zone.hugepages2Mi >> 21)
		DeferCleanup(func(ctx context.Context) { Expect(observer.SetHugepages(ctx, zone.id, pages)).To(Succeed()) })

		follow(ctx, victim)
		begin, rounds := time.Now(), 0
		for ; time.Since(begin) < attackPeriod; rounds++ {
			attack(ctx, victim, zone.id, pages+rounds%2)
			time.Sleep(time.Second)
		}
		written, events := slicesWritten.since(begin), eventsOfDriver(ctx, begin)
		fmt.Printf("%d rounds in %.0f s: slices were written %d times, events created %d times\n", rounds, time.Since(begin).Seconds(), written, len(events))
		Expect(rounds).To(BeNumerically(">=", writesInAMinute), "rounds")
		Expect(written).To(And(BeNumerically(">", 0), BeNumerically("<=", writesInAMinute)), "writes of slices")
		Expect(len(events)).To(BeNumerically("<=", eventsInAMinute), "events: %s", strings.Join(events, ", "))

		expectSettled(ctx, victim)
		Expect(expectPinned(ctx, snapshot(ctx), pod).String()).To(Equal(held.String()), "CPUs of the claim")
		expectExclusive(ctx, pod, "KernelPartition")
	})
})

// attack breaks a partition in three ways and changes a pool.
func attack(ctx context.Context, victim kernel.Process, zone, pages int) {
	GinkgoHelper()
	first, _ := victim.CPUs.First()
	for _, write := range []struct{ file, value string }{
		{"cpuset.cpus.partition", "member"}, {"cpuset.cpus.exclusive", ""}, {"cpuset.cpus", fmt.Sprint(first)},
	} {
		Expect(observer.WriteCgroup(ctx, victim.Cgroup, write.file, write.value)).To(Succeed(), "%s of %s", write.file, path.Base(victim.Cgroup))
	}
	Expect(observer.SetHugepages(ctx, zone, pages)).To(Succeed())
}

// eventsOfDriver returns the reasons of the driver's events that were created since then.
func eventsOfDriver(ctx context.Context, begin time.Time) (reasons []string) {
	GinkgoHelper()
	events, err := cluster.Kubernetes.CoreV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	for _, event := range events.Items {
		if strings.HasPrefix(event.Reason, "NUMA") && event.CreationTimestamp.After(begin) {
			reasons = append(reasons, event.Reason)
		}
	}
	return reasons
}
