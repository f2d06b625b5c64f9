package e2e

import (
	"context"
	"testing/fstest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// containerName is the name of every test pod's first or only container.
const containerName = "main"

// createNamespace makes a namespace that is emptied after the spec.
func createNamespace(ctx context.Context, name string) string {
	GinkgoHelper()
	namespace, err := cluster.Kubernetes.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "e2e-" + name + "-",
		Labels:       map[string]string{"pod-security.kubernetes.io/enforce": "privileged"},
	}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(removeNamespace, namespace.Name)
	return namespace.Name
}

// removeNamespace waits for pods and claims to be gone, so that the next spec
// has the whole node; the rest of the namespace may take its time. In a namespace
// that is being deleted, no controller makes its pods again.
func removeNamespace(ctx context.Context, namespace string) {
	defer spend(podsEnd)()
	everything := metav1.ListOptions{}
	err := cluster.Kubernetes.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return // the spec has removed it
	}
	Expect(err).NotTo(HaveOccurred())
	Expect(cluster.Kubernetes.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, everything)).To(Succeed())
	Eventually(ctx, podNames).WithArguments(namespace).Should(BeEmpty(), "pods of namespace %s are still there", namespace)
	Expect(cluster.Kubernetes.ResourceV1().ResourceClaims(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, everything)).To(Succeed())
	Eventually(ctx, claimNames).WithArguments(namespace).Should(BeEmpty(), "claims of namespace %s are still there", namespace)
}

// plainPod is a pod for the node under test that holds no claim and sleeps. It has
// no network and no token of its own: to make both takes an emulated node as long as
// all the rest, and it uses neither. The pods of demo have them.
func plainPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeSelector:                  map[string]string{corev1.LabelHostname: node.name},
			HostNetwork:                   true,
			AutomountServiceAccountToken:  ptr.To(false),
			EnableServiceLinks:            ptr.To(false),
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			Containers:                    []corev1.Container{plainContainer(containerName)},
		},
	}
}

// plainContainer is a container that sleeps.
func plainContainer(name string) corev1.Container {
	return corev1.Container{
		Name:            name,
		Image:           *image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         []string{"/bin/sleep", "2147483647"},
	}
}

// claimPod is a plain pod that uses the claim of the same name and repeats its
// CPUs as requests, as users must unless the scheduler counts claims.
func claimPod(name string, want request) *corev1.Pod {
	pod := plainPod(name)
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "zone", ResourceClaimName: &name}}
	requests := corev1.ResourceList{}
	if !node.counts {
		requests[corev1.ResourceCPU] = *resource.NewQuantity(want.cpus, resource.DecimalSI)
	}
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "zone"}}, Requests: requests}
	return pod
}

// withoutRequests turns a pod into one of QoS class BestEffort.
func withoutRequests(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.Containers[0].Resources.Requests = nil
	return pod
}

// apply creates the objects of a manifest.
func apply(ctx context.Context, namespace, file, text string) {
	GinkgoHelper()
	Expect(cluster.Apply(ctx, fstest.MapFS{file: {Data: []byte(text)}}, namespace)).To(Succeed())
}

// createPod creates a pod.
func createPod(ctx context.Context, namespace string, pod *corev1.Pod) *corev1.Pod {
	GinkgoHelper()
	created, err := cluster.Kubernetes.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return created
}

// readPod reads a pod again. With an error it returns the pod as it was, so that
// the caller can try once more.
func readPod(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	current, err := cluster.Kubernetes.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		return pod, err
	}
	return current, nil
}

func listPods(ctx context.Context, namespace string) ([]corev1.Pod, error) {
	list, err := cluster.Kubernetes.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// waitRunning waits until the first container of a pod runs, and returns the pod.
func waitRunning(ctx context.Context, pod *corev1.Pod) *corev1.Pod {
	GinkgoHelper()
	defer spend(podsStart)()
	Eventually(ctx, func() (state string, err error) {
		pod, err = readPod(ctx, pod)
		if err != nil || len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Running != nil {
			return "", err
		}
		return progress(pod), nil
	}).Should(BeEmpty(), "pod %s does not run", pod.Name)
	return pod
}

// deletePod deletes a pod and waits until the kubelet has released everything.
func deletePod(ctx context.Context, pod *corev1.Pod) {
	GinkgoHelper()
	defer spend(podsEnd)()
	beginDelete(ctx, pod)
	waitGone(ctx, pod)
}

// beginDelete deletes a pod and does not wait.
func beginDelete(ctx context.Context, pod *corev1.Pod) {
	GinkgoHelper()
	Expect(cluster.Kubernetes.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{})).To(Succeed())
}

// waitGone waits until the kubelet has released everything of a deleted pod.
func waitGone(ctx context.Context, pod *corev1.Pod) {
	GinkgoHelper()
	Eventually(ctx, func() (state string, err error) {
		current, err := cluster.Kubernetes.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		return progress(current), err
	}).Should(BeEmpty(), "pod %s is still there", pod.Name)
}

// eventMessages returns the messages of a pod's events.
func eventMessages(ctx context.Context, namespace, pod string) ([]string, error) {
	events, err := cluster.Kubernetes.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + pod})
	if err != nil {
		return nil, err
	}
	var messages []string
	for _, event := range events.Items {
		messages = append(messages, event.Reason+": "+event.Message)
	}
	return messages, nil
}
