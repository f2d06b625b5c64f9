package e2e

import (
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/test/kernel"
)

var _ = Describe("zones as an operator wants them", ofMachine, atLength, func() {
	It("claims go to one zone after the other, or fill one before the next", func(ctx context.Context) {
		core := oneCore(ctx)
		core.zone = anyZone
		place := func(namespace string, pods int) (nodes []int) {
			for i := range pods {
				pod := waitRunning(ctx, createClaimed(ctx, namespace, claimPod(fmt.Sprintf("core-%d", i), core), core))
				s := snapshot(ctx)
				nodes = append(nodes, numaNodeOf(s, inKernel(s, pod)))
				if i+1 < pods {
					waitOrdered(ctx)
				}
			}
			return nodes
		}

		configureNode(ctx, "zoneOrder: spread")
		namespace := createNamespace(ctx, "spread")
		nodes := place(namespace, len(node.zones))
		Expect(slices.Compact(slices.Sorted(slices.Values(nodes)))).To(HaveLen(len(node.zones)), "NUMA nodes of the pods: %v", nodes)
		removeNamespace(ctx, namespace)

		configureNode(ctx, "zoneOrder: pack")
		least := slices.MinFunc(node.zones, func(a, b publishedZone) int { return a.cpus - b.cpus })
		fit := least.cpus / int(core.cpus)
		nodes = place(createNamespace(ctx, "pack"), fit+1)
		Expect(nodes[:fit]).To(HaveEach(least.id), "NUMA nodes of the first pods, all of which fit on NUMA node %d", least.id)
		Expect(nodes[fit]).NotTo(Equal(least.id), "NUMA node of the next pod")
	})

	It("two claims of a group are on two zones, and a third one waits where there are two", func(ctx context.Context) {
		configureNode(ctx, "groups: [broker]")
		namespace := createNamespace(ctx, "group")
		core := oneCore(ctx)
		place := func(name string, zone int) *corev1.Pod {
			want := core
			want.zone = zone
			claim := newClaim(name, want)
			claim.Spec.Devices.Requests[0].Exactly.Capacity.Requests["groupBroker"] = *resource.NewQuantity(1, resource.DecimalSI)
			createClaim(ctx, namespace, claim)
			return createPod(ctx, namespace, claimPod(name, want))
		}
		first := waitRunning(ctx, place("first", core.zone))
		waits := place("waits", core.zone)
		beside := core
		waitRunning(ctx, createClaimed(ctx, namespace, claimPod("beside", beside), beside)) // there is room for one that is of no group
		second := waitRunning(ctx, place("second", anyZone))
		s := snapshot(ctx)
		Expect(numaNodeOf(s, inKernel(s, second))).NotTo(Equal(numaNodeOf(s, inKernel(s, first))), "NUMA nodes of two brokers")
		expectPending(ctx, waits, noDevices)
		Expect(answer(ctx, "explain", "pod", "waits", "-n", namespace)).To(ContainSubstring("groupBroker"))
		deletePod(ctx, first)
		waitRunning(ctx, waits)
	})

	It("CPUs of a claim are as even as they can be where one NUMA node is full", func(ctx context.Context) {
		configureNode(ctx, "zoneBy: machine")
		threads := int64(node.zones[0].threadsPerCore)
		namespace := createNamespace(ctx, "distribute")
		least := slices.MinFunc(node.zones, func(a, b publishedZone) int { return a.cpus - b.cpus })
		first := request{cpus: int64(least.cpus), zone: anyZone}
		full := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("full", first), first))
		s := snapshot(ctx)
		Expect(numaNodeOf(s, inKernel(s, full))).To(Equal(least.id), "the tightest place for the first claim")

		// A core of each of the others, and one more.
		want := request{cpus: int64(len(node.zones)) * threads, zone: anyZone}
		createClaim(ctx, namespace, configured(configOf("ZoneConfig", `"placement": "distribute"`), newClaim("even", want)))
		pod := waitRunning(ctx, createPod(ctx, namespace, withoutRequests(claimPod("even", want))))
		s = snapshot(ctx)
		var cores []int
		for _, zone := range s.Zones {
			if zone.ID != least.id && !zone.CPUs.IsEmpty() {
				cores = append(cores, zone.CPUs.Intersection(inKernel(s, pod).CPUs).Size()/int(threads))
			}
		}
		Expect(slices.Min(cores)).To(Equal(1), "cores of each NUMA node that is not full: %v", cores)
		Expect(slices.Max(cores)).To(Equal(2), "cores of each NUMA node that is not full: %v", cores)
	})

	It("what is excluded is not published, and a claim that has it keeps it", func(ctx context.Context) {
		namespace := createNamespace(ctx, "excluded")
		core := oneCore(ctx)
		has := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("has", core), core))
		before := inKernel(snapshot(ctx), has)
		zone := fmt.Sprintf("numa-%d", core.zone)
		memoryOf := node.zones[slices.IndexFunc(node.zones, func(z publishedZone) bool { return z.id != core.zone })].id

		configureNode(ctx, fmt.Sprintf("exclude: {zones: [%s], memoryOf: '%d'}", zone, memoryOf))
		devices, err := nodeDevices(ctx)
		Expect(err).NotTo(HaveOccurred())
		for _, device := range devices {
			Expect(device.Name).NotTo(Equal(zone))
			if device.Name == fmt.Sprintf("numa-%d", memoryOf) {
				Expect(device.Capacity).To(HaveKey(resourceapi.QualifiedName("cpu")), device.Name)
				Expect(device.Capacity).NotTo(HaveKey(resourceapi.QualifiedName("memory")), device.Name)
			}
		}
		waits := createClaimed(ctx, namespace, claimPod("waits", core), core)
		s := snapshot(ctx)
		process := inKernel(s, has)
		Expect(process.CPUs.String()).To(Equal(before.CPUs.String()), "CPUs of the claim that was there")
		Expect(process.Partition).To(Equal("root"))
		expectPending(ctx, waits, noDevices)
	})

	It("what changes while publishing is paused is published afterwards, and claims go on", func(ctx context.Context) {
		before, err := nodeDevices(ctx)
		Expect(err).NotTo(HaveOccurred())
		namespace, core := createNamespace(ctx, "paused"), oneCore(ctx)
		zone := zoneOf(fmt.Sprintf("numa-%d", core.zone))
		excluded := node.zones[slices.IndexFunc(node.zones, func(z publishedZone) bool { return z.id != core.zone })].device

		pausePublishing(ctx)
		Eventually(ctx, nodeEvents).Should(ContainElement(HavePrefix("NUMAPublishingPaused: No ResourceSlices of this node are written, because there is the file " + pauseFile)))
		configureNode(ctx, fmt.Sprintf("exclude: {zones: [%s]}", excluded)) // the next daemon leaves the slices alone, too
		pod := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("paused", core), core))
		expectPinned(ctx, snapshot(ctx), pod)
		devices, err := nodeDevices(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(devices).To(Equal(before))

		goOnPublishing(ctx)
		Eventually(ctx, nodeDevices).ShouldNot(ContainElement(HaveField("Name", excluded)))
		Eventually(ctx, nodeEvents).Should(ContainElement(HavePrefix("NUMAPublishingResumed: ")))
		Expect(nodeDevices(ctx)).To(ContainElement(HaveField("Name", zone.device)))
	})
})

