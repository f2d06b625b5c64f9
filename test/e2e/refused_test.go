package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var _ = Describe("a claim whose CPUs another cgroup of the node holds", func() {
	It("does not let its container start, and the pod's event says why", func(ctx context.Context) {
		namespace := createNamespace(ctx, "blocked")
		zone, cpus := wholeZone(snapshot(ctx))
		DeferCleanup(func(ctx context.Context) { Expect(observer.Unblock(ctx)).To(Succeed()) })
		Expect(observer.Block(ctx, cpus)).To(Succeed())

		core := request{cpus: int64(zone.threadsPerCore), zone: zone.id}
		// Of a hook that fails, crun says the exit code, and runc what the hook said.
		pod := createClaimed(ctx, namespace, onRunc(ctx, claimPod("blocked", core)), core)
		// The daemon says so, or the hook if the daemon has not seen it yet.
		Eventually(ctx, func() ([]string, error) { return eventMessages(ctx, namespace, pod.Name) }).
			Should(ContainElement(MatchRegexp("numa-pin: error: pin container |cpus .* are held by cgroup ")), "events of pod %s", pod.Name)
		s := snapshot(ctx)
		for _, process := range s.Processes {
			Expect(process.CPUs.Overlaps(cpus)).To(BeFalse(), "process %d of %s may run on the blocked %s", process.PID, process.Cgroup, cpus)
		}
		current, err := cluster.Kubernetes.CoreV1().Pods(namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		for _, status := range current.Status.ContainerStatuses {
			Expect(status.State.Running).To(BeNil(), "container %s of pod %s runs", status.Name, pod.Name)
		}

		By("freeing the CPUs")
		Expect(observer.Unblock(ctx)).To(Succeed())
		pod = waitRunning(ctx, pod)
		expectPinned(ctx, snapshot(ctx), pod)
	})
})

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
