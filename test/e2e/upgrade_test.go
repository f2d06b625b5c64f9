package e2e

import (
	"context"
	"flag"
	"fmt"
	"os/exec"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// What make upgrade-test gives. It has installed the older build as revision 1 of the release.
var (
	helmProgram = flag.String("e2e.helm", "", "Helm, for specs that upgrade and uninstall the release")
	newChart    = flag.String("e2e.chart", "", "chart that the release is upgraded to")
	newTag      = flag.String("e2e.tag", "dev", "tag of the image that the release is upgraded to")
)

// withUpgrade marks specs that need an older build of the driver in the cluster.
var withUpgrade = Label("upgrade", withOwnBoot)

// releaseName is the name of the release, as the Makefile installs it.
const releaseName = "dra-driver-numa"

// helmTimeout is how long Helm waits, for a node of any pace.
const helmTimeout = "--timeout=30m"

// helm runs a command of Helm for the release, and returns what it prints.
func helm(ctx context.Context, command string, args ...string) (string, error) {
	return helmFor(ctx, releaseName, command, args...)
}

// helmFor is helm for another release in the driver's namespace.
func helmFor(ctx context.Context, release, command string, args ...string) (string, error) {
	args = append([]string{command, release, "--namespace", *driverNamespace, "--kubeconfig", *kubeconfig, helmTimeout}, args...)
	out, err := exec.CommandContext(ctx, *helmProgram, args...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("helm %s: %w\n%s", command, err, out)
	}
	return string(out), nil
}

// holder is a pod that has its CPUs from before a change of the driver.
type holder struct {
	pod *corev1.Pod
	has cpuset.Set
}

// upgrading is a release that changes while pods with claims run, and others come and go.
type upgrading struct {
	namespace string
	core      request // of any zone
	holders   []holder
	passed    int // pods that came and went
}

// begin makes a namespace, and returns the tag of the image from which the release is
// upgraded.
func (u *upgrading) begin(ctx context.Context) (oldTag string) {
	GinkgoHelper()
	if *helmProgram == "" || *newChart == "" {
		lacks("no Helm and no chart to upgrade to: want -e2e.helm and -e2e.chart")
	}
	u.namespace = createNamespace(ctx, "upgrade")
	u.core = oneCore(ctx)
	u.core.zone = anyZone
	set, err := cluster.Kubernetes.AppsV1().DaemonSets(*driverNamespace).Get(ctx, *driverDaemonSet, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	image := set.Spec.Template.Spec.Containers[0].Image
	oldTag = image[strings.LastIndex(image, ":")+1:]
	Expect(oldTag).NotTo(Equal(*newTag), "the release has the newer image already")
	return oldTag
}

// end deletes the pods that stay, and checks that nothing of their claims is left.
func (u *upgrading) end(ctx context.Context) {
	GinkgoHelper()
	for _, holder := range u.holders {
		claim := claimOf(ctx, holder.pod)
		deletePod(ctx, holder.pod)
		specs, err := observer.CDISpecsNaming(ctx, string(claim.UID))
		Expect(err).NotTo(HaveOccurred())
		Expect(specs).To(BeEmpty(), "CDI specs of claim %s, which is gone", claim.Name)
		deleteClaim(ctx, holder.pod)
	}
}

// hold starts a pod that stays.
func (u *upgrading) hold(ctx context.Context, name string) {
	GinkgoHelper()
	pod := waitRunning(ctx, createClaimed(ctx, u.namespace, claimPod(name, u.core), u.core))
	u.holders = append(u.holders, holder{pod, expectPinned(ctx, snapshot(ctx), pod)})
}

// check compares each pod that stays with what it has been given.
func (u *upgrading) check(ctx context.Context) {
	GinkgoHelper()
	s := snapshot(ctx)
	for _, holder := range u.holders {
		Expect(expectPinned(ctx, s, holder.pod).String()).To(Equal(holder.has.String()), "CPUs of pod %s", holder.pod.Name)
		expectUnharmed(ctx, holder.pod)
	}
}

// expectUnharmed checks that no container of a running pod has ever failed.
func expectUnharmed(ctx context.Context, pod *corev1.Pod) {
	GinkgoHelper()
	current, err := readPod(ctx, pod)
	Expect(err).NotTo(HaveOccurred())
	Expect(current.Status.Phase).To(Equal(corev1.PodRunning), "phase of pod %s", pod.Name)
	Expect(current.Status.ContainerStatuses[0].RestartCount).To(BeZero(), "restarts of pod %s", pod.Name)
}

// pass runs two pods through their lives at the same time, one of which has a claim.
func (u *upgrading) pass(ctx context.Context) {
	GinkgoHelper()
	claimed := createClaimed(ctx, u.namespace, claimPod(fmt.Sprintf("claimed-%d", u.passed), u.core), u.core)
	plain := createPod(ctx, u.namespace, plainPod(fmt.Sprintf("plain-%d", u.passed)))
	claimed, plain = waitRunning(ctx, claimed), waitRunning(ctx, plain)
	cpus := expectPinned(ctx, snapshot(ctx), claimed)
	for _, holder := range u.holders {
		Expect(cpus.Overlaps(holder.has)).To(BeFalse(), "pod %s was given %s, pod %s has %s", claimed.Name, cpus, holder.pod.Name, holder.has)
	}
	expectUnharmed(ctx, claimed)
	expectUnharmed(ctx, plain)
	deletePod(ctx, claimed)
	deleteClaim(ctx, claimed)
	deletePod(ctx, plain)
	u.passed += 2
}

// follow begins to follow the first pod that stays. What it returns checks that the kernel
// let nothing else run on the pod's CPUs since, and always gave the pod the same.
func (u *upgrading) follow(ctx context.Context) (expectKept func(when string)) {
	GinkgoHelper()
	first := u.holders[0]
	followed := inKernel(snapshot(ctx), first.pod)
	watch(ctx, first.has)
	follow(ctx, followed)
	return func(when string) {
		GinkgoHelper()
		expectNoStrangers(ctx, first.has, followed.Cgroup)
		periods, err := observer.Unfollow(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(periods).To(HaveLen(1), "what the kernel gave pod %s %s: %v", first.pod.Name, when, periods)
	}
}

// change runs a command of Helm, and passes pods until it has ended, and once more. It
// checks what is promised of an upgrade, and prints what it has measured.
func (u *upgrading) change(ctx context.Context, what, tag string, run func() error) {
	GinkgoHelper()
	expectKept := u.follow(ctx)
	seen := watchSlices(ctx)
	passed, begin := u.passed, time.Now()

	done := make(chan error, 1)
	go func() { done <- run() }()
	for ended := false; !ended; {
		select {
		case err := <-done:
			Expect(err).NotTo(HaveOccurred())
			ended = true
		default:
		}
		u.pass(ctx)
		u.check(ctx)
	}
	waitDriverReady(ctx)
	set, err := cluster.Kubernetes.AppsV1().DaemonSets(*driverNamespace).Get(ctx, *driverDaemonSet, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	Expect(set.Spec.Template.Spec.Containers[0].Image).To(HaveSuffix(":"+tag), "image of the driver after the %s", what)

	expectKept("during the " + what)
	longest, writes, taints := seen.summary(time.Now())
	fmt.Printf("%s: %s, %d pods came and went, %d writes of slices, %d changes of taints\n",
		what, time.Since(begin).Round(time.Second), u.passed-passed, writes, taints)
	expectTimely("time without slices during the "+what, longest, slicesBack)
	Expect(taints).To(BeZero(), "changes of taints during the %s", what)
}

// watchSlices begins to note what becomes of the node's slices, until the spec ends. It
// returns when it knows those that are there.
func watchSlices(ctx context.Context) *sliceHistory {
	GinkgoHelper()
	seen := &sliceHistory{}
	informSlices(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { seen.set(object, time.Now()) },
		UpdateFunc: func(_, object any) { seen.set(object, time.Now()) },
		DeleteFunc: func(object any) { seen.remove(object, time.Now()) },
	})
	Eventually(ctx, seen.known).Should(BeTrue(), "slices of the node")
	seen.forget()
	return seen
}

var _ = Describe("an upgrade of the release", withUpgrade, Ordered, func() {
	u := &upgrading{}
	var oldTag string

	BeforeAll(func(ctx context.Context) {
		oldTag = u.begin(ctx)
		u.hold(ctx, "old")
	})

	It("takes no CPU from a container, fails no pod, and keeps slices and taints", func(ctx context.Context) {
		u.change(ctx, "upgrade", *newTag, func() error {
			_, err := helm(ctx, "upgrade", *newChart, "--reset-then-reuse-values", "--set=image.tag="+*newTag, "--wait")
			return err
		})
		u.hold(ctx, "new")
	})

	It("can be rolled back, and what both builds have prepared stays", func(ctx context.Context) {
		u.change(ctx, "rollback", oldTag, func() error {
			_, err := helm(ctx, "rollback", "1", "--wait")
			return err
		})
	})

	It("can be made again, and leaves nothing when the pods have ended", func(ctx context.Context) {
		u.change(ctx, "second upgrade", *newTag, func() error {
			_, err := helm(ctx, "upgrade", *newChart, "--reset-then-reuse-values", "--set=image.tag="+*newTag, "--wait")
			return err
		})
		u.end(ctx)
	})
})
