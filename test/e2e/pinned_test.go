package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/kernel"
)

// inKernel returns what the kernel says of a pod's container.
func inKernel(s kernel.Snapshot, pod *corev1.Pod) kernel.Process {
	GinkgoHelper()
	process, err := s.Container(pod, containerName)
	Expect(err).NotTo(HaveOccurred())
	return process
}

// expectPinned checks that a running pod holds exactly what its claim was
// allocated: as many CPUs, whole cores of the allocated zone, memory of that
// zone only, in a valid partition. It returns the CPUs.
func expectPinned(ctx context.Context, s kernel.Snapshot, pod *corev1.Pod) cpuset.Set {
	GinkgoHelper()
	results := claimOf(ctx, pod).Status.Allocation.Devices.Results
	Expect(results).To(HaveLen(1), "results of the claim of pod %s", pod.Name)
	published := zoneOf(results[0].Device)
	amount := results[0].ConsumedCapacity["cpu"]
	return expectHeld(s, pod, published.id, int(amount.Value()))
}

// expectHeld is expectPinned for a known zone and number of CPUs.
func expectHeld(s kernel.Snapshot, pod *corev1.Pod, zoneID, count int) cpuset.Set {
	GinkgoHelper()
	held := inKernel(s, pod)
	zone, ok := s.Zone(zoneID)
	Expect(ok).To(BeTrue(), "pod %s: the kernel has no NUMA node %d", pod.Name, zoneID)

	Expect(held.Partition).To(Equal("root"), "cpuset.cpus.partition of pod %s", pod.Name)
	Expect(held.CPUs.Size()).To(Equal(count), "pod %s may run on %s", pod.Name, held.CPUs)
	Expect(held.CPUs.IsSubsetOf(zone.CPUs)).To(BeTrue(), "pod %s may run on %s, NUMA node %d has %s", pod.Name, held.CPUs, zone.ID, zone.CPUs)
	Expect(held.EffectiveCPUs.String()).To(Equal(held.CPUs.String()), "cpuset.cpus.effective of pod %s", pod.Name)
	Expect(held.ExclusiveCPUs.String()).To(Equal(held.CPUs.String()), "cpuset.cpus.exclusive of pod %s", pod.Name)
	Expect(held.Mems.String()).To(Equal(cpuset.New(zone.ID).String()), "Mems_allowed_list of pod %s", pod.Name)
	for _, core := range s.Cores {
		if core.Overlaps(held.CPUs) {
			Expect(core.IsSubsetOf(held.CPUs)).To(BeTrue(), "pod %s may run on %s, which breaks core %s", pod.Name, held.CPUs, core)
		}
	}
	return held.CPUs
}

// shared returns the CPUs a pod without a claim may use: the observer's.
func shared(s kernel.Snapshot) cpuset.Set {
	GinkgoHelper()
	self, err := observer.Self(s)
	Expect(err).NotTo(HaveOccurred())
	return self.CPUs
}
