package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// driverProcess is the command name of the driver's process.
const driverProcess = "dra-numa"

// The keeper: its command name and first argument.
const (
	keeperProcess  = "numa-pin"
	keeperArgument = "keep"
)

// nowhere is the label of no node.
const nowhere = "dra.numa/e2e-nowhere"

// waitDriverReady waits until the driver's pods of the current template are
// ready on every node they belong on.
func waitDriverReady(ctx context.Context) {
	GinkgoHelper()
	defer spend(driverReady)()
	Eventually(ctx, func(g Gomega) {
		set, err := cluster.Kubernetes.AppsV1().DaemonSets(*driverNamespace).Get(ctx, *driverDaemonSet, metav1.GetOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(set.Status.ObservedGeneration).To(Equal(set.Generation))
		g.Expect(set.Status.DesiredNumberScheduled).To(BeNumerically(">", 0))
		g.Expect(set.Status.UpdatedNumberScheduled).To(Equal(set.Status.DesiredNumberScheduled))
		g.Expect(set.Status.NumberReady).To(Equal(set.Status.DesiredNumberScheduled))
	}).Should(Succeed(), "DaemonSet %s/%s is not ready", *driverNamespace, *driverDaemonSet)
}

// driverPods returns the driver's pods on the node under test.
func driverPods(ctx context.Context) ([]corev1.Pod, error) {
	set, err := cluster.Kubernetes.AppsV1().DaemonSets(*driverNamespace).Get(ctx, *driverDaemonSet, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	list, err := cluster.Kubernetes.CoreV1().Pods(*driverNamespace).List(ctx, metav1.ListOptions{
		LabelSelector: metav1.FormatLabelSelector(set.Spec.Selector),
		FieldSelector: "spec.nodeName=" + node.name,
	})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// killDriver kills the driver on the node and waits until the kubelet has
// restarted it and it is ready.
func killDriver(ctx context.Context) {
	GinkgoHelper()
	before := driverRestarts(ctx)
	Expect(observer.KillNamed(ctx, driverProcess)).To(Succeed())
	Eventually(ctx, driverRestarts).Should(BeNumerically(">", before), "the kubelet has not restarted the driver")
	waitDriverReady(ctx)
}

// driverRestarts counts the restarts of the driver on the node; a container
// that is not ready counts as not yet restarted.
func driverRestarts(ctx context.Context) int32 {
	GinkgoHelper()
	pods, err := driverPods(ctx)
	Expect(err).NotTo(HaveOccurred())
	var restarts int32
	for _, pod := range pods {
		for _, status := range pod.Status.ContainerStatuses {
			if status.Ready {
				restarts += status.RestartCount
			}
		}
	}
	return restarts
}

// stopDriver removes the driver from every node and waits until it is gone. It
// is brought back after the spec at the latest.
func stopDriver(ctx context.Context) {
	GinkgoHelper()
	DeferCleanup(startDriver)
	selectNodes(ctx, `"true"`)
	defer spend(driverEnds)()
	Eventually(ctx, func() ([]string, error) {
		pods, err := driverPods(ctx)
		return names(pods), err
	}).Should(BeEmpty(), "driver pods are still there")
}

// startDriver undoes stopDriver and waits until the driver is ready.
func startDriver(ctx context.Context) {
	GinkgoHelper()
	selectNodes(ctx, "null")
	waitDriverReady(ctx)
}

// selectNodes sets the DaemonSet's value, in JSON, for the label of no node.
func selectNodes(ctx context.Context, value string) {
	GinkgoHelper()
	patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"nodeSelector":{%q:%s}}}}}`, nowhere, value)
	_, err := cluster.Kubernetes.AppsV1().DaemonSets(*driverNamespace).Patch(ctx, *driverDaemonSet,
		types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	Expect(err).NotTo(HaveOccurred())
}
