package e2e

import (
	"context"
	"fmt"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
)

// withNames marks specs that install the driver under other names: make e2e-names runs them.
// They leave the cluster without the driver.
var withNames = Label("names", withOwnBoot)

// What the other release is called, and where it is.
const (
	otherRelease   = "numa"
	otherNamespace = "numa-other"
	otherName      = "my-numa"
	otherHook      = "/var/lib/kubelet/numa-hook"
)

var _ = Describe("a release with other names", withNames, Ordered, func() {
	var (
		namespace string
		pod       *corev1.Pod
	)
	install := func(ctx context.Context) (string, error) {
		return helmFor(ctx, otherRelease, "install", *newChart, "--create-namespace", "--wait",
			"--set=image.tag="+*newTag+",kubelet.configFile=/var/lib/kubelet/config.yaml",
			"--set=nameOverride=my,fullnameOverride="+otherName+",serviceAccount.name=my-daemon,hook.dir="+otherHook,
			"--set=webhook.enabled=true,webhook.failurePolicy=Fail,webhook.replicas=1")
	}

	BeforeAll(func(ctx context.Context) {
		if *helmProgram == "" || *newChart == "" {
			lacks("no Helm and no chart: want -e2e.helm and -e2e.chart")
		}
		if _, err := os.Stat(*kubectlNUMA); err != nil {
			lacks("no program to run: %v", err)
		}
		namespace = createNamespace(ctx, "names")
	})

	// as has the helpers of the suite look at the other release until the spec ends.
	as := func(namespace, daemonSet string) {
		DeferCleanup(func(namespace, daemonSet string) { *driverNamespace, *driverDaemonSet = namespace, daemonSet }, *driverNamespace, *driverDaemonSet)
		*driverNamespace, *driverDaemonSet = namespace, daemonSet
	}

	It("is refused in one line while another release has the driver", func(ctx context.Context) {
		first := *driverNamespace
		as(otherNamespace, otherName)
		out, err := install(ctx)
		Expect(err).To(HaveOccurred(), "installed the driver twice")
		Expect(out).To(MatchRegexp(`(?m)^Error: .*: dra-driver-numa: release %s in namespace %s has installed the driver in this cluster, which can have only one: .*$`, releaseName, first))
	})

	It("is installed when that one has gone, and claims hold CPUs", func(ctx context.Context) {
		waitDriverReady(ctx)
		expectUninstalled(ctx)
		as(otherNamespace, otherName)
		_, err := install(ctx)
		Expect(err).NotTo(HaveOccurred())
		waitDriverReady(ctx)
		core := oneCore(ctx)
		counted := claimPod("holder", core) // requests all that its claim holds: validate would miss the memory
		counted.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = *resource.NewQuantity(someMemory, resource.BinarySI)
		pod = waitRunning(ctx, createClaimed(ctx, namespace, counted, core))
		expectPinned(ctx, snapshot(ctx), pod)

		By("having the webhook refuse a claim")
		claims := cluster.Kubernetes.ResourceV1().ResourceClaims(namespace)
		wrong := configured(`{"apiVersion": "dra.numa/v1alpha1", "kind": "ZoneConfig", "placement": "nowhere"}`, newClaim("wrong", core))
		_, err = claims.Create(ctx, wrong, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		Expect(err).To(MatchError(ContainSubstring("denied the request")))

		By("having its certificate renewed by the renewer of the release")
		renewers := cluster.Kubernetes.AppsV1().Deployments(otherNamespace)
		renewer, err := renewers.Get(ctx, otherName+"-webhook-renewer", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(renewer.Status.AvailableReplicas).To(BeEquivalentTo(1), "pods of the renewer")
		Expect(logOf(ctx, diagnosis.Renewer)).To(ContainSubstring("New certificate"))
	})

	It("is found by kubectl numa, which believes no look-alike", func(ctx context.Context) {
		alike := plainPod("alike")
		alike.Labels = map[string]string{diagnosis.PartOfLabel: diagnosis.PartOf, diagnosis.ComponentLabel: string(diagnosis.Daemon)}
		waitRunning(ctx, createPod(ctx, namespace, alike))
		Expect(answer(ctx, "status")).To(ContainSubstring(pod.Name))
		Expect(answer(ctx, "version")).To(ContainSubstring("chart in " + otherNamespace))
		Eventually(ctx, func() string { // what was there before goes away
			exitCode, stdout, stderr := ask(ctx, "validate", "--ask-nodes")
			return fmt.Sprint(exitCode, "\n", stdout, stderr)
		}).Should(And(HavePrefix("0\n"), ContainSubstring("look-alike"), ContainSubstring(namespace)))
		Eventually(ctx, func() string {
			_, stdout, stderr := ask(ctx, "drift")
			return stdout + stderr
		}).Should(And(HavePrefix("no problems found\n"), ContainSubstring("1 in namespace "+namespace)))
	})

	It("passes helm test", func(ctx context.Context) {
		as(otherNamespace, otherName)
		out, err := helmFor(ctx, otherRelease, "test", "--logs")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(And(MatchRegexp(`Phase: +Succeeded`), ContainSubstring("daemons are ready")))
	})

	It("is not uninstalled while a pod uses a claim, and then leaves nothing", func(ctx context.Context) {
		as(otherNamespace, otherName)
		_, err := helmFor(ctx, otherRelease, "uninstall")
		Expect(err).To(HaveOccurred(), "uninstalled while pod %s uses a claim", pod.Name)
		Expect(logOf(ctx, uninstallCheck)).To(ContainSubstring(pod.Namespace + "/" + pod.Name))
		deletePod(ctx, pod)
		deleteClaim(ctx, pod)
		_, err = helmFor(ctx, otherRelease, "uninstall")
		Expect(err).NotTo(HaveOccurred())
		expectNothingLeft(ctx)
		left, err := observer.Run(ctx, `ls -A "/proc/1/root$1"`, otherHook)
		Expect(err).NotTo(HaveOccurred())
		Expect(left).To(BeEmpty(), "the folder of the hook")
		Eventually(ctx, objectsOfRelease).Should(BeEmpty(), "objects of the release")
		removeNamespace(ctx, otherNamespace)
	})
})
