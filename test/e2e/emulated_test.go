package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// withEmulatedNodes marks specs for a node whose kernel divides a NUMA node (numa=fake=).
var withEmulatedNodes = Label("emulated", withOwnBoot)

var _ = Describe("a node that was booted with numa=fake", withEmulatedNodes, func() {
	It("has each CPU in one zone, and the memory of all nodes", func(ctx context.Context) {
		s := snapshot(ctx)
		Expect(len(s.Zones)).To(BeNumerically(">", 1), "NUMA nodes of the kernel")
		for _, zone := range s.Zones {
			Expect(zone.CPUs.String()).To(Equal(s.Online.String()), "CPUs that the kernel lists for NUMA node %d", zone.ID)
		}
		memory := memoryOfZones(ctx)
		Expect(memory).To(HaveLen(len(s.Zones)))
		Expect(memory).NotTo(ContainElement(BeZero()))
		Expect(node.zones).To(HaveLen(1), "zones with CPUs")

		By("giving a claim CPUs, and memory of their node")
		zone, namespace := node.zones[0], createNamespace(ctx, "emulated")
		core := request{cpus: int64(zone.threadsPerCore), memoryBytes: 64 << 20, zone: zone.id}
		pod := waitRunning(ctx, createClaimed(ctx, namespace, withoutRequests(claimPod("core", core)), core))
		expectPinned(ctx, snapshot(ctx), pod)
	})

	It("gives a claim more memory than a node has, where a zone is a socket", func(ctx context.Context) {
		var largest int64
		for _, bytes := range memoryOfZones(ctx) {
			largest = max(largest, bytes)
		}
		configureNode(ctx, "zoneBy: socket")
		Eventually(ctx, memoryOfZones).Should(And(HaveLen(1), HaveKeyWithValue("socket-0", BeNumerically(">", 2*largest))), "after nodes of %d bytes", largest)
		want := request{cpus: int64(node.zones[0].threadsPerCore), memoryBytes: largest * 3 / 2, zone: anyZone}
		pod := waitRunning(ctx, createClaimed(ctx, createNamespace(ctx, "socket"), withoutRequests(claimPod("large", want)), want))
		s := snapshot(ctx)
		process := inKernel(s, pod)
		Expect(process.Partition).To(Equal("root"))
		Expect(process.CPUs.Size()).To(BeNumerically("==", want.cpus))
		Expect(process.Mems.Size()).To(Equal(len(s.Zones)), "memory of the pod: %s", process.Mems)
	})
})

// memoryOfZones returns the bytes of memory that each zone publishes.
func memoryOfZones(ctx context.Context) map[string]int64 {
	GinkgoHelper()
	devices, err := nodeDevices(ctx)
	Expect(err).NotTo(HaveOccurred())
	memory := map[string]int64{}
	for _, device := range devices {
		if capacity, has := device.Capacity["memory"]; has {
			memory[device.Name] = capacity.Value.Value()
		}
	}
	return memory
}
