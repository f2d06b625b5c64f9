package e2e

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/kernel"
)

// withTwoWorlds marks specs for a cluster with a second node, and a webhook that translates
// pods with the scope pod.
var withTwoWorlds = Label("two-worlds", withOwnBoot)

// busyWorkload was written for static managers: IMAGE, NAME, NODE and CPUS are replaced.
const busyWorkload = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  replicas: 2
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      nodeSelector: {kubernetes.io/hostname: NODE}
      terminationGracePeriodSeconds: 1
      containers:
      - {name: side, image: IMAGE, command: [/bin/sleep, "2147483647"], resources: {limits: {cpu: CPUS, memory: 16Mi}}}
      - {name: main, image: IMAGE, command: [/bin/sh, -c, "while :; do :; done"], resources: {limits: {cpu: CPUS, memory: 64Mi}}}
`

var _ = Describe("a cluster with nodes of both worlds", withTwoWorlds, func() {
	It("keeps the CPUs of claims while the node with static managers is moved over", func(ctx context.Context) {
		core, theirs := oneCore(ctx), secondNode(ctx)
		there, err := kernel.Start(ctx, cluster.Kubernetes, cluster.Config, createNamespace(ctx, "observers"), theirs, *image)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(there.Remove)
		busy := func(namespace, name, on string) []*corev1.Pod {
			apply(ctx, namespace, name+".yaml", strings.NewReplacer("IMAGE", *image, "NAME", name, "NODE", on, "CPUS", fmt.Sprint(core.cpus)).Replace(busyWorkload))
			return waitPods(ctx, namespace, 2)
		}

		By("giving that node static managers")
		zonesThere := func(ctx context.Context) (int, error) { return zonesOn(ctx, theirs) }
		DeferCleanup(setUnschedulable, theirs, false)
		setCPUManager(ctx, there, "none", "static")
		Eventually(ctx, zonesThere).Should(BeZero(), "zones of node %s", theirs)
		old, unchanged := createNamespace(ctx, "old"), createNamespace(ctx, "unchanged")
		expectPinnedByKubelet(ctx, there, busy(old, "old", theirs), core)
		askForTranslation(ctx, old)
		askForTranslation(ctx, unchanged)
		held := busy(unchanged, "new", node.name)
		expectTogether(ctx, observer, held, core)
		before := cpusOf(snapshot(ctx), held)
		Expect(observer.Follow(ctx, inKernel(snapshot(ctx), held[0]).Cgroup)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { _, _ = observer.Unfollow(ctx) })

		By("moving it")
		setUnschedulable(ctx, theirs, true)
		drain(ctx, theirs, old)
		setCPUManager(ctx, there, "static", "none")
		Eventually(ctx, zonesThere).Should(Equal(len(node.zones)), "zones of node %s", theirs)
		setUnschedulable(ctx, theirs, false)
		moved := waitPods(ctx, old, 2)
		for _, pod := range moved {
			Expect(pod.Spec.NodeName).To(Equal(theirs), "node of pod %s", pod.Name)
			Expect(onlyClaim(ctx, pod).Status.Allocation).NotTo(BeNil(), "claim of pod %s", pod.Name)
		}
		expectTogether(ctx, there, moved, core)

		periods, err := observer.Unfollow(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(periods).To(HaveLen(1), "what pod %s had", held[0].Name)
		Expect(cpusOf(snapshot(ctx), held)).To(Equal(before), "CPUs by pod")
	})
})

// secondNode is a node beside the one under test.
func secondNode(ctx context.Context) string {
	GinkgoHelper()
	nodes, err := cluster.Kubernetes.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	for _, other := range nodes.Items {
		if other.Name != node.name {
			return other.Name
		}
	}
	lacks("the cluster has one node")
	return ""
}

// zonesOn counts the zones that the driver publishes for a node.
func zonesOn(ctx context.Context, name string) (zones int, err error) {
	list, err := cluster.Kubernetes.ResourceV1().ResourceSlices().List(ctx, slicesOn(name))
	if err != nil {
		return 0, err
	}
	for _, slice := range list.Items {
		for _, device := range slice.Spec.Devices {
			if _, is := readZone(device); is {
				zones++
			}
		}
	}
	return zones, nil
}

// expectPinnedByKubelet checks that the kubelet's own manager has given each pod CPUs, which nothing
// else may use.
func expectPinnedByKubelet(ctx context.Context, there *kernel.Observer, pods []*corev1.Pod, core request) {
	GinkgoHelper()
	s, err := there.Snapshot(ctx)
	Expect(err).NotTo(HaveOccurred())
	var all cpuset.Set
	for name, cpus := range cpusOf(s, pods) {
		Expect(cpus.Size()).To(BeEquivalentTo(core.cpus), "CPUs %s of pod %s", cpus, name)
		Expect(cpus.Overlaps(all)).To(BeFalse(), "CPUs %s of pod %s, others have %s", cpus, name, all)
		all = all.Union(cpus)
	}
	for _, pod := range pods {
		Expect(pod.Spec.ResourceClaims).To(BeEmpty(), "claims of pod %s", pod.Name)
	}
}

// expectTogether is expectApart for pods whose other container has a core of its own on the
// same NUMA node.
func expectTogether(ctx context.Context, there *kernel.Observer, pods []*corev1.Pod, core request) {
	GinkgoHelper()
	expectApart(ctx, there, pods, core)
	s, err := there.Snapshot(ctx)
	Expect(err).NotTo(HaveOccurred())
	for _, pod := range pods {
		main, side := inKernel(s, pod).CPUs, containerOf(s, pod, "side").CPUs
		Expect(side.Size()).To(BeEquivalentTo(core.cpus), "CPUs %s of container side of pod %s", side, pod.Name)
		Expect(side.Overlaps(main)).To(BeFalse(), "CPUs %s and %s of pod %s", side, main, pod.Name)
		Expect(s.ZonesOf(main.Union(side)).Size()).To(Equal(1), "NUMA nodes of CPUs %s and %s of pod %s", side, main, pod.Name)
	}
}

func cpusOf(s kernel.Snapshot, pods []*corev1.Pod) map[string]cpuset.Set {
	GinkgoHelper()
	cpus := map[string]cpuset.Set{}
	for _, pod := range pods {
		cpus[pod.Name] = inKernel(s, pod).CPUs
	}
	return cpus
}

func setUnschedulable(ctx context.Context, name string, unschedulable bool) {
	GinkgoHelper()
	patch := fmt.Sprintf(`{"spec": {"unschedulable": %t}}`, unschedulable)
	_, err := cluster.Kubernetes.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// drain evicts the pods of a namespace, and of the driver's own Deployments, from a node, as
// kubectl drain does, and waits until they are gone.
func drain(ctx context.Context, name string, namespace string) {
	GinkgoHelper()
	for _, namespace := range []string{namespace, *driverNamespace} {
		Eventually(ctx, func() (left []string, err error) {
			list, err := cluster.Kubernetes.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
			if err != nil {
				return nil, err
			}
			for _, pod := range list.Items {
				if controller := metav1.GetControllerOf(&pod); controller == nil || controller.Kind == "DaemonSet" {
					continue
				}
				left = append(left, pod.Name)
				err := cluster.Kubernetes.PolicyV1().Evictions(namespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod.Name}})
				if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsTooManyRequests(err) {
					return left, err
				}
			}
			return left, nil
		}).Should(BeEmpty(), "pods of namespace %s on node %s", namespace, name)
	}
}
