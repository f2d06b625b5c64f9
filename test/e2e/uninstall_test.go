package e2e

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
)

// withUninstall marks specs that leave the cluster without the driver.
var withUninstall = Label("uninstall", withOwnBoot)

// Labels of specs that uninstall a driver which has changed more than cgroups: e2e-cache and
// e2e-power run them last.
var (
	withCacheUninstall = Label("cache-uninstall", withOwnBoot)
	withPowerUninstall = Label("power-uninstall", withOwnBoot)
)

// uninstallCheck is the component of the chart whose Job refuses.
const uninstallCheck = "uninstall-check"

// uninstallRule is the DeviceTaintRule that keeps other claims off meanwhile, for any name of
// the release.
const uninstallRule = "dra-driver-numa-uninstall"

var _ = Describe("a release that is uninstalled", withUninstall, Ordered, func() {
	var (
		pod  *corev1.Pod
		core request
	)

	BeforeAll(func(ctx context.Context) {
		if *helmProgram == "" {
			lacks("no Helm: want -e2e.helm")
		}
		_, err := helm(ctx, "upgrade", *newChart, "--reset-then-reuse-values", "--set=uninstall.timeout=4m", "--wait")
		Expect(err).NotTo(HaveOccurred())
		waitDriverReady(ctx)
		namespace := createNamespace(ctx, "uninstall")
		core = oneCore(ctx)
		pod = waitRunning(ctx, createClaimed(ctx, namespace, claimPod("holder", core), core))
	})

	It("passes helm test", func(ctx context.Context) {
		out, err := helm(ctx, "test")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(MatchRegexp(`Phase: +Succeeded`))
	})

	It("stays as it is while a pod uses a claim, and names the pod", func(ctx context.Context) {
		held := expectPinned(ctx, snapshot(ctx), pod)
		_, err := helm(ctx, "uninstall")
		Expect(err).To(HaveOccurred(), "uninstalled while pod %s uses a claim", pod.Name)
		Expect(logOf(ctx, uninstallCheck)).To(ContainSubstring(pod.Namespace + "/" + pod.Name))
		waitDriverReady(ctx)
		Expect(expectPinned(ctx, snapshot(ctx), pod).String()).To(Equal(held.String()), "CPUs of the pod")
		expectUnharmed(ctx, pod)
		other := request{cpus: core.cpus, zone: anyZone}
		deletePod(ctx, waitRunning(ctx, createClaimed(ctx, pod.Namespace, claimPod("next", other), other)))
	})

	It("waits for pods that end, and gives no other pod a claim meanwhile", func(ctx context.Context) {
		uninstalled := make(chan error, 1)
		go func() {
			_, err := helm(ctx, "uninstall")
			uninstalled <- err
		}()
		rules := cluster.Kubernetes.ResourceV1().DeviceTaintRules()
		if _, err := rules.List(ctx, metav1.ListOptions{}); err == nil { // 1.36 does not serve them
			Eventually(ctx, func() error { _, err := rules.Get(ctx, uninstallRule, metav1.GetOptions{}); return err }).Should(Succeed())
			other := request{cpus: core.cpus, zone: anyZone}
			late := createClaimed(ctx, pod.Namespace, claimPod("late", other), other)
			expectPending(ctx, late, noDevices)
			deletePod(ctx, late)
		}
		Expect(uninstalled).NotTo(Receive())
		deletePod(ctx, pod)
		deleteClaim(ctx, pod)
		Eventually(ctx, uninstalled).Should(Receive(BeNil()))
	})

	It("leaves nothing in the cluster or on the node", func(ctx context.Context) {
		expectNothingLeft(ctx)
		published, err := nodeDevices(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(published).To(BeEmpty(), "devices that are still published")
		Eventually(ctx, objectsOfRelease).Should(BeEmpty(), "objects of the release")
	})
})

var _ = Describe("a release that has divided caches and is uninstalled", withCacheUninstall, func() {
	It("leaves no group, and everything else has all ways and all bandwidth again", func(ctx context.Context) {
		namespace := createNamespace(ctx, "uninstall")
		pod := waitRunning(ctx, createWithWays(ctx, namespace, "holder", "gold.dra.numa", map[string]int64{"ways": 3, "bandwidthPercent": 50}, inCache0))
		expectWays(ctx, pod, 3, 50)
		deletePod(ctx, pod)
		deleteClaim(ctx, pod)
		expectUninstalled(ctx)
		expectGroup(ctx, "", 0xfff, 100, nil)
		found, err := observer.Run(ctx, `find "$1" -name 'dra-numa*'`, resctrlMount)
		Expect(err).NotTo(HaveOccurred())
		Expect(found).To(BeEmpty(), "groups of the driver, and what they monitor")
	})
})

var _ = Describe("a release that has changed frequencies and is uninstalled", withPowerUninstall, func() {
	It("leaves the CPUs as it found them", func(ctx context.Context) {
		before := cpuSettings(ctx)
		// Specs before this one have written the NodeConfig, which Helm would take for somebody else's.
		_, err := helm(ctx, "upgrade", *newChart, "--reset-then-reuse-values", "--wait", "--force-conflicts",
			"--set=config.performance.default.governor=powersave,config.performance.default.maxFrequency=2GHz,config.performance.default.idleLatency=50")
		Expect(err).NotTo(HaveOccurred())
		waitDriverReady(ctx)
		byDefault := cpuSettings(ctx)
		Expect(byDefault).NotTo(Equal(before), "CPUs with the default")
		namespace := createNamespace(ctx, "uninstall")
		pod := waitRunning(ctx, createTuned(ctx, namespace, "holder", `"governor": "performance", "minFrequency": "2GHz"`))
		cpus := cpusOfContainer(ctx, pod)
		Expect(only(cpuSettings(ctx), cpus)).NotTo(Equal(only(byDefault, cpus)), "CPUs of the claim")
		deletePod(ctx, pod)
		deleteClaim(ctx, pod)
		Eventually(ctx, cpuSettings).Should(Equal(byDefault), "CPUs without claims")
		expectUninstalled(ctx)
		Expect(cpuSettings(ctx)).To(Equal(before))
	})
})

// expectUninstalled uninstalls the release, which leaves no file and no partition.
func expectUninstalled(ctx context.Context) {
	GinkgoHelper()
	_, err := helm(ctx, "uninstall")
	Expect(err).NotTo(HaveOccurred())
	expectNothingLeft(ctx)
}

func expectNothingLeft(ctx context.Context) {
	GinkgoHelper()
	left, err := observer.Leftovers(ctx)
	Expect(err).NotTo(HaveOccurred())
	Expect(left).To(BeEmpty(), "files and partitions of the driver on the node")
}

// logOf returns the logs of the pods of a component of the chart.
func logOf(ctx context.Context, component diagnosis.Program) (text string) {
	GinkgoHelper()
	pods := cluster.Kubernetes.CoreV1().Pods(*driverNamespace)
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: component.Selector()})
	Expect(err).NotTo(HaveOccurred())
	Expect(list.Items).NotTo(BeEmpty(), "pods of %s", component)
	for _, pod := range list.Items {
		log, err := pods.GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
		Expect(err).NotTo(HaveOccurred())
		text += string(log)
	}
	return text
}

