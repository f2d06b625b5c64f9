package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// A service of the host may have a partition of its own: systemd 261 has CPUSetPartition=,
// and node tuning operators make one by hand.
var _ = Describe("a slice of the host with exclusive CPUs", ofKernel, func() {
	It("keeps them from claims, which keep theirs", func(ctx context.Context) {
		namespace := createNamespace(ctx, "hostslice")
		zone, cpus := wholeZone(snapshot(ctx))
		all := slices.Collect(cpus.All())
		theirs := cpuset.New(all[len(all)-zone.threadsPerCore:]...)
		rest := request{zone: zone.id, cpus: int64(zone.cpus - zone.threadsPerCore)}

		By("before a claim")
		takeFromPods(ctx, theirs)
		expectSlice(ctx, theirs) // the daemon may not have seen it when it prepares the claim
		whole := request{zone: zone.id, cpus: int64(zone.cpus)}
		pod := createClaimed(ctx, namespace, withoutRequests(claimPod("whole", whole)), whole)
		expectHeldBack(ctx, pod, fmt.Sprintf("cpus %s are held by cgroup %s, which belongs to no claim", theirs, hostSlice))
		deletePod(ctx, pod)
		deleteClaim(ctx, pod)
		pod = waitRunning(ctx, createClaimed(ctx, namespace, withoutRequests(claimPod("beside", rest)), rest))
		Expect(expectPinned(ctx, snapshot(ctx), pod).String()).To(Equal(cpus.Difference(theirs).String()), "CPUs of the claim beside the slice")
		expectSliceHas(ctx, theirs)
		deletePod(ctx, pod)
		deleteClaim(ctx, pod)
		removeSlice(ctx)
		returnToPods(ctx)

		By("during the life of a claim")
		pod = waitRunning(ctx, createClaimed(ctx, namespace, withoutRequests(claimPod("early", rest)), rest))
		held := expectPinned(ctx, snapshot(ctx), pod)
		Expect(makeSlice(ctx, cpus)).NotTo(Succeed(), "the kernel gives CPUs of a claim to a slice")
		Expect(expectPinned(ctx, snapshot(ctx), pod).String()).To(Equal(held.String()), "CPUs of the claim")
		removeSlice(ctx)
		expectSlice(ctx, cpus.Difference(held))
		expectBlocked(ctx, zone, cpus.Difference(held))
		Expect(expectPinned(ctx, snapshot(ctx), pod).String()).To(Equal(held.String()), "CPUs of the claim")
		expectSliceHas(ctx, cpus.Difference(held))
		expectExclusive(ctx, pod, "KernelPartition")

		By("after the life of a claim")
		deletePod(ctx, pod)
		deleteClaim(ctx, pod)
		pod = waitRunning(ctx, createClaimed(ctx, namespace, claimPod("late", rest), rest))
		Expect(expectPinned(ctx, snapshot(ctx), pod).String()).To(Equal(held.String()), "CPUs of the claim of another QoS class")
		expectSliceHas(ctx, cpus.Difference(held))
	})
})

// hostSlice is a cgroup beside those of all pods.
const hostSlice = "e2e-host.slice"

// takeFromPods removes CPUs from cpuset.cpus of the cgroup of all pods: as long as no claim
// lives there, Linux 6.19 and older make no partition beside it of CPUs that it names.
func takeFromPods(ctx context.Context, cpus cpuset.Set) {
	GinkgoHelper()
	DeferCleanup(returnToPods)
	all, err := observer.Run(ctx, `cat /proc/1/root/sys/fs/cgroup/kubepods*/cpuset.cpus.effective`)
	Expect(err).NotTo(HaveOccurred())
	has, err := cpuset.Parse(strings.TrimSpace(all))
	Expect(err).NotTo(HaveOccurred())
	writeCPUsOfPods(ctx, has.Difference(cpus).String())
}

// returnToPods gives it the CPUs of the machine, as the kubelet does.
func returnToPods(ctx context.Context) {
	GinkgoHelper()
	text, err := observer.Run(ctx, `cat /sys/devices/system/cpu/online`)
	Expect(err).NotTo(HaveOccurred())
	writeCPUsOfPods(ctx, strings.TrimSpace(text))
}

func writeCPUsOfPods(ctx context.Context, cpus string) {
	GinkgoHelper()
	_, err := observer.Run(ctx, `echo "$1" >"$(echo /proc/1/root/sys/fs/cgroup/kubepods*)/cpuset.cpus"`, cpus)
	Expect(err).NotTo(HaveOccurred(), "write cpuset.cpus %s of the cgroup of all pods", cpus)
}

// makeSlice makes a partition with these CPUs and a process of the host.
func makeSlice(ctx context.Context, cpus cpuset.Set) error {
	_, err := observer.Run(ctx, `mkdir -p "$1" && cd "$1" && echo "$2" >cpuset.cpus.exclusive && echo "$2" >cpuset.cpus && echo root >cpuset.cpus.partition &&
		{ grep -qx root cpuset.cpus.partition || { cat cpuset.cpus.partition >&2; false; }; } && { sleep 2147483 </dev/null >/dev/null 2>&1 & echo $! >cgroup.procs; }`, "/proc/1/root/sys/fs/cgroup/"+hostSlice, cpus.String())
	return err
}

// expectSlice makes it once the keeper has released what earlier claims had.
func expectSlice(ctx context.Context, cpus cpuset.Set) {
	GinkgoHelper()
	DeferCleanup(removeSlice)
	Eventually(ctx, makeSlice).WithArguments(cpus).Should(Succeed(), "partition of %s with CPUs %s", hostSlice, cpus)
}

// expectBlocked waits until the daemon has seen a slice.
func expectBlocked(ctx context.Context, zone publishedZone, cpus cpuset.Set) {
	GinkgoHelper()
	Eventually(ctx, scrape).Should(HaveKeyWithValue(fmt.Sprintf(`dra_numa_zone_cpus{device=%q,state="blocked"}`, zone.device), float64(cpus.Size())), "CPUs %s that no claim has", cpus)
}

func removeSlice(ctx context.Context) {
	GinkgoHelper()
	Eventually(ctx, func() error {
		_, err := observer.Run(ctx, `[ ! -d "$1" ] || { echo 1 >"$1/cgroup.kill"; echo member >"$1/cpuset.cpus.partition"; echo >"$1/cpuset.cpus.exclusive"; sleep 0.2; rmdir "$1"; }`, "/proc/1/root/sys/fs/cgroup/"+hostSlice)
		return err
	}).Should(Succeed())
}

// expectSliceHas checks what the kernel grants the slice.
func expectSliceHas(ctx context.Context, cpus cpuset.Set) {
	GinkgoHelper()
	text, err := observer.Run(ctx, `cd "$1" && cat cpuset.cpus.partition cpuset.cpus.exclusive.effective`, "/proc/1/root/sys/fs/cgroup/"+hostSlice)
	Expect(err).NotTo(HaveOccurred())
	Expect(strings.Fields(text)).To(Equal([]string{"root", cpus.String()}), "partition and exclusive CPUs of the slice")
}
