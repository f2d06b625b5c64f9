package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
	"github.com/dra-driver-numa/dra-driver-numa/test/kernel"
)

// withRunbooks marks specs that go through docs/runbooks.md, step by step, from the symptom
// to a node that is well: make e2e-runbooks runs them.
var withRunbooks = Label("runbooks", withOwnBoot)

// fillDisk leaves no byte free on a file system, root's reserve included. Its argument is a
// new folder there.
const (
	fillFolder = "/var/lib/kubelet/full"
	fillDisk   = `folder=/proc/1/root$1; mkdir "$folder"; i=0
for size in 1g 256m 64m 16m 4m 1m; do while fallocate -l $size "$folder/$i" 2>/dev/null; do i=$((i+1)); done; done
cat /dev/zero >"$folder/rest" 2>/dev/null; sync`
)

const checkpointFile = "/var/lib/kubelet/plugins/dra.numa/checkpoint.json"

var _ = Describe("the runbook", withRunbooks, ofMachine, func() {
	It("of a damaged checkpoint brings the node back, and claims keep their CPUs until then", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "damaged"), oneCore(ctx)
		stays := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("stays", core), core))
		leaves := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("leaves", core), core))
		held := expectPinned(ctx, snapshot(ctx), stays)

		By("damaging the file, and killing the daemon")
		Expect(observer.WriteFile(ctx, checkpointFile, "{")).To(Succeed())
		Expect(observer.KillNamed(ctx, driverProcess)).To(Succeed())

		By("finding the symptom")
		Eventually(ctx, func() (string, error) { return lastWords(ctx, "driver", true) }).Should(ContainSubstring("damaged checkpoint"), "log of the daemon")
		Expect(expectPinned(ctx, snapshot(ctx), stays).String()).To(Equal(held.String()), "CPUs of a container that runs")

		By("draining: no daemon releases a claim")
		beginDelete(ctx, leaves)
		Eventually(ctx, func(g Gomega) {
			messages, err := eventMessages(ctx, namespace, leaves.Name)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(messages).To(ContainElement(HavePrefix("Killing: ")))
			g.Expect(readPod(ctx, leaves)).NotTo(BeNil())
		}).Should(Succeed())
		Eventually(ctx, func() []kernel.Process { return snapshot(ctx).In(leaves) }).Should(BeEmpty(), "processes of the drained pod")

		By("moving the file away, and deleting the driver's pod")
		_, err := observer.Run(ctx, `mv "/proc/1/root$1" /proc/1/root/root/damaged-checkpoint.json`, checkpointFile)
		Expect(err).NotTo(HaveOccurred())
		pods, err := driverPods(ctx)
		Expect(err).NotTo(HaveOccurred())
		for _, pod := range pods {
			Expect(cluster.Kubernetes.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{})).To(Succeed())
		}
		waitGone(ctx, leaves)
		waitDriverReady(ctx)

		By("comparing the records")
		answer(ctx, "drift", node.name) // fails the spec if they differ
		Expect(expectPinned(ctx, snapshot(ctx), stays).String()).To(Equal(held.String()), "CPUs of a container that ran all the time")
		deleteClaim(ctx, leaves)
		next := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("next", core), core))
		Expect(expectPinned(ctx, snapshot(ctx), next).Overlaps(held)).To(BeFalse(), "CPUs of both claims")
	})

	It("of a full disk has claims wait until there is room", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "full"), oneCore(ctx)
		stays := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("stays", core), core))
		held := expectPinned(ctx, snapshot(ctx), stays)

		By("filling the disk of the kubelet's folder")
		makeRoom := func(ctx context.Context) {
			_, err := observer.Run(ctx, `rm -rf "/proc/1/root$1"`, fillFolder)
			Expect(err).NotTo(HaveOccurred())
		}
		DeferCleanup(makeRoom)
		_, err := observer.Run(ctx, fillDisk, fillFolder)
		Expect(err).NotTo(HaveOccurred())
		Expect(observer.WriteFile(ctx, fillFolder+"/more", "more")).To(MatchError(ContainSubstring("No space left on device")))

		By("finding the symptom")
		waits := createClaimed(ctx, namespace, claimPod("waits", core), core)
		Eventually(ctx, eventMessages).WithArguments(namespace, waits.Name).Should(ContainElement(ContainSubstring("no space left on device")))
		Expect(readPod(ctx, waits)).To(HaveField("Status.Phase", corev1.PodPending))
		Expect(expectPinned(ctx, snapshot(ctx), stays).String()).To(Equal(held.String()), "CPUs of a container that runs")

		By("making room")
		makeRoom(ctx)
		waits = waitRunning(ctx, waits)
		Expect(expectPinned(ctx, snapshot(ctx), waits).Overlaps(held)).To(BeFalse(), "CPUs of both claims")

		By("comparing the records")
		answer(ctx, "drift", node.name)
	})

	It("of Unprepare that does not end finds that there is no daemon", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "terminating"), oneCore(ctx)
		pod := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("terminating", core), core))
		stopDriver(ctx)
		beginDelete(ctx, pod)
		Eventually(ctx, func() []kernel.Process { return snapshot(ctx).In(pod) }).Should(BeEmpty(), "processes of the pod")

		By("asking why it does not end")
		Expect(readPod(ctx, pod)).To(HaveField("DeletionTimestamp", Not(BeNil())))
		Eventually(ctx, func() string {
			_, stdout, stderr := ask(ctx, "explain", "pod", pod.Name, "--namespace", namespace)
			return stdout + stderr
		}).Should(ContainSubstring("driver dra.numa has published nothing on node "+node.name), "kubectl numa explain")

		By("installing the driver again")
		startDriver(ctx)
		waitGone(ctx, pod)
	})

	It("of a webhook that is away lets requests pass until it is back", func(ctx context.Context) {
		if *helmProgram == "" || *newChart == "" {
			lacks("no Helm and no chart: want -e2e.helm and -e2e.chart")
		}
		namespace, core := createNamespace(ctx, "webhook"), oneCore(ctx)
		cordon := func(ctx context.Context, cordoned bool) {
			_, err := cluster.Kubernetes.CoreV1().Nodes().Patch(ctx, node.name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, cordoned), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		set := func(ctx context.Context, values ...string) {
			_, err := helm(ctx, "upgrade", append([]string{*newChart, "--reset-then-reuse-values"}, values...)...)
			Expect(err).NotTo(HaveOccurred())
		}
		DeferCleanup(func(ctx context.Context) {
			cordon(ctx, false)
			set(ctx, "--set=webhook.failurePolicy=Fail", "--wait")
		})
		By("keeping the pods of the webhook from any node")
		cordon(ctx, true)
		Expect(cluster.Kubernetes.CoreV1().Pods(*driverNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: diagnosis.Webhook.Selector()})).To(Succeed())

		By("finding the symptom")
		claims := cluster.Kubernetes.ResourceV1().ResourceClaims(namespace)
		spread := configured(`{"apiVersion": "dra.numa/v1alpha1", "kind": "ZoneConfig", "placement": "spread"}`, newClaim("spread", core))
		Eventually(ctx, func() error {
			_, err := claims.Create(ctx, spread, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}).Should(MatchError(ContainSubstring("failed calling webhook")))

		By("letting requests pass")
		set(ctx, "--set=webhook.failurePolicy=Ignore")
		createClaim(ctx, namespace, spread)
		pod := claimPod("spread", core)
		pod.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}}
		pod = waitRunning(ctx, createPod(ctx, namespace, pod))
		expectPinned(ctx, snapshot(ctx), pod)
	})
})

// lastWords is the log of a container of the driver's pod on the node, or that of the one
// before it.
func lastWords(ctx context.Context, container string, previous bool) (string, error) {
	pods, err := driverPods(ctx)
	if err != nil || len(pods) == 0 {
		return "", err
	}
	text, err := cluster.Kubernetes.CoreV1().Pods(pods[0].Namespace).GetLogs(pods[0].Name, &corev1.PodLogOptions{Container: container, Previous: previous}).DoRaw(ctx)
	return string(text), err
}
