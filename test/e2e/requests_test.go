package e2e

import (
	"context"
	"io/fs"
	"path"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/dra-driver-numa/dra-driver-numa/demo"
	"github.com/dra-driver-numa/dra-driver-numa/test/kernel"
)

const bothExclusive = "True KernelPartition, True KernelPartition"

var _ = Describe("containers of a pod", ofKernel, func() {
	It("that name different requests of a claim have a partition each", func(ctx context.Context) {
		namespace := createNamespace(ctx, "requests")
		pod := applyContainers(ctx, namespace, "container-scope.yaml")
		s := snapshot(ctx)
		engine, proxy := containerOf(s, pod, "engine"), containerOf(s, pod, "proxy")
		for _, process := range []struct{ partition, cpus, effective string }{
			{engine.Partition, engine.CPUs.String(), engine.ExclusiveCPUs.String()}, {proxy.Partition, proxy.CPUs.String(), proxy.ExclusiveCPUs.String()},
		} {
			Expect(process.partition).To(Equal("root"), "cpuset.cpus.partition")
			Expect(process.effective).To(Equal(process.cpus), "cpuset.cpus.exclusive")
		}
		Expect(engine.CPUs.Size()).To(Equal(2), "CPUs %s of engine", engine.CPUs)
		Expect(proxy.CPUs.Size()).To(Equal(2), "CPUs %s of proxy", proxy.CPUs)
		Expect(engine.CPUs.Overlaps(proxy.CPUs)).To(BeFalse(), "engine has %s, proxy has %s", engine.CPUs, proxy.CPUs)
		Expect(engine.Mems.String()).To(Equal(s.ZonesOf(engine.CPUs).String()), "memory of engine")
		Expect(proxy.Mems.String()).To(Equal(engine.Mems.String()), "memory of proxy, which the constraint has on the same NUMA node")

		own := environmentOf(ctx, engine.PID)
		Expect(own).To(HaveKeyWithValue("DRA_NUMA_CPUS_ENGINE", engine.CPUs.String()))
		Expect(own).NotTo(HaveKey("DRA_NUMA_CPUS_PROXY"), "environment of engine")
		if said, there := own["DRA_NUMA_CPUS"]; there { // over NRI
			Expect(said).To(Equal(engine.CPUs.String()), "DRA_NUMA_CPUS of engine")
		}
		expectConditions(ctx, pod, bothExclusive)

		By("restarting one of them")
		Expect(observer.Kill(ctx, engine.PID)).To(Succeed())
		pod = waitRestarted(ctx, pod)
		s = snapshot(ctx)
		again := containerOf(s, pod, "engine")
		Expect(again.CPUs.String()).To(Equal(engine.CPUs.String()), "CPUs of engine after its restart")
		Expect(again.Partition).To(Equal("root"), "partition of engine after its restart")
		Expect(containerOf(s, pod, "proxy")).To(Equal(proxy), "proxy after the restart of engine")
		expectConditions(ctx, pod, bothExclusive)
	})

	It("of one claim are on different NUMA nodes", func(ctx context.Context) {
		pod := applyContainers(ctx, createNamespace(ctx, "apart"), "apart.yaml")
		s := snapshot(ctx)
		first, second := containerOf(s, pod, "first"), containerOf(s, pod, "second")
		Expect(first.Mems.String()).To(Equal(s.ZonesOf(first.CPUs).String()), "memory of the first container")
		Expect(second.Mems.String()).To(Equal(s.ZonesOf(second.CPUs).String()), "memory of the second container")
		Expect(first.Mems.Overlaps(second.Mems)).To(BeFalse(), "NUMA nodes %s and %s", first.Mems, second.Mems)
		expectConditions(ctx, pod, bothExclusive)
	})

	It("that use a claim each have a partition each", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "claims"), oneCore(ctx)
		pod := claimPod("claims", core)
		second := plainContainer(secondContainer)
		second.Resources = *pod.Spec.Containers[0].Resources.DeepCopy()
		second.Resources.Claims[0].Name = "other"
		pod.Spec.Containers = append(pod.Spec.Containers, second)
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: "other", ResourceClaimName: new("other")})
		createClaim(ctx, namespace, newClaim("other", core))
		pod = waitAllRunning(ctx, createClaimed(ctx, namespace, pod, core))

		s := snapshot(ctx)
		one, two := inKernel(s, pod), containerOf(s, pod, secondContainer)
		for _, process := range []kernel.Process{one, two} {
			Expect(process.Partition).To(Equal("root"), "cpuset.cpus.partition of %s", process.Cgroup)
			Expect(process.CPUs.Size()).To(BeNumerically("==", core.cpus), "CPUs %s of %s", process.CPUs, process.Cgroup)
		}
		Expect(one.CPUs.Overlaps(two.CPUs)).To(BeFalse(), "the containers have %s and %s", one.CPUs, two.CPUs)
		Expect(shared(s).Overlaps(one.CPUs.Union(two.CPUs))).To(BeFalse(), "a pod without a claim may run on %s", shared(s))
		expectConditions(ctx, pod, "True KernelPartition") // of the first claim
	})

	It("have the pod's partition and their own CPUs inside, if one names the claim and another a request", func(ctx context.Context) {
		namespace := createNamespace(ctx, "whole")
		pod, claim := twoRequests("whole", oneCore(ctx))
		pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "zone"}}
		second := plainContainer(secondContainer)
		second.Resources.Claims = []corev1.ResourceClaim{{Name: "zone", Request: "b"}}
		pod.Spec.Containers = append(pod.Spec.Containers, second)
		createClaim(ctx, namespace, claim)
		pod = waitAllRunning(ctx, createPod(ctx, namespace, pod))

		s := snapshot(ctx)
		whole, part := inKernel(s, pod), containerOf(s, pod, secondContainer)
		group := path.Dir(whole.Cgroup)
		Expect(observer.ReadCgroup(ctx, group, "cpuset.cpus.partition")).To(Equal("root"), "cpuset.cpus.partition of the pod")
		Expect(observer.ReadCgroup(ctx, group, "cpuset.cpus.effective")).To(Equal(whole.CPUs.String()), "cpuset.cpus.effective of the pod")
		Expect(part.CPUs.IsSubsetOf(whole.CPUs)).To(BeTrue(), "second has %s of %s", part.CPUs, whole.CPUs)
		Expect(2*part.CPUs.Size()).To(Equal(whole.CPUs.Size()), "second has %s of %s", part.CPUs, whole.CPUs)
		Expect(whole.CPUs.Overlaps(shared(s))).To(BeFalse(), "a pod without a claim may run on %s", shared(s))
		Expect(environmentOf(ctx, part.PID)).To(HaveKeyWithValue("DRA_NUMA_CPUS_B", part.CPUs.String()))
		Expect(environmentOf(ctx, part.PID)).NotTo(HaveKey("DRA_NUMA_CPUS_A"), "environment of second")
		expectConditions(ctx, pod, bothExclusive)
	})

	It("all share the claim in the pod's partition, as in demo", func(ctx context.Context) {
		namespace := createNamespace(ctx, "scope")
		pod := applyContainers(ctx, namespace, "pod-scope.yaml")
		s := snapshot(ctx)
		engine, proxy := containerOf(s, pod, "engine"), containerOf(s, pod, "proxy")
		Expect(expectPodPartition(ctx, path.Dir(engine.Cgroup), request{cpus: 4}).String()).To(Equal(engine.CPUs.String()))
		Expect(proxy.CPUs.String()).To(Equal(engine.CPUs.String()), "CPUs of the sidecar")
		expectConditions(ctx, pod, "True KernelPartition")
	})
})

