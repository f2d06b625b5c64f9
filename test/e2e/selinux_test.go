package e2e

import (
	"context"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// withSELinux marks specs for a node that enforces SELinux, on which the driver is installed
// with selinux-values.yaml. They leave the cluster without the driver.
var withSELinux = Label("selinux", withOwnBoot)

// containerType is the SELinux type that the runtime gives containers without privileges.
const containerType = "container_t"

// contextOf returns the SELinux context of a process of the node (proc_pid_attr(5)).
func contextOf(ctx context.Context, pid int) string {
	GinkgoHelper()
	text, err := observer.Run(ctx, `tr -d '\0\n' <"/proc/$1/attr/current"`, strconv.Itoa(pid))
	Expect(err).NotTo(HaveOccurred())
	return text
}

var _ = Describe("a node that enforces SELinux", withSELinux, Ordered, func() {
	var (
		namespace string
		pod       *corev1.Pod
	)

	BeforeAll(func(ctx context.Context) {
		needChart()
		namespace = createNamespace(ctx, "selinux")
	})

	It("forbids containers what file modes would not", func(ctx context.Context) {
		out, err := observer.Run(ctx, `cat /proc/1/root/sys/fs/selinux/enforce`)
		Expect(err).NotTo(HaveOccurred())
		Expect(out).To(HavePrefix("1"))
		root := plainPod("root")
		root.Spec.RestartPolicy = corev1.RestartPolicyNever
		root.Spec.Containers[0].Command = []string{"/bin/sh", "-c", "mkdir /cgroup/made 2>/dev/termination-log"}
		root.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "cgroup", MountPath: "/cgroup"}}
		root.Spec.Volumes = []corev1.Volume{{Name: "cgroup", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/sys/fs/cgroup/kubepods.slice"}}}}
		root = createPod(ctx, namespace, root)
		Eventually(ctx, func(ctx context.Context) (string, error) {
			root, err = readPod(ctx, root)
			if err != nil || len(root.Status.ContainerStatuses) == 0 || root.Status.ContainerStatuses[0].State.Terminated == nil {
				return "", err
			}
			return root.Status.ContainerStatuses[0].State.Terminated.Message, nil
		}).Should(ContainSubstring("Permission denied"))
		deletePod(ctx, root)
	})

	It("has claims that hold CPUs, for containers that are confined", func(ctx context.Context) {
		core := oneCore(ctx)
		counted := claimPod("holder", core) // requests all that its claim holds: validate would miss the memory
		counted.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = *resource.NewQuantity(someMemory, resource.BinarySI)
		pod = waitRunning(ctx, createClaimed(ctx, namespace, counted, core))
		s := snapshot(ctx)
		expectPinned(ctx, s, pod)
		Expect(contextOf(ctx, inKernel(s, pod).PID)).To(ContainSubstring(":" + containerType + ":"))
	})

	It("needs nothing that validate finds", func(ctx context.Context) {
		Expect(answer(ctx, "validate", "--ask-nodes")).To(ContainSubstring("no problems found"))
	})

	It("denies nothing that the driver asks for", func(ctx context.Context) {
		denied, err := observer.Run(ctx, `dmesg | grep 'avc: *denied' | grep -E 'numa|scontext=[^ ]*:spc_t:' || true`)
		Expect(err).NotTo(HaveOccurred())
		Expect(denied).To(BeEmpty())
	})

	It("has nothing of the driver when it is uninstalled", func(ctx context.Context) {
		deletePod(ctx, pod)
		deleteClaim(ctx, pod)
		expectUninstalled(ctx)
	})

	// As a user finds out who takes the chart's defaults.
	It("refuses the chart with its defaults, and validate says what to set", func(ctx context.Context) {
		installChart(ctx)
		Eventually(ctx, validateSays).Should(ContainSubstring("SELinux type " + containerType))
		By("having the types that the chart's documentation has")
		installChart(ctx, "--values=selinux-values.yaml")
		waitDriverReady(ctx)
		Eventually(ctx, validateSays).Should(HavePrefix("no problems found"))
		expectUninstalled(ctx)
	})
})
