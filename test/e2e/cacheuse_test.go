package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
)

var _ = Describe("a node that counts what claims use of caches", withCache, func() {
	It("counts a claim with CPUs that asks for no cache", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "counted"), oneCore(ctx)
		pod := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("counted", core), core))
		group := monitorOf(ctx, pod)
		expectMonitored(ctx, pod, group)
		first := counterOf(ctx, group, core.zone, "mbm_total_bytes")
		Eventually(ctx, func() uint64 { return counterOf(ctx, group, core.zone, "mbm_total_bytes") }).Should(BeNumerically(">", first))
		Expect(counterOf(ctx, group, core.zone, "llc_occupancy")).To(BeNumerically(">", 0))

		By("asking the node")
		before := counterOf(ctx, group, core.zone, "mbm_local_bytes")
		use := useOfClaim(ctx, pod)
		after := counterOf(ctx, group, core.zone, "mbm_local_bytes")
		Expect(use.Group).To(Equal(group))
		Expect(use.Caches).To(HaveLen(1), "caches of the claim's CPUs")
		Expect(use.Caches[0].L3).To(Equal(core.zone))
		Expect(*use.Caches[0].LocalBytes).To(And(BeNumerically(">=", before), BeNumerically("<=", after)))
		Expect(*use.Caches[0].OccupancyBytes).To(Equal(counterOf(ctx, group, core.zone, "llc_occupancy")))

		for _, row := range [][2]string{
			{"no CPUs", "echo >$1/cpus_list"},
			{"the group removed", "rmdir $1"},
			{"CPUs of the default group", "echo 0-15 >$1/../../cpus_list"},
		} {
			By("writing " + row[0])
			_, err := observer.Run(ctx, row[1], resctrlMount+"/"+group)
			Expect(err).NotTo(HaveOccurred(), row[0])
			Eventually(ctx, func(g Gomega) { checkMonitored(ctx, g, pod, group) }).Should(Succeed(), row[0])
		}

		By("killing the driver while its group changes")
		Expect(observer.KillNamed(ctx, driverProcess)).To(Succeed())
		_, err := observer.Run(ctx, `cd "$(dirname "$1")" && rmdir "$1" && mkdir dra-numa.of-no-claim`, resctrlMount+"/"+group)
		Expect(err).NotTo(HaveOccurred())
		waitDriverReady(ctx)
		Eventually(ctx, func(g Gomega) { checkMonitored(ctx, g, pod, group) }).Should(Succeed())
		Eventually(ctx, monitorsNow).ShouldNot(ContainElement("dra-numa.of-no-claim"))

		By("restarting the node")
		Expect(observer.Reboot(ctx)).To(Succeed())
		pod = waitRestarted(ctx, pod)
		waitDriverReady(ctx)
		expectMonitored(ctx, pod, group)

		By("ending the claim")
		deletePod(ctx, pod)
		Expect(monitorsNow(ctx)).NotTo(ContainElement(strings.TrimPrefix(group, "mon_groups/")))
	})

	It("counts a claim with ways by its class, from when it was prepared", func(ctx context.Context) {
		namespace := createNamespace(ctx, "counted-class")
		first := waitRunning(ctx, createWithWays(ctx, namespace, "first", "gold.dra.numa", nil, inCache0))
		group := groupOf(ctx, first).name
		Expect(monitorsNow(ctx)).NotTo(ContainElement(strings.TrimPrefix(monitorOf(ctx, first), "mon_groups/")))
		Eventually(ctx, func() uint64 { return counterOf(ctx, group, 0, "mbm_total_bytes") }).Should(BeNumerically(">", 0))
		deletePod(ctx, first)
		deleteClaim(ctx, first)
		before := counterOf(ctx, group, 0, "mbm_total_bytes")
		second := waitRunning(ctx, createWithWays(ctx, namespace, "second", "gold.dra.numa", nil, inCache0))
		Expect(groupOf(ctx, second).name).To(Equal(group))
		use := useOfClaim(ctx, second)
		Expect(use.Group).To(Equal(group))
		Expect(*use.Caches[0].TotalBytes).To(And(BeNumerically(">", 0), BeNumerically("<=", counterOf(ctx, group, 0, "mbm_total_bytes")-before)))
		metrics, err := scrape(ctx)
		Expect(err).NotTo(HaveOccurred())
		traffic := fmt.Sprintf(`dra_numa_claim_memory_traffic_bytes_total{l3="0",namespace=%q,numa_node="",resourceclaim="second"}`, namespace)
		Expect(metrics).To(HaveKeyWithValue(traffic, And(BeNumerically(">=", *use.Caches[0].TotalBytes), BeNumerically("<=", counterOf(ctx, group, 0, "mbm_total_bytes")-before))))
	})

	It("has processes that start later in the container use and count in the class", func(ctx context.Context) {
		namespace := createNamespace(ctx, "later")
		pod := waitRunning(ctx, createWithWays(ctx, namespace, "later", "gold.dra.numa", nil, inCache0))
		text, err := observer.Run(ctx, `sh -c 'echo 0 >"$0/cgroup.procs" && cat /proc/self/cpu_resctrl_groups && grep Cpus_allowed_list /proc/self/status' "/proc/1/root/sys/fs/cgroup$1"`,
			inKernel(snapshot(ctx), pod).Cgroup)
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Fields(text)).To(Equal([]string{"res:/", "mon:", "Cpus_allowed_list:", groupOf(ctx, pod).cpus.String()}), "no group of its own, so that of its CPUs counts")
	})

	It("prepares claims that the kernel cannot count", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "not-counted"), oneCore(ctx)
		fill := func() { // several times, because those of groups that have ended are in limbo for a while
			_, err := observer.Run(ctx, `cd "$1/mon_groups" && i=0 && for try in 1 2 3 4 5; do
				while mkdir "fill-$i" 2>/dev/null; do i=$((i + 1)); done; sleep 1; done`, resctrlMount)
			Expect(err).NotTo(HaveOccurred())
		}
		empty := func(ctx context.Context) {
			_, err := observer.Run(ctx, `cd "$1/mon_groups" && for group in fill-*; do if [ -d "$group" ]; then rmdir "$group"; fi; done`, resctrlMount)
			Expect(err).NotTo(HaveOccurred())
		}
		DeferCleanup(empty)
		fill()
		pod := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("not-counted", core), core))
		Expect(monitorsNow(ctx)).NotTo(ContainElement(strings.TrimPrefix(monitorOf(ctx, pod), "mon_groups/")))
		Expect(useOfClaim(ctx, pod).Why).To(ContainSubstring("the kernel has no counter (RMID) left"))
		empty(ctx)
		Eventually(ctx, func(g Gomega) { checkMonitored(ctx, g, pod, monitorOf(ctx, pod)) }).Should(Succeed())
	})
})