// pauseFile is docs/configuration.md's, in the observer.
const pauseFile = "/var/lib/kubelet/plugins/dra.numa/pause-publishing"

func pausePublishing(ctx context.Context) {
	GinkgoHelper()
	DeferCleanup(goOnPublishing)
	Expect(observer.WriteFile(ctx, pauseFile, "")).To(Succeed())
}

func goOnPublishing(ctx context.Context) {
	GinkgoHelper()
	_, err := observer.Run(ctx, `rm -f "/proc/1/root$1"`, pauseFile)
	Expect(err).NotTo(HaveOccurred())
}

// numaNodeOf returns the only NUMA node of a process's CPUs.
func numaNodeOf(s kernel.Snapshot, process kernel.Process) int {
	GinkgoHelper()
	for _, zone := range s.Zones {
		if process.CPUs.IsSubsetOf(zone.CPUs) {
			return zone.ID
		}
	}
	Fail(fmt.Sprintf("CPUs %s are of several NUMA nodes", process.CPUs))
	return -1
}

// waitOrdered waits until the daemon has seen the last claim and no new order waits to be
// written: the first slice does not change for longer than a look at the node takes.
func waitOrdered(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		before, err := nodeDevices(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		_, err = observer.Run(ctx, "sleep 3")
		g.Expect(err).NotTo(HaveOccurred())
		after, err := nodeDevices(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(after[0].Name).To(Equal(before[0].Name))
	}).Should(Succeed())
}
