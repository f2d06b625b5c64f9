package e2e

import (
	"context"
	"path"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/kernel"
)

var _ = Describe("a claim that several containers use", ofKernel, withCounting, func() {
	It("belongs to an init container first and then to the main one", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "init"), oneCore(ctx)
		pod := claimPod("init", core)
		first := claimContainer("first")
		first.Command = []string{"/bin/sh", "-c", "grep Cpus_allowed_list: /proc/self/status >/dev/termination-log"}
		pod.Spec.InitContainers = []corev1.Container{first}
		pod = waitRunning(ctx, createClaimed(ctx, namespace, pod, core))

		held := expectPinned(ctx, snapshot(ctx), pod)
		said := pod.Status.InitContainerStatuses[0].State.Terminated
		Expect(said).NotTo(BeNil(), "state of the init container")
		_, list, _ := strings.Cut(said.Message, ":")
		Expect(strings.TrimSpace(list)).To(Equal(held.String()), "CPUs of the init container")
		expectExclusive(ctx, pod, "KernelPartition")
	})

	It("is the whole pod's when all of them do, side car and pause container included", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "both"), oneCore(ctx)
		pod := claimPod("both", core)
		always := corev1.ContainerRestartPolicyAlways
		car := claimContainer("car")
		car.RestartPolicy = &always
		pod.Spec.InitContainers = []corev1.Container{car}
		pod.Spec.Containers = append(pod.Spec.Containers, claimContainer(secondContainer))
		pod = waitRunning(ctx, createClaimed(ctx, namespace, pod, core))

		s := snapshot(ctx)
		group := path.Dir(inKernel(s, pod).Cgroup)
		held := expectPodPartition(ctx, group, core)
		watch(ctx, held)
		inside := 0
		for _, process := range s.Processes {
			if below(process.Cgroup, []string{group}) {
				inside++
				Expect(process.CPUs.String()).To(Equal(held.String()), "CPUs of process %d of %s", process.PID, process.Cgroup)
			}
		}
		want := 4
		if runtimeProcess(ctx) == crioProcess {
			want = 3 // it has no pause container where the containers do not share PIDs
		}
		Expect(inside).To(BeNumerically(">=", want), "processes of three containers, and of the pause container")
		expectExclusive(ctx, pod, "KernelPartition")
		expectNoStrangers(ctx, held, group)

		By("restarting one of them") // of its runtime's tasks in the pod nobody knows where they were when they are gone
		Expect(observer.Kill(ctx, inKernel(s, pod).PID)).To(Succeed())
		waitRestarted(ctx, pod)
		Expect(expectPodPartition(ctx, group, core).String()).To(Equal(held.String()), "CPUs of the pod after a restart")

		By("deleting the pod")
		deletePod(ctx, pod)
		Expect(held.IsSubsetOf(shared(snapshot(ctx)))).To(BeTrue(), "a pod without a claim may run on %s again", held)
	})

	It("is theirs without a partition when a container of the pod does not use it", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "some"), oneCore(ctx)
		bystander := waitRunning(ctx, createPod(ctx, namespace, plainPod("bystander")))
		pod := claimPod("some", core)
		pod.Spec.Containers = append(pod.Spec.Containers, claimContainer(secondContainer), plainContainer("third"))
		pod = waitRunning(ctx, createClaimed(ctx, namespace, pod, core))

		s := snapshot(ctx)
		held := inKernel(s, pod).CPUs
		Expect(held.Size()).To(BeNumerically("==", core.cpus), "CPUs of the claim")
		for _, name := range []string{containerName, secondContainer} {
			process := containerOf(s, pod, name)
			Expect(process.CPUs.String()).To(Equal(held.String()), "CPUs of container %s", name)
			Expect(process.Mems.String()).To(Equal(s.ZonesOf(held).String()), "memory of container %s", name)
			Expect(process.Partition).To(Equal("member"), "partition of container %s", name)
		}
		expectSharedPool(ctx, pod, "third", held)

		By("deleting the pod")
		deletePod(ctx, pod)
		deleteClaim(ctx, pod)
		Eventually(ctx, func() bool { return held.IsSubsetOf(inKernel(snapshot(ctx), bystander).CPUs) }).
			Should(BeTrue(), "a container without a claim may run on %s again", held)
		late := waitRunning(ctx, createPod(ctx, namespace, plainPod("late")))
		Expect(inKernel(snapshot(ctx), late).OwnCPUs.IsEmpty()).To(BeTrue(), "a container that starts later has no cpuset.cpus of its own")
	})

	It("loses its partition to a second pod and has it again when that is gone", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "pods"), oneCore(ctx)
		pod := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("one", core), core))
		held := expectPinned(ctx, snapshot(ctx), pod)

		other := claimPod("two", core)
		other.Spec.ResourceClaims[0].ResourceClaimName = &pod.Name
		other = createPod(ctx, namespace, other)
		if node.counts {
			expectPending(ctx, other, "cannot be shared across pods")
			expectExclusive(ctx, pod, "KernelPartition")
			return
		}
		other = waitRunning(ctx, other)
		s := snapshot(ctx)
		for _, user := range []*corev1.Pod{pod, other} {
			process := inKernel(s, user)
			Expect(process.CPUs.String()).To(Equal(held.String()), "CPUs of pod %s", user.Name)
			Expect(process.Partition).To(Equal("member"), "partition of pod %s", user.Name)
		}
		expectSharedPool(ctx, pod, "", held)

		By("deleting the first")
		deletePod(ctx, pod)
		expectPartitionOfTheLast(ctx, pod.Name, other, core, held)
	})

	It("has it when one of two pods is left that came at the same time", func(ctx context.Context) {
		if node.counts {
			Skip("the scheduler counts claims, and does not let pods share them")
		}
		namespace, core := createNamespace(ctx, "same"), oneCore(ctx)
		other := claimPod("two", core)
		other.Spec.ResourceClaims[0].ResourceClaimName = ptr.To("one")
		other = createPod(ctx, namespace, other)
		pod := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("one", core), core))
		other = waitRunning(ctx, other)
		held := inKernel(snapshot(ctx), pod).CPUs
		expectSharedPool(ctx, pod, "", held)

		By("deleting the first")
		deletePod(ctx, pod)
		expectPartitionOfTheLast(ctx, pod.Name, other, core, held)
	})
})

