package e2e

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/test/client"
)

// noQuota is cpu.max of a cgroup without a quota, with the kubelet's period.
const noQuota = "max 100000"

var _ = Describe("CPU quotas of a pod whose container has CPUs of its own", ofKernel, Ordered, func() {
	const sibling, siblingMilli = "sibling", 100
	var (
		core request
		own  int64 // thousandths of a CPU of the claim
		pod  *corev1.Pod
	)

	BeforeAll(func(ctx context.Context) {
		if node.counts {
			Skip("the kubelet adds the CPUs of claims to limits")
		}
		core = oneCore(ctx)
		own = core.cpus * 1000
		pod = withLimit(claimPod("limited", core), own)
		pod.Spec.Containers = append(pod.Spec.Containers, plainContainer(sibling))
		pod.Spec.Containers[1].Resources = limitedTo(siblingMilli)
		pod = waitRunning(ctx, createClaimed(ctx, createNamespace(ctx, "quota"), pod, core))
		Eventually(ctx, func(g Gomega) {
			current, err := readPod(ctx, pod)
			g.Expect(err).NotTo(HaveOccurred())
			for _, status := range current.Status.ContainerStatuses {
				g.Expect(status.State.Running).NotTo(BeNil(), "container %s does not run", status.Name)
			}
			pod = current
		}).Should(Succeed())
	})

	AfterEach(func(ctx context.Context) {
		partition := func() string { return inKernel(snapshot(ctx), pod).Partition }
		Eventually(ctx, partition).WithTimeout(limit(promptTimeout)).Should(Equal("root"), "partition of the claim")
		expectPinned(ctx, snapshot(ctx), pod)
		expectQuotas(ctx, containerOf(snapshot(ctx), pod, sibling).Cgroup, quotaOf(siblingMilli), "")
	})

	It("are lifted when it starts", func(ctx context.Context) {
		Expect(pod.Status.QOSClass).To(Equal(corev1.PodQOSGuaranteed))
		expectQuotas(ctx, inKernel(snapshot(ctx), pod).Cgroup, noQuota, noQuota)
	})

	It("stay so when another program writes them again", func(ctx context.Context) {
		cgroup := inKernel(snapshot(ctx), pod).Cgroup
		for _, dir := range []string{cgroup, path.Dir(cgroup)} {
			Expect(observer.WriteCgroup(ctx, dir, "cpu.max", quotaOf(own+siblingMilli))).To(Succeed())
			expectQuotas(ctx, cgroup, noQuota, noQuota)
		}
	})

	It("stay so when the driver restarts", func(ctx context.Context) {
		killDriver(ctx)
		cgroup := inKernel(snapshot(ctx), pod).Cgroup
		expectQuotas(ctx, cgroup, noQuota, noQuota)
		Expect(observer.WriteCgroup(ctx, cgroup, "cpu.max", quotaOf(own))).To(Succeed())
		expectQuotas(ctx, cgroup, noQuota, noQuota)
	})

	It("are lifted when the container is started again", func(ctx context.Context) {
		before := inKernel(snapshot(ctx), pod)
		Expect(observer.Kill(ctx, before.PID)).To(Succeed())
		pod = waitRestarted(ctx, pod)
		after := inKernel(snapshot(ctx), pod)
		Expect(after.Cgroup).NotTo(Equal(before.Cgroup), "cgroup of the container that was started again")
		expectQuotas(ctx, after.Cgroup, noQuota, noQuota)
	})

	It("stay so when systemd is reloaded and writes what it knows", func(ctx context.Context) {
		systemd, err := observer.Systemd(ctx)
		Expect(err).NotTo(HaveOccurred())
		if !systemd {
			Skip("PID 1 of the node is not systemd")
		}
		cgroup := inKernel(snapshot(ctx), pod).Cgroup
		scope, slice := path.Base(cgroup), path.Base(path.Dir(cgroup))
		for _, command := range [][]string{
			{"daemon-reload"},
			{"daemon-reexec"},
			{"set-property", "--runtime", scope, fmt.Sprintf("CPUQuota=%d%%", own/10)},
			{"set-property", "--runtime", slice, fmt.Sprintf("CPUQuota=%d%%", (own+siblingMilli)/10)},
			{"daemon-reload"},
		} {
			_, err := observer.Run(ctx, `exec chroot /proc/1/root systemctl "$@"`, command...)
			Expect(err).NotTo(HaveOccurred(), "systemctl %q", command)
			time.Sleep(repairTime)
			expectQuotas(ctx, cgroup, noQuota, noQuota)
		}
	})

	It("stay so when it is resized in place, unless the limit is then less than its CPUs", func(ctx context.Context) {
		release, err := client.Release(cluster.Kubernetes.Discovery())
		Expect(err).NotTo(HaveOccurred())
		if release == client.Release136 {
			Skip("Kubernetes 1.36 resizes no container that has claims")
		}
		cgroup := inKernel(snapshot(ctx), pod).Cgroup
		for _, milli := range []int64{own + 500, own - 500, own} {
			resizeLimit(ctx, pod, milli)
			time.Sleep(repairTime)
			if milli < own {
				expectQuotas(ctx, cgroup, quotaOf(milli), "")
			} else {
				expectQuotas(ctx, cgroup, noQuota, noQuota)
			}
		}
	})
})

