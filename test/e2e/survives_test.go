package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/client"
	"github.com/dra-driver-numa/dra-driver-numa/test/kernel"
)

// What is promised: how long a node may be without slices that somebody deleted, and how
// long a claim's cgroup may be other than it should. The specs print what they measure,
// and fail only if it takes promptTimeout longer: an emulated node has its own time.
const (
	slicesBack = 2 * time.Second
	repairTime = time.Second
)

// expectTimely prints a measured time beside what is promised.
func expectTimely(what string, took, promised time.Duration) {
	GinkgoHelper()
	GinkgoWriter.Printf("%s: %s, promised are %s\n", what, took.Round(time.Millisecond), promised)
	Expect(took).To(BeNumerically("<=", promised+limit(promptTimeout)), what)
}

var _ = Describe("a claim pod on a node where others restart", ofKernel, Ordered, func() {
	var (
		namespace string
		core      request
		pod       *corev1.Pod
		held      cpuset.Set
		process   kernel.Process
	)

	BeforeAll(func(ctx context.Context) {
		namespace = createNamespace(ctx, "survives")
		core = oneCore(ctx)
		pod = waitRunning(ctx, createClaimed(ctx, namespace, claimPod("survivor", core), core))
		s := snapshot(ctx)
		held, process = expectPinned(ctx, s, pod), inKernel(s, pod)
		watch(ctx, held)
	})

	AfterEach(func(ctx context.Context) {
		Expect(expectPinned(ctx, snapshot(ctx), pod).String()).To(Equal(held.String()), "CPUs of the claim")
		expectNoStrangers(ctx, held, process.Cgroup)
		current, err := readPod(ctx, pod)
		Expect(err).NotTo(HaveOccurred())
		Expect(current.Status.ContainerStatuses[0].RestartCount).To(BeZero(), "restarts of the claim's container")
	})

	It("keeps its CPUs, and slices that are deleted are back at once", func(ctx context.Context) {
		gap := slicesGap(ctx, func() {
			all := cluster.Kubernetes.ResourceV1().ResourceSlices()
			Expect(all.DeleteCollection(ctx, metav1.DeleteOptions{}, slicesOfNode())).To(Succeed())
		})
		expectTimely("time without slices", gap, slicesBack)
	})

	It("keeps its CPUs when the kubelet restarts, which deletes the slices", func(ctx context.Context) {
		gap := slicesGap(ctx, func() { Expect(observer.KillNamed(ctx, "kubelet")).To(Succeed()) })
		expectTimely("time without slices", gap, slicesBack)
		runAnother(ctx, namespace, core, held)
	})

	It("keeps its CPUs when the container runtime restarts", func(ctx context.Context) {
		Expect(observer.KillNamed(ctx, runtimeProcess(ctx))).To(Succeed())
		runAnother(ctx, namespace, core, held)
	})

	It("keeps its CPUs when the clock of the node jumps", ofMachine, func(ctx context.Context) {
		DeferCleanup(func(ctx context.Context) { Expect(observer.SetClock(ctx, time.Now())).To(Succeed()) })
		Expect(observer.SetClock(ctx, time.Now().Add(time.Hour))).To(Succeed())
		runAnother(ctx, namespace, core, held)
		Expect(observer.SetClock(ctx, time.Now().Add(-time.Hour))).To(Succeed())
		time.Sleep(3 * time.Second)
		Expect(observer.SetClock(ctx, time.Now())).To(Succeed())
	})

	It("keeps its CPUs when systemd is reloaded and executed anew", func(ctx context.Context) {
		systemd, err := observer.Systemd(ctx)
		Expect(err).NotTo(HaveOccurred())
		if !systemd {
			Skip("PID 1 of the node is not systemd")
		}
		follow(ctx, process)
		for _, verb := range []string{"daemon-reload", "daemon-reexec"} {
			_, err := observer.Run(ctx, `exec chroot /proc/1/root systemctl "$1"`, verb)
			Expect(err).NotTo(HaveOccurred())
		}
		expectSettled(ctx, process)
	})

	It("keeps its CPUs when its container is resized in place", func(ctx context.Context) {
		follow(ctx, process)
		wanted := resource.NewQuantity(core.cpus+1, resource.DecimalSI)
		patch := fmt.Sprintf(`{"spec":{"containers":[{"name":%q,"resources":{"requests":{"cpu":%q}}}]}}`, containerName, wanted)
		_, err := cluster.Kubernetes.CoreV1().Pods(namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, []byte(patch),
			metav1.PatchOptions{}, "resize")
		release, releaseErr := client.Release(cluster.Kubernetes.Discovery())
		Expect(releaseErr).NotTo(HaveOccurred())
		if release == client.Release136 { // which resizes no container that has claims
			Expect(err).To(MatchError(ContainSubstring("only cpu and memory resources are mutable")))
			expectSettled(ctx, process)
			return
		}
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func(g Gomega) {
			current, err := readPod(ctx, pod)
			g.Expect(err).NotTo(HaveOccurred())
			actual := current.Status.ContainerStatuses[0].Resources
			g.Expect(actual).NotTo(BeNil())
			g.Expect(actual.Requests.Cpu().Cmp(*wanted)).To(BeZero(), "CPU requests of the container")
		}).Should(Succeed())
		expectSettled(ctx, process)
	})
})

// runAnother runs a second claim pod through its whole life: the node works.
func runAnother(ctx context.Context, namespace string, want request, taken cpuset.Set) {
	GinkgoHelper()
	another := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("another", want), want))
	cpus := expectPinned(ctx, snapshot(ctx), another)
	Expect(cpus.Overlaps(taken)).To(BeFalse(), "another claim was given %s, %s are held", cpus, taken)
	deletePod(ctx, another)
	deleteClaim(ctx, another)
}

// expectSettled checks that what a process's cgroup has is what it had, and was
// not other for longer than a repair may take since it is followed.
func expectSettled(ctx context.Context, process kernel.Process) []kernel.Period {
	GinkgoHelper()
	want := process.EffectiveCPUs.String() + " " + process.EffectiveMems.String() + " " + process.Partition
	time.Sleep(repairTime)
	Eventually(ctx, func(g Gomega) {
		var now []string
		for _, file := range []string{"cpuset.cpus.effective", "cpuset.mems.effective", "cpuset.cpus.partition"} {
			line, err := observer.ReadCgroup(ctx, process.Cgroup, file)
			g.Expect(err).NotTo(HaveOccurred())
			now = append(now, line)
		}
		g.Expect(strings.Join(now, " ")).To(Equal(want))
	}).WithTimeout(limit(promptTimeout)).Should(Succeed(), "what cgroup %s has", process.Cgroup)
	periods, err := observer.Unfollow(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(periods).NotTo(BeEmpty(), "nothing is known of cgroup %s", process.Cgroup)
	var other, longest time.Duration // since it was last as it should be
	for _, period := range periods {
		other += period.Time
		if period.State == want {
			other = 0
		}
		longest = max(longest, other)
	}
	expectTimely("time in which the claim's cgroup was other than it should", longest, repairTime)
	Expect(periods[len(periods)-1].State).To(Equal(want), "what cgroup %s has: %v", process.Cgroup, periods)
	return periods
}
