package e2e

import (
	"context"
	"encoding/json"
	"path"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// The nodes of the rig run pods with crun; those of most clusters with runc, which
// starts hooks, cgroups and processes in another order.
var _ = Describe("claims of pods that runc runs", ofKernel, atLength, Ordered, func() {
	var namespace string
	var core request

	BeforeAll(func(ctx context.Context) { namespace, core = createNamespace(ctx, "runc"), oneCore(ctx) })

	It("are a container's, also when that is started again", func(ctx context.Context) {
		pod := onRunc(ctx, claimPod("container", core))
		pod = waitRunning(ctx, createClaimed(ctx, namespace, pod, core))
		s := snapshot(ctx)
		held, process := expectPinned(ctx, s, pod), inKernel(s, pod)
		expectRuntime(ctx, pod, "runc")

		Expect(observer.Kill(ctx, process.PID)).To(Succeed())
		pod = waitRestarted(ctx, pod)
		s = snapshot(ctx)
		Expect(expectPinned(ctx, s, pod).String()).To(Equal(held.String()), "CPUs of the container after a restart")
		watch(ctx, held)
		waitRunning(ctx, createPod(ctx, namespace, plainPod("newcomer")))
		expectNoStrangers(ctx, held, inKernel(s, pod).Cgroup)
		deletePod(ctx, pod)
		Expect(held.IsSubsetOf(shared(snapshot(ctx)))).To(BeTrue(), "a pod without a claim may run on %s again", held)
	})

	It("are a whole pod's", func(ctx context.Context) {
		pod := onRunc(ctx, claimPod("pod", core))
		pod.Spec.Containers = append(pod.Spec.Containers, claimContainer(secondContainer))
		pod = waitRunning(ctx, createClaimed(ctx, namespace, pod, core))
		s := snapshot(ctx)
		held := expectPodPartition(ctx, path.Dir(inKernel(s, pod).Cgroup), core)
		for _, name := range []string{containerName, secondContainer} {
			Expect(containerOf(s, pod, name).CPUs.String()).To(Equal(held.String()), "CPUs of container %s", name)
		}
		expectExclusive(ctx, pod, "KernelPartition")
	})
})

// onRunc has runc run a pod.
func onRunc(ctx context.Context, pod *corev1.Pod) *corev1.Pod {
	GinkgoHelper()
	return onRuntime(ctx, pod, "runc")
}

// onRuntime has the OCI runtime of a handler run a pod.
func onRuntime(ctx context.Context, pod *corev1.Pod, handler string) *corev1.Pod {
	GinkgoHelper()
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "e2e-" + handler}, Handler: handler}
	_, err := cluster.Kubernetes.NodeV1().RuntimeClasses().Create(ctx, class, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx context.Context) {
			Expect(cluster.Kubernetes.NodeV1().RuntimeClasses().Delete(ctx, class.Name, metav1.DeleteOptions{})).To(Succeed())
		})
	}
	pod.Spec.RuntimeClassName = ptr.To(class.Name)
	return pod
}

// crioProcess is the command name of CRI-O.
const crioProcess = "crio"

// runtimeProcess is the command name of the node's container runtime, such as crioProcess.
func runtimeProcess(ctx context.Context) string {
	GinkgoHelper()
	object, err := cluster.Kubernetes.CoreV1().Nodes().Get(ctx, node.name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	name, _, _ := strings.Cut(object.Status.NodeInfo.ContainerRuntimeVersion, "://")
	return strings.ReplaceAll(name, "-", "") // cri-o's is crio
}

// expectRuntime checks which OCI runtime containerd has run the main container with;
// nothing is known of other container runtimes.
func expectRuntime(ctx context.Context, pod *corev1.Pod, want string) {
	GinkgoHelper()
	engine, id, _ := strings.Cut(pod.Status.ContainerStatuses[0].ContainerID, "://")
	if engine != "containerd" {
		return
	}
	text, err := observer.Run(ctx, `cat "/proc/1/root/run/containerd/io.containerd.runtime.v2.task/k8s.io/$1/options.json"`, id)
	Expect(err).NotTo(HaveOccurred())
	var options struct {
		Binary string `json:"binary_name"`
	}
	Expect(json.Unmarshal([]byte(text), &options)).To(Succeed())
	Expect(options.Binary).To(Or(Equal(want), BeEmpty()), "OCI runtime of pod %s", pod.Name) // containerd's default is runc
}