// expectPartitionOfTheLast waits until the only pod that is left of a claim has its
// partition.
func expectPartitionOfTheLast(ctx context.Context, claim string, last *corev1.Pod, core request, held cpuset.Set) {
	GinkgoHelper()
	Eventually(ctx, func() string { return inKernel(snapshot(ctx), last).Partition }).
		Should(Equal("root"), "partition of the pod that is left")
	Expect(expectHeld(snapshot(ctx), last, core.zone, held.Size()).String()).To(Equal(held.String()))
	waitExclusive(ctx, last.Namespace, claim, metav1.ConditionTrue, "KernelPartition")
}

// oneCore asks for one core of a whole zone.
func oneCore(ctx context.Context) request {
	GinkgoHelper()
	zone, _ := wholeZone(snapshot(ctx))
	return request{cpus: int64(zone.threadsPerCore), zone: zone.id}
}

// claimContainer is a container that sleeps and uses the claim of its claimPod.
func claimContainer(name string) corev1.Container {
	container := plainContainer(name)
	container.Resources.Claims = []corev1.ResourceClaim{{Name: "zone"}}
	return container
}

// containerOf is inKernel for a container of any name.
func containerOf(s kernel.Snapshot, pod *corev1.Pod, name string) kernel.Process {
	GinkgoHelper()
	process, err := s.Container(pod, name)
	Expect(err).NotTo(HaveOccurred())
	return process
}

