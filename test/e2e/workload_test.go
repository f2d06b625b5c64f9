package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// containerName is the name of every test pod's first or only container.
const containerName = "main"

// anyZone lets the scheduler choose.
const anyZone = -1

// someMemory is what claims with CPUs ask for unless a spec says how much: without any,
// their containers would not be bound to the NUMA node.
const someMemory = 16 << 20

// request is what a test's claim asks for. Zero amounts are left out.
type request struct {
	cpus, memoryBytes                    int64
	hugepages2MiBytes, hugepages1GiBytes int64
	zone                                 int  // NUMA node, or anyZone
	withoutMemory                        bool // not even someMemory
}

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
	Expect(cluster.Kubernetes.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{})).To(Succeed())
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
// CPUs as requests, as users must.
func claimPod(name string, want request) *corev1.Pod {
	pod := plainPod(name)
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "zone", ResourceClaimName: &name}}
	pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{
		Claims:   []corev1.ResourceClaim{{Name: "zone"}},
		Requests: corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(want.cpus, resource.DecimalSI)},
	}
	return pod
}

// withoutRequests turns a pod into one of QoS class BestEffort.
func withoutRequests(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.Containers[0].Resources.Requests = nil
	return pod
}

func newClaim(name string, want request) *resourceapi.ResourceClaim {
	if want.cpus > 0 && want.memoryBytes == 0 && !want.withoutMemory {
		want.memoryBytes = someMemory
	}
	amounts := map[resourceapi.QualifiedName]resource.Quantity{}
	for name, amount := range map[resourceapi.QualifiedName]int64{
		"cpu": want.cpus, "memory": want.memoryBytes, "hugepages2Mi": want.hugepages2MiBytes, "hugepages1Gi": want.hugepages1GiBytes,
	} {
		if amount > 0 {
			amounts[name] = *resource.NewQuantity(amount, resource.BinarySI)
		}
	}
	exactly := &resourceapi.ExactDeviceRequest{
		DeviceClassName: "zone.dra.numa",
		Capacity:        &resourceapi.CapacityRequirements{Requests: amounts},
	}
	if want.zone != anyZone {
		exactly.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: fmt.Sprintf(
			`device.driver == %q && device.attributes["resource.kubernetes.io"].numaNode == %d`, driverName, want.zone)}}}
	}
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{{Name: "zone", Exactly: exactly}},
		}},
	}
}

// createPod creates a pod.
func createPod(ctx context.Context, namespace string, pod *corev1.Pod) *corev1.Pod {
	GinkgoHelper()
	created, err := cluster.Kubernetes.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return created
}

// createClaim creates a claim.
func createClaim(ctx context.Context, namespace string, claim *resourceapi.ResourceClaim) {
	GinkgoHelper()
	_, err := cluster.Kubernetes.ResourceV1().ResourceClaims(namespace).Create(ctx, claim, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// createClaimed creates a pod and the claim it uses, of the pod's name.
func createClaimed(ctx context.Context, namespace string, pod *corev1.Pod, want request) *corev1.Pod {
	GinkgoHelper()
	createClaim(ctx, namespace, newClaim(pod.Name, want))
	return createPod(ctx, namespace, pod)
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
	pods := cluster.Kubernetes.CoreV1().Pods(pod.Namespace)
	Expect(pods.Delete(ctx, pod.Name, metav1.DeleteOptions{})).To(Succeed())
	Eventually(ctx, func() (state string, err error) {
		current, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
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

// claimOf returns the allocated claim of a pod made by createClaimed.
func claimOf(ctx context.Context, pod *corev1.Pod) *resourceapi.ResourceClaim {
	GinkgoHelper()
	claim, err := cluster.Kubernetes.ResourceV1().ResourceClaims(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	Expect(claim.Status.Allocation).NotTo(BeNil(), "claim %s is not allocated", claim.Name)
	return claim
}
