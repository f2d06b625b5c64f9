package e2e

import (
	"context"
	"encoding/json"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

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

// environmentOf returns the environment of a process.
func environmentOf(ctx context.Context, pid int) map[string]string {
	GinkgoHelper()
	environment, err := observer.Environment(ctx, pid)
	Expect(err).NotTo(HaveOccurred())
	return environment
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

// calm returns what the kernel has once a pod without a claim may use the same CPUs for a
// second: those of claims that ended before may still be on their way back.
func calm(ctx context.Context) kernel.Snapshot {
	GinkgoHelper()
	s := snapshot(ctx)
	Eventually(ctx, func(g Gomega) {
		before := shared(s).String()
		time.Sleep(time.Second)
		s = snapshot(ctx)
		g.Expect(shared(s).String()).To(Equal(before), "CPUs of a pod without a claim a second later")
	}).Should(Succeed())
	return s
}

// claimData is what the status of a claim's device has to say as the kernel does.
type claimData struct {
	CPUs, Mems, Partition string
}

// expectStatus waits for the status of the pod's claim: it is written after the
// container may start. Every share says why it has these CPUs.
func expectStatus(ctx context.Context, pod *corev1.Pod, want claimData) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		claim := claimOf(ctx, pod)
		g.Expect(claim.Status.Devices).To(HaveLen(1), "devices in the status of claim %s", claim.Name)
		device := claim.Status.Devices[0]
		result := claim.Status.Allocation.Devices.Results[0]
		g.Expect(device.Device).To(Equal(result.Device))
		g.Expect(*device.ShareID).To(Equal(string(*result.ShareID)))
		var data struct {
			claimData
			Why string
		}
		g.Expect(json.Unmarshal(device.Data.Raw, &data)).To(Succeed())
		g.Expect(data.claimData).To(Equal(want), "status of claim %s", claim.Name)
		g.Expect(data.Why).NotTo(BeEmpty(), "why claim %s has these CPUs", claim.Name)
		for _, kind := range []string{"Ready", "Exclusive"} {
			g.Expect(meta.IsStatusConditionTrue(device.Conditions, kind)).To(BeTrue(), "condition %s of claim %s", kind, claim.Name)
		}
	}).Should(Succeed())
}