// applyContainers creates the pod of a manifest of demo/containers and waits for it.
func applyContainers(ctx context.Context, namespace, file string) *corev1.Pod {
	GinkgoHelper()
	text, err := fs.ReadFile(demo.Containers, "containers/"+file)
	Expect(err).NotTo(HaveOccurred())
	apply(ctx, namespace, file, string(text))
	pods := podsIn(ctx, namespace)
	Expect(pods).To(HaveLen(1), "pods of %s", file)
	return waitAllRunning(ctx, pods[0])
}

// waitAllRunning waits until all containers of a pod run, init containers left out.
func waitAllRunning(ctx context.Context, pod *corev1.Pod) *corev1.Pod {
	GinkgoHelper()
	defer spend(podsStart)()
	Eventually(ctx, func() (state string, err error) {
		pod, err = readPod(ctx, pod)
		ran := func(status corev1.ContainerStatus) bool { return status.State.Running != nil }
		if err != nil || len(pod.Status.ContainerStatuses) == len(pod.Spec.Containers) &&
			!slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return !ran(s) }) {
			return "", err
		}
		return progress(pod), nil
	}).Should(BeEmpty(), "not all containers of pod %s run", pod.Name)
	return pod
}

// twoRequests is a pod and its claim with the requests a and b, each of a core. Both are of
// the same NUMA node.
func twoRequests(name string, core request) (*corev1.Pod, *resourceapi.ResourceClaim) {
	pod, claim := claimPod(name, core), newClaim(name, core)
	first := &claim.Spec.Devices.Requests[0]
	first.Name = "a"
	second := first.DeepCopy()
	second.Name = "b"
	claim = alike(numaNode, claim, *second)
	pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = *resource.NewQuantity(2*core.cpus, resource.DecimalSI)
	return pod, claim
}

// expectConditions waits for the condition Exclusive of each device in the status of the
// pod's only claim.
func expectConditions(ctx context.Context, pod *corev1.Pod, want string) {
	GinkgoHelper()
	claimOf := claimOf
	if len(pod.Status.ResourceClaimStatuses) > 0 {
		claimOf = onlyClaim // of a template
	}
	Eventually(ctx, func() string {
		said := ""
		claim := claimOf(ctx, pod)
		for _, device := range claim.Status.Devices {
			for _, condition := range device.Conditions {
				if condition.Type == "Exclusive" {
					if said != "" {
						said += ", "
					}
					said += string(condition.Status) + " " + condition.Reason
				}
			}
		}
		return said
	}).Should(Equal(want), "conditions Exclusive of the claim of pod %s", pod.Name)
}
