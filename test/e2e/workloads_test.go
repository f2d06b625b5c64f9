package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/kernel"
)

// withTwoNodes marks specs for a cluster with a second node that has the driver.
var withTwoNodes = Label("two-nodes", withOwnBoot)

// The pods that users write are mostly those of a controller.
var _ = Describe("claims of the pods", withTwoNodes, func() {
	It("of a Deployment move to the new pods in a rolling update", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "deployment"), oneCore(ctx)
		template := templatePod(ctx, namespace, core)
		deployments := cluster.Kubernetes.AppsV1().Deployments(namespace)
		_, err := deployments.Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec: appsv1.DeploymentSpec{
				Replicas: ptr.To[int32](2), Selector: selectorOf(template), Template: template,
				// Two cores are in two pods already: a new pod has to wait for an old one.
				Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(1)), MaxUnavailable: new(intstr.FromInt32(1))}},
			},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		before := waitPods(ctx, namespace, 2)
		expectApart(ctx, observer, before, core)

		patch := `{"spec": {"template": {"metadata": {"annotations": {"` + rolled + `": "yes"}}}}}`
		_, err = deployments.Patch(ctx, "web", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func() (names []string, err error) {
			pods, err := listPods(ctx, namespace)
			for _, pod := range pods {
				if pod.Annotations[rolled] == "" || pod.Status.Phase != corev1.PodRunning {
					names = append(names, pod.Name)
				}
			}
			return names, err
		}).Should(BeEmpty(), "pods from before the update, or that do not run")
		expectApart(ctx, observer, waitPods(ctx, namespace, 2), core)
	})

	It("of a Job are made for each pod, and are gone with it", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "job"), oneCore(ctx)
		template := templatePod(ctx, namespace, core)
		template.Spec.RestartPolicy = corev1.RestartPolicyNever
		template.Spec.Containers[0].Command = []string{"/bin/sh", "-c", "grep Cpus_allowed_list /proc/self/status"}
		_, err := cluster.Kubernetes.BatchV1().Jobs(namespace).Create(ctx, &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: "batch"},
			Spec:       batchv1.JobSpec{Completions: ptr.To[int32](3), Parallelism: ptr.To[int32](2), Template: template},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func() (int32, error) {
			job, err := cluster.Kubernetes.BatchV1().Jobs(namespace).Get(ctx, "batch", metav1.GetOptions{})
			return job.Status.Succeeded, err
		}).Should(BeEquivalentTo(3), "pods of the job that have succeeded")
		Eventually(ctx, claimNames).WithArguments(namespace).Should(BeEmpty(), "claims of pods that have ended")
		Eventually(ctx, func(g Gomega) {
			g.Expect(shared(snapshot(ctx)).String()).To(Equal(snapshot(ctx).Online.String()), "CPUs of pods without a claim")
		}).Should(Succeed())
	})

	It("of a DaemonSet hold CPUs on each node", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "daemonset"), oneCore(ctx)
		template := templatePod(ctx, namespace, core)
		template.Spec.NodeSelector = nil
		_, err := cluster.Kubernetes.AppsV1().DaemonSets(namespace).Create(ctx, &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Name: "agent"},
			Spec:       appsv1.DaemonSetSpec{Selector: selectorOf(template), Template: template},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		nodes, err := cluster.Kubernetes.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		if len(nodes.Items) < 2 {
			lacks("the cluster has %d node", len(nodes.Items))
		}
		own := createNamespace(ctx, "observers")
		for _, pod := range waitPods(ctx, namespace, len(nodes.Items)) {
			there := observer
			if pod.Spec.NodeName != node.name {
				there, err = kernel.Start(ctx, cluster.Kubernetes, cluster.Config, own, pod.Spec.NodeName, *image)
				Expect(err).NotTo(HaveOccurred())
				DeferCleanup(there.Remove)
			}
			expectApart(ctx, there, []*corev1.Pod{pod}, core)
		}
	})

	It("of a StatefulSet come back with the pod of the same name", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "statefulset"), oneCore(ctx)
		createClaim(ctx, namespace, newClaim("db", core))
		pod := claimPod("db", core)
		pod.Labels = map[string]string{"app": "e2e"}
		template := corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}
		_, err := cluster.Kubernetes.AppsV1().StatefulSets(namespace).Create(ctx, &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Name: "db"},
			Spec:       appsv1.StatefulSetSpec{Replicas: ptr.To[int32](1), Selector: selectorOf(template), Template: template},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		before := waitPods(ctx, namespace, 1)[0]
		expectApart(ctx, observer, []*corev1.Pod{before}, core)
		beginDelete(ctx, before)
		Eventually(ctx, func() (again bool, err error) {
			current, err := readPod(ctx, before)
			return current.UID != before.UID, err
		}).Should(BeTrue(), "pod %s is not made again", before.Name)
		after := waitPods(ctx, namespace, 1)[0]
		Expect(after.Name).To(Equal(before.Name))
		expectApart(ctx, observer, []*corev1.Pod{after}, core)
	})
})

// templatePod is a pod template for the node under test whose claim is made from a claim
// template.
func templatePod(ctx context.Context, namespace string, want request) corev1.PodTemplateSpec {
	GinkgoHelper()
	_, err := cluster.Kubernetes.ResourceV1().ResourceClaimTemplates(namespace).Create(ctx, &resourceapi.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "zone"},
		Spec:       resourceapi.ResourceClaimTemplateSpec{Spec: newClaim("zone", want).Spec},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	pod := claimPod("zone", want)
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "zone", ResourceClaimTemplateName: ptr.To("zone")}}
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "e2e"}}, Spec: pod.Spec}
}

func selectorOf(template corev1.PodTemplateSpec) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: template.Labels}
}

// waitPods waits until a namespace has so many pods, all of which run.
func waitPods(ctx context.Context, namespace string, count int) []*corev1.Pod {
	GinkgoHelper()
	Eventually(ctx, podNames).WithArguments(namespace).Should(HaveLen(count), "pods of namespace %s", namespace)
	return podsIn(ctx, namespace)
}

// expectApart checks that the kernel of the observer's node gives each pod a core of its
// own, in a partition.
func expectApart(ctx context.Context, there *kernel.Observer, pods []*corev1.Pod, core request) {
	GinkgoHelper()
	s, err := there.Snapshot(ctx)
	Expect(err).NotTo(HaveOccurred())
	var all cpuset.Set
	for _, pod := range pods {
		process := inKernel(s, pod)
		Expect(process.CPUs.Size()).To(BeEquivalentTo(core.cpus), "CPUs %s of pod %s", process.CPUs, pod.Name)
		Expect(process.Partition).To(Equal("root"), "partition of pod %s", pod.Name)
		Expect(process.CPUs.Overlaps(all)).To(BeFalse(), "CPUs %s of pod %s, others have %s", process.CPUs, pod.Name, all)
		all = all.Union(process.CPUs)
	}
	self, err := there.Self(s)
	Expect(err).NotTo(HaveOccurred())
	Expect(self.CPUs.Overlaps(all)).To(BeFalse(), "a pod without a claim may run on %s, claims have %s", self.CPUs, all)
}
