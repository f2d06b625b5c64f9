package e2e

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
)

// rolled is an annotation of the driver's pods that a test changes.
const rolled = "dra.numa/e2e-rolled"

var _ = Describe("a rolling update of the driver", atLength, func() {
	It("leaves claims alone, and one that comes meanwhile is prepared", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "rollout"), oneCore(ctx)
		early := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("early", core), core))
		s := snapshot(ctx)
		held, owner := expectPinned(ctx, s, early), inKernel(s, early).Cgroup
		watch(ctx, held)

		changeDriver(ctx, func(set *appsv1.DaemonSet) {
			template := &set.Spec.Template
			if template.Annotations == nil {
				template.Annotations = map[string]string{}
			}
			template.Annotations[rolled] = time.Now().Format(time.RFC3339)
		})
		late := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("late", core), core))
		waitDriverReady(ctx)
		s = snapshot(ctx)
		Expect(expectPinned(ctx, s, early).String()).To(Equal(held.String()), "CPUs of the early claim")
		cpus := expectPinned(ctx, s, late)
		Expect(cpus.Overlaps(held)).To(BeFalse(), "the late claim was given %s, %s are held", cpus, held)
		expectNoStrangers(ctx, held, owner)
	})
})

var _ = Describe("a node in cooperative mode", atLength, func() {
	It("takes a claim's CPUs from other containers by the runtime, and gives them back", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "cooperative"), oneCore(ctx)
		before := shared(snapshot(ctx))
		setExclusivity(ctx, "cooperative")
		plain := createPod(ctx, namespace, plainPod("plain"))
		pod := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("claim", core), core))
		plain = waitRunning(ctx, plain)
		late := waitRunning(ctx, createPod(ctx, namespace, plainPod("late")))

		process := inKernel(snapshot(ctx), pod)
		Expect(process.CPUs.Size()).To(BeNumerically("==", core.cpus), "CPUs of the claim: %s", process.CPUs)
		Expect(process.Partition).To(Equal("member"), "partition of the claim")
		expectExclusive(ctx, pod, "SharedPool")
		rest := before.Difference(process.CPUs).String()
		Eventually(ctx, func(g Gomega) {
			s := snapshot(ctx)
			for _, other := range []*corev1.Pod{plain, late} {
				g.Expect(inKernel(s, other).CPUs.String()).To(Equal(rest), "CPUs of pod %s beside a claim of %s", other.Name, process.CPUs)
			}
			g.Expect(shared(s).String()).To(Equal(rest), "CPUs of the observer")
		}).Should(Succeed())

		deletePod(ctx, pod)
		Eventually(ctx, func(g Gomega) {
			s := snapshot(ctx)
			g.Expect(inKernel(s, plain).CPUs.String()).To(Equal(before.String()), "CPUs of pod plain after the claim is gone")
			g.Expect(shared(s).String()).To(Equal(before.String()), "CPUs of the observer after the claim is gone")
		}).Should(Succeed())
	})
})

// setExclusivity gives the driver another mode until the spec ends.
func setExclusivity(ctx context.Context, mode string) {
	GinkgoHelper()
	const flag = "--exclusivity="
	set := changeDriver(ctx, func(set *appsv1.DaemonSet) {
		containers := append(set.Spec.Template.Spec.InitContainers, set.Spec.Template.Spec.Containers...)
		for _, container := range containers {
			for i, arg := range container.Args {
				if strings.HasPrefix(arg, flag) {
					container.Args[i] = flag + mode
				}
			}
		}
	})
	text, err := json.Marshal(set.Spec.Template.Spec)
	Expect(err).NotTo(HaveOccurred())
	Expect(string(text)).To(ContainSubstring(flag+mode), "arguments of the driver")
	waitDriverReady(ctx)
	Eventually(ctx, func() []publishedZone { return readNode(ctx).zones }).Should(HaveLen(len(node.zones)), "zones in mode %s", mode)
}

// changeDriver changes the driver's DaemonSet until the spec ends, and returns
// what it is now.
func changeDriver(ctx context.Context, change func(*appsv1.DaemonSet)) *appsv1.DaemonSet {
	GinkgoHelper()
	sets := cluster.Kubernetes.AppsV1().DaemonSets(*driverNamespace)
	before, err := sets.Get(ctx, *driverDaemonSet, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		template, err := json.Marshal(before.Spec.Template)
		Expect(err).NotTo(HaveOccurred())
		patch := []byte(`[{"op": "replace", "path": "/spec/template", "value": ` + string(template) + `}]`)
		_, err = sets.Patch(ctx, *driverDaemonSet, types.JSONPatchType, patch, metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		waitDriverReady(ctx)
	})
	var set *appsv1.DaemonSet
	Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if set, err = sets.Get(ctx, *driverDaemonSet, metav1.GetOptions{}); err != nil {
			return err
		}
		change(set)
		set, err = sets.Update(ctx, set, metav1.UpdateOptions{})
		return err
	})).To(Succeed())
	return set
}

// configureNode gives the node other settings until the spec ends: fields of a NodeConfig, as
// YAML in one line.
func configureNode(ctx context.Context, fields string) {
	GinkgoHelper()
	maps, name := cluster.Kubernetes.CoreV1().ConfigMaps(*driverNamespace), *driverDaemonSet
	before, err := maps.Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	replace := func(ctx context.Context, text string) {
		current, err := maps.Get(ctx, name, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		current.Data["node.yaml"] = text
		_, err = maps.Update(ctx, current, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	replace(ctx, "apiVersion: dra.numa/v1alpha1\nkind: NodeConfig\n"+fields+"\n")
	changeDriver(ctx, func(set *appsv1.DaemonSet) { set.Spec.Template.Annotations["dra.numa/config"] = fields })
	DeferCleanup(func(ctx context.Context) { replace(ctx, before.Data["node.yaml"]) }) // before the DaemonSet is as it was
	waitDriverReady(ctx)
}