// waitRestarted waits until the first container of a pod runs once more.
func waitRestarted(ctx context.Context, pod *corev1.Pod) *corev1.Pod {
	GinkgoHelper()
	before := pod.Status.ContainerStatuses[0].RestartCount
	Eventually(ctx, func(g Gomega) {
		current, err := readPod(ctx, pod)
		g.Expect(err).NotTo(HaveOccurred())
		status := current.Status.ContainerStatuses[0]
		g.Expect(status.RestartCount).To(BeNumerically(">", before))
		g.Expect(status.State.Running).NotTo(BeNil())
		pod = current
	}).Should(Succeed(), "pod %s has not restarted", pod.Name)
	return pod
}

// expectPodPartition checks that a pod's cgroup is a partition of as many CPUs
// as were asked for, and returns them.
func expectPodPartition(ctx context.Context, group string, want request) cpuset.Set {
	GinkgoHelper()
	Expect(observer.ReadCgroup(ctx, group, "cpuset.cpus.partition")).To(Equal("root"), "cpuset.cpus.partition of %s", group)
	text, err := observer.ReadCgroup(ctx, group, "cpuset.cpus.effective")
	Expect(err).NotTo(HaveOccurred())
	cpus, err := cpuset.Parse(text)
	Expect(err).NotTo(HaveOccurred())
	Expect(cpus.Size()).To(BeNumerically("==", want.cpus), "cpuset.cpus.effective of %s is %s", group, cpus)
	return cpus
}

// expectExclusive waits until the status of the pod's claim says that its CPUs are
// exclusive, with the reason.
func expectExclusive(ctx context.Context, pod *corev1.Pod, reason string) {
	GinkgoHelper()
	waitExclusive(ctx, pod.Namespace, pod.Name, metav1.ConditionTrue, reason)
}

// expectNotExclusive waits until the status of the pod's claim says that its CPUs are not
// exclusive, with the reason.
func expectNotExclusive(ctx context.Context, pod *corev1.Pod, reason string) {
	GinkgoHelper()
	waitExclusive(ctx, pod.Namespace, pod.Name, metav1.ConditionFalse, reason)
}

// waitExclusive waits for the condition Exclusive of the only device in the status of a
// claim, with one of the reasons, and returns that. An empty status is any.
func waitExclusive(ctx context.Context, namespace, name string, status metav1.ConditionStatus, reasons ...string) (reason string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		claim, err := readClaim(ctx, namespace, name)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(claim.Status.Devices).To(HaveLen(1), "devices in the status of claim %s", name)
		var said []string
		for _, condition := range claim.Status.Devices[0].Conditions {
			if condition.Type == "Exclusive" {
				reason = condition.Reason
				said = append(said, string(condition.Status)+" "+condition.Message)
			}
		}
		g.Expect(said).To(ConsistOf(HavePrefix(string(status))), "condition Exclusive of claim %s", name)
		g.Expect(reasons).To(ContainElement(reason), "reason of condition Exclusive of claim %s: %v", name, said)
	}).Should(Succeed())
	return reason
}

// expectSharedPool checks what the status of the pod's claim says of CPUs that
// are in no partition: where the container runtime keeps other containers off,
// those have to be off them, else it says that nobody does. Neighbour is a
// container of the pod that does not use the claim, or empty.
func expectSharedPool(ctx context.Context, pod *corev1.Pod, neighbour string, held cpuset.Set) {
	GinkgoHelper()
	if waitExclusive(ctx, pod.Namespace, pod.Name, "", "Shared", "Mixed", "PartitionNone", "SharedPool") != "SharedPool" {
		return
	}
	Eventually(ctx, func(g Gomega) {
		s := snapshot(ctx)
		g.Expect(shared(s).Overlaps(held)).To(BeFalse(), "a pod without a claim may run on %s, the claim has %s", shared(s), held)
		if neighbour != "" {
			cpus := containerOf(s, pod, neighbour).CPUs
			g.Expect(cpus.Overlaps(held)).To(BeFalse(), "container %s may run on %s, the claim has %s", neighbour, cpus, held)
		}
	}).Should(Succeed())
}
