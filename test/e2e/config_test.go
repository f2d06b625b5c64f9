package e2e

import (
	"context"
	"encoding/json"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/kernel"
)

var _ = Describe("claims with a configuration", ofKernel, Ordered, func() {
	var (
		namespace string
		core      request
		pods      map[string]*corev1.Pod
		s         kernel.Snapshot
		policies  bool // the runtime sets memory policies
		work      cpuset.Set
	)

	// All at once: a pod takes seconds to start.
	BeforeAll(func(ctx context.Context) {
		work = kernelWork(ctx)
		namespace, core = createNamespace(ctx, "config"), oneCore(ctx)
		policies = runtimeProcess(ctx) != crioProcess // 1.34 sets none
		core.memoryBytes, core.zone = 64<<20, anyZone
		pods = map[string]*corev1.Pod{}
		for name, config := range map[string]string{
			"isolated": `"partition": "isolated"`,
			"none":     `"partition": "none"`,
			"mixed":    `"mixed": true`,
			"bind":     `"memoryPolicy": "bind"`,
			"open":     `"placement": "pack"`,
			"idle":     `"cores": "one-thread-per-core"`,
			"unknown":  `"partition": "most"`,
		} {
			pod := withoutRequests(claimPod(name, core))
			want := core
			if name == "open" {
				want.memoryBytes, want.withoutMemory = 0, true
			}
			pods[name] = createConfigured(ctx, namespace, pod, want, config)
		}
		for name, pod := range pods {
			if name != "unknown" && (name != "bind" || policies) {
				pods[name] = waitRunning(ctx, pod)
			}
		}
		s = snapshot(ctx)
	})

	It("have an isolated partition", func(ctx context.Context) {
		process := inKernel(s, pods["isolated"])
		Expect(process.Partition).To(Equal("isolated"))
		Expect(process.CPUs.Size()).To(BeNumerically("==", core.cpus), "CPUs of the pod: %s", process.CPUs)
		Expect(process.ExclusiveCPUs.String()).To(Equal(process.CPUs.String()))
		expectExclusive(ctx, pods["isolated"], "KernelPartition")

		By("keeping the kernel's own work off it, as long as it lasts")
		Expect(kernelWork(ctx).String()).To(Equal(work.Difference(process.CPUs).String()), "CPUs of the kernel's workqueues")
		deletePod(ctx, pods["isolated"])
		Eventually(ctx, func(ctx context.Context) string { return kernelWork(ctx).String() }).Should(Equal(work.String()), "CPUs of the kernel's workqueues")
	})

	It("have no partition", func(ctx context.Context) {
		process := inKernel(s, pods["none"])
		Expect(process.Partition).To(Equal("member"))
		Expect(process.CPUs.Size()).To(BeNumerically("==", core.cpus), "CPUs of the pod: %s", process.CPUs)
		Expect(process.Mems.Size()).To(Equal(1), "memory of the pod: %s", process.Mems)
		expectSharedPool(ctx, pods["none"], "", process.CPUs)
	})

	It("have the shared CPUs besides, and know which are which", func(ctx context.Context) {
		process := inKernel(s, pods["mixed"])
		environment := environmentOf(ctx, process.PID)
		own := cpusIn(environment, "DRA_NUMA_CPUS")
		pool := cpusIn(environment, "DRA_NUMA_SHARED_CPUS")
		Expect(own.Size()).To(BeNumerically("==", core.cpus), "DRA_NUMA_CPUS")
		Expect(pool.IsEmpty()).To(BeFalse(), "DRA_NUMA_SHARED_CPUS")
		Expect(own.Overlaps(pool)).To(BeFalse(), "own CPUs %s, shared CPUs %s", own, pool)
		Expect(own.IsSubsetOf(process.CPUs)).To(BeTrue(), "may run on %s, own CPUs are %s", process.CPUs, own)
		Expect(process.CPUs.Difference(own).IsEmpty()).To(BeFalse(), "may run on no more than its own %s", own)
		Expect(process.Mems.Size()).To(Equal(1), "memory of the pod: %s", process.Mems)
		expectSharedPool(ctx, pods["mixed"], "", own)
	})

	It("run on one thread of a core, and nobody runs on the other", func(ctx context.Context) {
		process := inKernel(s, pods["idle"])
		environment := environmentOf(ctx, process.PID)
		idle := cpusIn(environment, "DRA_NUMA_IDLE_CPUS")
		Expect(environment["DRA_NUMA_CPUS"]).To(Equal(process.CPUs.String()), "DRA_NUMA_CPUS")
		Expect(process.CPUs.Size()).To(Equal(1), "the pod may run on %s", process.CPUs)
		Expect(idle.Size()).To(BeNumerically("==", core.cpus-1), "DRA_NUMA_IDLE_CPUS %s", idle)
		Expect(process.Partition).To(Equal("root"))
		Expect(process.ExclusiveCPUs.String()).To(Equal(process.CPUs.Union(idle).String()), "exclusive CPUs")
	})

	It("have a memory policy, or do not start where the runtime sets none", func(ctx context.Context) {
		if !policies {
			Eventually(ctx, eventMessages).WithArguments(namespace, pods["bind"].Name).Should(ContainElement(And(
				ContainSubstring("memoryPolicy bind: "), ContainSubstring("does not set it, want a container runtime with NRI"))))
			return
		}
		process := inKernel(s, pods["bind"])
		maps, err := observer.Run(ctx, `cat "/proc/$1/numa_maps"`, fmt.Sprint(process.PID))
		Expect(err).NotTo(HaveOccurred())
		Expect(maps).To(MatchRegexp(`(?m)^[0-9a-f]+ bind(=[a-z]+)?:%s `, process.Mems), "numa_maps of the pod")
	})

	It("bind no memory if they ask for none", func(ctx context.Context) {
		process := inKernel(s, pods["open"])
		Expect(process.Partition).To(Equal("root"))
		plain, err := observer.Self(s)
		Expect(err).NotTo(HaveOccurred())
		Expect(process.Mems.String()).To(Equal(plain.Mems.String()), "memory of the pod, as that of a pod without a claim")
		Expect(process.Mems.Size()).To(BeNumerically(">", 1), "NUMA nodes with memory")
		Expect(environmentOf(ctx, process.PID)).To(HaveKeyWithValue("DRA_NUMA_MEMS", ""))
		expectStatus(ctx, pods["open"], claimData{CPUs: process.CPUs.String(), Partition: "root"})
	})

	It("are refused with the field when nobody knows what they ask for", func(ctx context.Context) {
		pod := pods["unknown"]
		Eventually(ctx, func() ([]string, error) { return eventMessages(ctx, namespace, pod.Name) }).Should(ContainElement(And(
			ContainSubstring("status.allocation.devices.config[0]"), ContainSubstring(`partition: "most", allowed are root, isolated, none`),
		)), "events of pod %s", pod.Name)
	})
})

// kernelWork are the CPUs of the kernel's unbound workqueues, as they are requested of it.
func kernelWork(ctx context.Context) cpuset.Set {
	GinkgoHelper()
	text, err := observer.Run(ctx, "cat /sys/devices/virtual/workqueue/cpumask_requested")
	Expect(err).NotTo(HaveOccurred())
	cpus, err := cpuset.ParseMask(text)
	Expect(err).NotTo(HaveOccurred())
	return cpus
}

// createConfigured is createClaimed with a ZoneConfig, whose fields are given in JSON.
func createConfigured(ctx context.Context, namespace string, pod *corev1.Pod, want request, fields string) *corev1.Pod {
	GinkgoHelper()
	config := configOf(deviceclasses.ZoneConfigKind, fields)
	Expect(json.Valid([]byte(config))).To(BeTrue(), "configuration %s", config)
	createClaim(ctx, namespace, configured(config, newClaim(pod.Name, want)))
	return createPod(ctx, namespace, pod)
}

// cpusIn reads the CPUs that an environment variable lists.
func cpusIn(environment map[string]string, variable string) cpuset.Set {
	GinkgoHelper()
	cpus, err := cpuset.Parse(environment[variable])
	Expect(err).NotTo(HaveOccurred())
	return cpus
}
