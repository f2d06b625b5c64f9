package e2e

import (
	"context"
	"encoding/json"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
)

// sealed marks specs for a node as distributions for containers have it, on which the driver is
// installed with sealed-values.yaml. They leave the cluster without the driver.
var sealed = Label("sealed", withOwnBoot)

// sealedRoot and sealedHook are folders of sealed-values.yaml.
const (
	sealedRoot = "/var/lib/k0s/kubelet"
	sealedHook = "/opt/dra-numa-hook"
)

// needChart lets specs not run that have nothing to install, or no kubectl numa to ask.
func needChart() {
	GinkgoHelper()
	if *helmProgram == "" || *newChart == "" {
		lacks("no Helm and no chart: want -e2e.helm and -e2e.chart")
	}
	if _, err := os.Stat(*kubectlNUMA); err != nil {
		lacks("no program to run: %v", err)
	}
}

// installChart installs the chart, or installs it again with other values.
func installChart(ctx context.Context, args ...string) {
	GinkgoHelper()
	_, err := helm(ctx, "upgrade", append([]string{*newChart, "--install", "--create-namespace", "--set=image.tag=" + *newTag}, args...)...)
	Expect(err).NotTo(HaveOccurred())
}

// validateSays returns what kubectl numa validate prints.
func validateSays(ctx context.Context) string {
	_, stdout, stderr := ask(ctx, "validate")
	return stdout + stderr
}

var _ = Describe("a node that forbids much, and has its files elsewhere", sealed, Ordered, func() {
	var (
		namespace string
		pod       *corev1.Pod
	)

	BeforeAll(func(ctx context.Context) {
		needChart()
		namespace = createNamespace(ctx, "sealed")
	})

	It("forbids what it is said to", func(ctx context.Context) {
		out, err := observer.Run(ctx, `cd "$1"; touch etc/written 2>&1; cp bin/busybox var/tmp/true && chroot . /var/tmp/true true 2>&1; rm var/tmp/true; ls -d var/lib/kubelet/plugins 2>&1; true`, "/proc/1/root")
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(And(ContainSubstring("Read-only file system"), ContainSubstring("Permission denied"), ContainSubstring("No such file or directory")))
	})

	It("has claims that hold CPUs", func(ctx context.Context) {
		core := oneCore(ctx)
		counted := claimPod("holder", core) // requests all that its claim holds: validate would miss the memory
		counted.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = *resource.NewQuantity(someMemory, resource.BinarySI)
		pod = waitRunning(ctx, createClaimed(ctx, namespace, counted, core))
		expectPinned(ctx, snapshot(ctx), pod)
		found, err := observer.Run(ctx, `cd /proc/1/root; ls -d "$@"`, "./var/cdi/dynamic/dra.numa-claim_"+string(claimOf(ctx, pod).UID)+".json", "."+sealedRoot+"/plugins/dra.numa/checkpoint.json", "."+sealedHook+"/numa-pin")
		Expect(err).NotTo(HaveOccurred(), found)
	})

	It("needs nothing that validate finds", func(ctx context.Context) {
		Expect(answer(ctx, "validate", "--ask-nodes")).To(ContainSubstring("no problems found"))
	})

	It("has nothing of the driver when it is uninstalled", func(ctx context.Context) {
		deletePod(ctx, pod)
		deleteClaim(ctx, pod)
		expectUninstalled(ctx)
		left, err := observer.Run(ctx, `cd /proc/1/root; find var/cdi ".$1/plugins" ".$1/plugins_registry" -name '*dra[.-]numa*'; ls -A ".$2"`, sealedRoot, sealedHook)
		Expect(err).NotTo(HaveOccurred())
		Expect(left).To(BeEmpty())
	})

	// As a user finds out who takes the chart's defaults: each time, validate names what is missing.
	It("refuses the chart with its defaults, and validate says what to set", func(ctx context.Context) {
		setLevel := func(level string) { // of Pod Security; "" is that of the cluster
			label := map[string]any{diagnosis.PodSecurityLabel: level}
			if level == "" {
				label[diagnosis.PodSecurityLabel] = nil
			}
			patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": label}})
			Expect(err).NotTo(HaveOccurred())
			_, err = cluster.Kubernetes.CoreV1().Namespaces().Patch(ctx, *driverNamespace, types.MergePatchType, patch, metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		setLevel("")
		installChart(ctx)
		Eventually(ctx, validateSays).Should(ContainSubstring(diagnosis.PodSecurityLabel + "=privileged on the namespace"))
		By("setting the label")
		setLevel("privileged")
		Eventually(ctx, validateSays).Should(ContainSubstring("resourceQuota.create in the chart"))
		By("making the quota")
		installChart(ctx, "--set=resourceQuota.create=true,kubelet.root="+sealedRoot)
		Eventually(ctx, validateSays).Should(ContainSubstring("hook.dir"))
		By("having another folder for the hook, and for CDI")
		installChart(ctx, "--values=sealed-values.yaml")
		waitDriverReady(ctx)
		Eventually(ctx, validateSays).Should(HavePrefix("no problems found"))
		expectUninstalled(ctx)
	})
})