// objectsOfRelease returns the objects that have the name of the DaemonSet, or begin with it,
// of the kinds that a deletion could forget.
func objectsOfRelease(ctx context.Context) (found []string) {
	GinkgoHelper()
	note := func(kind string, names []string, err error) {
		Expect(err).NotTo(HaveOccurred())
		for _, name := range names {
			if strings.HasPrefix(name, *driverDaemonSet) {
				found = append(found, kind+" "+name)
			}
		}
	}
	all, kubernetes := metav1.ListOptions{}, cluster.Kubernetes
	sets, err := kubernetes.AppsV1().DaemonSets(*driverNamespace).List(ctx, all)
	note("DaemonSet", names(sets.Items), err)
	deployments, err := kubernetes.AppsV1().Deployments(*driverNamespace).List(ctx, all)
	note("Deployment", names(deployments.Items), err)
	secrets, err := kubernetes.CoreV1().Secrets(*driverNamespace).List(ctx, all)
	note("Secret", names(secrets.Items), err)
	validating, err := kubernetes.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(ctx, all)
	note("ValidatingWebhookConfiguration", names(validating.Items), err)
	jobs, err := kubernetes.BatchV1().Jobs(*driverNamespace).List(ctx, all)
	note("Job", names(jobs.Items), err)
	accounts, err := kubernetes.CoreV1().ServiceAccounts(*driverNamespace).List(ctx, all)
	note("ServiceAccount", names(accounts.Items), err)
	roles, err := kubernetes.RbacV1().ClusterRoles().List(ctx, all)
	note("ClusterRole", names(roles.Items), err)
	bindings, err := kubernetes.RbacV1().ClusterRoleBindings().List(ctx, all)
	note("ClusterRoleBinding", names(bindings.Items), err)
	rules, err := kubernetes.ResourceV1().DeviceTaintRules().List(ctx, all)
	if !apierrors.IsNotFound(err) { // 1.36 does not serve them
		note("DeviceTaintRule", names(rules.Items), err)
	}
	return found
}
