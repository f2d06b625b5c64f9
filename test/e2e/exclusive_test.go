package e2e

import (
	"context"
	"slices"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/kernel"
)

var _ = Describe("two pods with a claim each and one without", ofKernel, Ordered, func() {
	var (
		alpha, beta, plain *corev1.Pod
		before             cpuset.Set // of the plain pod while there was no claim
		first, held        kernel.Snapshot
	)

	BeforeAll(func(ctx context.Context) {
		namespace := createNamespace(ctx, "two")
		zone, _ := wholeZone(snapshot(ctx))
		plain = waitRunning(ctx, createPod(ctx, namespace, plainPod("plain")))
		first = calm(ctx)
		before = inKernel(first, plain).CPUs

		core := request{cpus: int64(zone.threadsPerCore), memoryBytes: 64 << 20, zone: zone.id}
		alpha = createClaimed(ctx, namespace, claimPod("alpha", core), core)
		beta = createClaimed(ctx, namespace, claimPod("beta", core), core)
		alpha, beta = waitRunning(ctx, alpha), waitRunning(ctx, beta)
		held = snapshot(ctx)
	})

	It("hold disjoint whole cores and the memory of the allocated zone", func(ctx context.Context) {
		a, b := expectPinned(ctx, held, alpha), expectPinned(ctx, held, beta)
		Expect(a.Overlaps(b)).To(BeFalse(), "alpha may run on %s, beta on %s", a, b)
	})

	It("tell each container its CPUs and memory in the environment", func(ctx context.Context) {
		for _, pod := range []*corev1.Pod{alpha, beta} {
			process := inKernel(held, pod)
			environment := environmentOf(ctx, process.PID)
			Expect(environment).To(HaveKeyWithValue("DRA_NUMA_CPUS", process.CPUs.String()), "environment of pod %s", pod.Name)
			Expect(environment).To(HaveKeyWithValue("DRA_NUMA_MEMS", process.Mems.String()), "environment of pod %s", pod.Name)
		}
	})

	It("tell each container its devices in a file (KEP-5304)", func(ctx context.Context) {
		for _, pod := range []*corev1.Pod{alpha, beta} {
			text, err := observer.Run(ctx, `cat "/proc/$1/root/var/run/kubernetes.io/dra-device-attributes/resourceclaims/$2/zone/$3-metadata.json"`,
				strconv.Itoa(inKernel(held, pod).PID), pod.Name, driverName)
			Expect(err).NotTo(HaveOccurred())
			device := claimOf(ctx, pod).Status.Allocation.Devices.Results[0].Device
			Expect(text).To(ContainSubstring(strconv.Quote(device)), "device metadata in pod %s", pod.Name)
		}
	})

	It("say in the claim's status what the kernel holds for them", func(ctx context.Context) {
		for _, pod := range []*corev1.Pod{alpha, beta} {
			process := inKernel(held, pod)
			expectStatus(ctx, pod, claimData{CPUs: process.CPUs.String(), Mems: process.Mems.String(), Partition: process.Partition})
		}
	})

	It("are known to the kernel only: the cgroup of every other container stays as it was", func() {
		own := map[string]string{}
		for _, process := range first.Processes {
			own[process.Cgroup] = process.OwnCPUs.String()
		}
		claimed := inKernel(held, alpha).CPUs.Union(inKernel(held, beta).CPUs)
		claims := []string{inKernel(held, alpha).Cgroup, inKernel(held, beta).Cgroup}
		for _, process := range held.Processes {
			switch {
			case slices.Contains(claims, process.Cgroup):
			case own[process.Cgroup] == "":
				Expect(process.OwnCPUs.String()).To(BeEmpty(), "cpuset.cpus of %s", process.Cgroup)
			default:
				// Earlier specs have left cpuset.cpus there: a shared claim, whose restricted
				// containers follow the pool until they end, or the kubelet's CPU manager, which
				// takes back nothing when its policy changes.
				Expect(process.CPUs.Overlaps(claimed)).To(BeFalse(), "process %d of %s (cpuset.cpus %s) may run on %s, claims hold %s",
					process.PID, process.Cgroup, process.OwnCPUs, process.CPUs, claimed)
			}
		}
	})

	It("take exactly their CPUs from the pod without a claim, and give them back", func(ctx context.Context) {
		claimed := inKernel(held, alpha).CPUs.Union(inKernel(held, beta).CPUs)
		Expect(claimed.IsSubsetOf(before)).To(BeTrue(), "claimed %s, the plain pod had only %s", claimed, before)
		Expect(inKernel(held, plain).CPUs.String()).To(Equal(before.Difference(claimed).String()),
			"CPUs of the pod without a claim while %s are claimed", claimed)

		deletePod(ctx, alpha)
		deletePod(ctx, beta)
		Eventually(ctx, func() string { return inKernel(snapshot(ctx), plain).CPUs.String() }).Should(Equal(before.String()),
			"CPUs of the pod without a claim after the claims are gone")
	})
})