// monitorOf returns the folder of the monitoring group of a pod's claim, below the mount.
func monitorOf(ctx context.Context, pod *corev1.Pod) string {
	GinkgoHelper()
	return "mon_groups/dra-numa." + string(claimOf(ctx, pod).UID)
}

// monitorsNow returns the names of the kernel's monitoring groups.
func monitorsNow(ctx context.Context) []string {
	GinkgoHelper()
	names, err := observer.Run(ctx, `ls "$1/mon_groups"`, resctrlMount)
	Expect(err).NotTo(HaveOccurred())
	return strings.Fields(names)
}

func expectMonitored(ctx context.Context, pod *corev1.Pod, group string) {
	GinkgoHelper()
	checkMonitored(ctx, Default, pod, group)
}

// checkMonitored checks in the kernel that a group has the CPUs of a pod's container.
func checkMonitored(ctx context.Context, g Gomega, pod *corev1.Pod, group string) {
	cpus, err := observer.Run(ctx, `cat "$1/cpus_list"`, resctrlMount+"/"+group)
	g.Expect(err).NotTo(HaveOccurred(), group)
	g.Expect(strings.TrimSpace(cpus)).To(Equal(cpusOfContainer(ctx, pod).String()), "CPUs of group %s and of the container", group)
}

// counterOf returns what the kernel counts for a group.
func counterOf(ctx context.Context, group string, cache int, event string) uint64 {
	GinkgoHelper()
	text, err := observer.Run(ctx, `cat "$1/mon_data/$(printf mon_L3_%02d "$2")/$3"`, resctrlMount+"/"+group, strconv.Itoa(cache), event)
	Expect(err).NotTo(HaveOccurred())
	value, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
	Expect(err).NotTo(HaveOccurred(), "%s of cache %d of %s", event, cache, group)
	return value
}

// useOfClaim returns what the pod's node says of its claim.
func useOfClaim(ctx context.Context, pod *corev1.Pod) (use nodestate.ClaimUse) {
	GinkgoHelper()
	var status struct {
		Resctrl []struct {
			Claims []nodestate.ClaimUse `json:"claims"`
		} `json:"resctrl"`
	}
	Expect(json.Unmarshal([]byte(answer(ctx, "status", "--cache", "--ask-nodes", "-o", "json")), &status)).To(Succeed())
	for _, node := range status.Resctrl {
		for _, of := range node.Claims {
			if of.Name == pod.Namespace+"/"+pod.Name {
				use = of
			}
		}
	}
	Expect(use.Name).NotTo(BeEmpty(), "claim of pod %s is not in the status", pod.Name)
	return use
}