var _ = Describe("CPU quotas of a pod with a lower limit than the CPUs of its claim", ofKernel, func() {
	It("stay, and so do those of a pod with a limit of its own", func(ctx context.Context) {
		if node.counts {
			Skip("the kubelet adds the CPUs of claims to limits")
		}
		namespace, core := createNamespace(ctx, "lower"), oneCore(ctx)
		less := core.cpus*1000 - 500
		pod := waitRunning(ctx, createClaimed(ctx, namespace, withLimit(claimPod("lower", core), less), core))
		time.Sleep(repairTime)
		expectQuotas(ctx, inKernel(snapshot(ctx), pod).Cgroup, quotaOf(less), quotaOf(less))
		deletePod(ctx, pod)

		limited := claimPod("whole", core)
		limited.Spec.Resources = &corev1.ResourceRequirements{Requests: limitedTo(core.cpus * 1000).Limits, Limits: limitedTo(core.cpus * 1000).Limits}
		limited.Spec.Containers[0].Resources.Requests = nil
		limited = waitRunning(ctx, createClaimed(ctx, namespace, limited, core))
		time.Sleep(repairTime)
		all := quotaOf(core.cpus * 1000)
		expectQuotas(ctx, inKernel(snapshot(ctx), limited).Cgroup, all, all)
	})
})

var _ = Describe("CPU quota of a pod that a resize gives a limit of its own", ofKernel, func() {
	It("stays if it is less than the limits of its containers", func(ctx context.Context) {
		release, err := client.Release(cluster.Kubernetes.Discovery())
		Expect(err).NotTo(HaveOccurred())
		if node.counts || release == client.Release136 {
			Skip("the kubelet adds the CPUs of claims to limits, or resizes no container that has claims")
		}
		core := oneCore(ctx)
		own := core.cpus * 1000
		pod := withLimit(claimPod("resized", core), own)
		pod.Spec.Containers = append(pod.Spec.Containers, plainContainer("worker"))
		worker := limitedTo(400)
		worker.Requests = limitedTo(100).Limits
		pod.Spec.Containers[1].Resources = worker
		pod = waitRunning(ctx, createClaimed(ctx, createNamespace(ctx, "resized"), pod, core))
		cgroup := inKernel(snapshot(ctx), pod).Cgroup
		expectQuotas(ctx, cgroup, noQuota, noQuota)

		// As much as the containers request, and a bit more, so that the pod stays Burstable.
		limits := fmt.Sprintf(`{"spec": {"resources": {"requests": {"cpu": "%dm"}, "limits": {"cpu": "%dm"}}}}`, own+100, own+200)
		_, err = cluster.Kubernetes.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, []byte(limits), metav1.PatchOptions{}, "resize")
		Expect(err).NotTo(HaveOccurred())
		expectQuotas(ctx, cgroup, noQuota, quotaOf(own+200))
		time.Sleep(repairTime)
		expectQuotas(ctx, cgroup, noQuota, quotaOf(own+200))
	})
})

// quotaOf is cpu.max for a limit.
func quotaOf(milli int64) string { return fmt.Sprintf("%d 100000", milli*100) }

// limitedTo is what a container of a Guaranteed pod has.
func limitedTo(milli int64) corev1.ResourceRequirements {
	amounts := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(milli, resource.DecimalSI),
		corev1.ResourceMemory: resource.MustParse("64Mi"),
	}
	return corev1.ResourceRequirements{Requests: amounts, Limits: amounts}
}

// withLimit gives the container of a claim pod a limit, which is its request, too.
func withLimit(pod *corev1.Pod, milli int64) *corev1.Pod {
	amounts := limitedTo(milli)
	pod.Spec.Containers[0].Resources.Requests, pod.Spec.Containers[0].Resources.Limits = amounts.Requests, amounts.Limits
	return pod
}

// expectQuotas waits until the kernel shows this cpu.max for a container, also where crun has
// its process in a child of its cgroup, and for its pod; "" is any.
func expectQuotas(ctx context.Context, cgroup, container, pod string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		text, err := observer.Run(ctx, `cd "$1" && cat ../cpu.max cpu.max && { [ ! -d container ] || cat container/cpu.max; }`, "/proc/1/root/sys/fs/cgroup"+cgroup)
		g.Expect(err).NotTo(HaveOccurred())
		lines := strings.Split(strings.TrimSpace(text), "\n")
		if pod != "" {
			g.Expect(lines[0]).To(Equal(pod), "cpu.max of the pod")
		}
		g.Expect(lines[1:]).To(HaveEach(container), "cpu.max of the container")
	}).WithTimeout(limit(promptTimeout)).Should(Succeed(), "quotas of %s", cgroup)
}

// resizeLimit changes request and limit of the first container, and waits until the runtime
// has the limit.
func resizeLimit(ctx context.Context, pod *corev1.Pod, milli int64) {
	GinkgoHelper()
	wanted := resource.NewMilliQuantity(milli, resource.DecimalSI)
	patch := fmt.Sprintf(`{"spec":{"containers":[{"name":%q,"resources":{"requests":{"cpu":%q},"limits":{"cpu":%q}}}]}}`, containerName, wanted, wanted)
	_, err := cluster.Kubernetes.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "resize")
	Expect(err).NotTo(HaveOccurred())
	Eventually(ctx, func(g Gomega) {
		current, err := readPod(ctx, pod)
		g.Expect(err).NotTo(HaveOccurred())
		for _, status := range current.Status.ContainerStatuses {
			if status.Name == containerName {
				g.Expect(status.Resources).NotTo(BeNil())
				g.Expect(status.Resources.Limits.Cpu().Cmp(*wanted)).To(BeZero(), "CPU limit of the container: %s, want %s", status.Resources.Limits.Cpu(), wanted)
			}
		}
	}).Should(Succeed())
}
