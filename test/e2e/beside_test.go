package e2e

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// gpuDriver is the second driver, see test/gpudriver. It has the drives for GPUs.
const gpuDriver = "gpu.example.com"

var _ = Describe("claims over the devices of another driver and ours", withDevices, atLength, func() {
	It("have CPUs on the NUMA node of its device, and ours beside it under one PCIe root", func(ctx context.Context) {
		drives := publishedDrives(ctx)
		installGPUDriver(ctx, len(drives))
		Eventually(ctx, publishedFunctions).WithArguments("nvme").Should(BeEmpty(), "drives that both drivers publish")

		By("all GPUs, each with CPUs of its NUMA node")
		namespace := createNamespace(ctx, "beside")
		holders := map[string]string{}
		var pods []*corev1.Pod
		for i := range len(drives) {
			want := request{cpus: int64(node.zones[0].threadsPerCore), zone: anyZone}
			name := fmt.Sprintf("near-%d", i)
			createClaim(ctx, namespace, alike(numaNode, newClaim(name, want), wholeDevice("gpu", gpuDriver)))
			pods = append(pods, createPod(ctx, namespace, claimPod(name, want)))
		}
		for _, pod := range pods {
			pod = waitRunning(ctx, pod)
			address := gpuOf(ctx, pod)
			Expect(holders[address]).To(BeEmpty(), "pods %s and %s have GPU %s", holders[address], pod.Name, address)
			holders[address] = pod.Name
			zone, err := strconv.Atoi(inSysfs(ctx, address, "numa_node"))
			Expect(err).NotTo(HaveOccurred())
			expectHeld(snapshot(ctx), pod, zone, node.zones[0].threadsPerCore)
			expectNodeOf(ctx, pod, address)
		}
		for _, pod := range pods {
			deletePod(ctx, pod)
			deleteClaim(ctx, pod)
		}

		By("a GPU and a network card under one PCIe root")
		createClaim(ctx, namespace, alike(pcieRoot, claimOfDevices("root", wholeDevice("gpu", gpuDriver), wholeDevice("card", "nic."+driverName))))
		pod := waitRunning(ctx, createPod(ctx, namespace, withoutRequests(claimPod("root", request{}))))
		cards := allocatedFunctions(ctx, claimOf(ctx, pod))["card"]
		Expect(cards).To(HaveLen(1), "network cards of pod %s", pod.Name)
		address := gpuOf(ctx, pod)
		Expect(rootOf(ctx, address)).To(Equal(rootOf(ctx, cards[0].address)), "PCIe root of %s and %s", address, cards[0].address)
		expectNodeOf(ctx, pod, address)
	})
})

// installGPUDriver runs the second driver until the end of the spec, and waits for
// its GPUs.
func installGPUDriver(ctx context.Context, count int) {
	GinkgoHelper()
	namespace := createNamespace(ctx, "gpudriver")
	manifest, err := os.ReadFile("../gpudriver/manifests/gpudriver.yaml")
	Expect(err).NotTo(HaveOccurred())
	text := strings.ReplaceAll(string(manifest), "NAMESPACE", namespace)
	DeferCleanup(removeGPUDriver, namespace, count)
	apply(ctx, namespace, "gpudriver.yaml", text)
	Eventually(ctx, gpus).Should(HaveLen(count), "GPUs that driver %s publishes", gpuDriver)
}

// removeGPUDriver leaves nothing of the second driver. Ours takes it for one that
// starts again until it starts again itself.
func removeGPUDriver(ctx context.Context, namespace string, count int) {
	api := cluster.Kubernetes
	foreground := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}
	Expect(api.AppsV1().DaemonSets(namespace).Delete(ctx, "gpudriver", foreground)).To(Succeed())
	Eventually(ctx, podNames).WithArguments(namespace).Should(BeEmpty(), "pods of driver %s are still there", gpuDriver)
	Expect(api.ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, slicesOf(gpuDriver))).To(Succeed())
	Expect(api.ResourceV1().DeviceClasses().Delete(ctx, gpuDriver, metav1.DeleteOptions{})).To(Succeed())
	Expect(api.RbacV1().ClusterRoleBindings().Delete(ctx, "gpudriver", metav1.DeleteOptions{})).To(Succeed())
	Expect(api.RbacV1().ClusterRoles().Delete(ctx, "gpudriver", metav1.DeleteOptions{})).To(Succeed())
	killDriver(ctx)
	Eventually(ctx, publishedFunctions).WithArguments("nvme").Should(HaveLen(count), "drives that are published again")
}

// gpus are the addresses of what the second driver publishes, by the names of the
// devices.
func gpus(ctx context.Context) (map[string]string, error) {
	slices, err := cluster.Kubernetes.ResourceV1().ResourceSlices().List(ctx, slicesOf(gpuDriver))
	if err != nil {
		return nil, err
	}
	addresses := map[string]string{}
	for _, slice := range slices.Items {
		for _, device := range slice.Spec.Devices {
			addresses[device.Name] = attribute(device, pciBusID)
		}
	}
	return addresses, nil
}

// gpuOf is the address of the GPU that the claim of a pod was allocated.
func gpuOf(ctx context.Context, pod *corev1.Pod) string {
	GinkgoHelper()
	addresses, err := gpus(ctx)
	Expect(err).NotTo(HaveOccurred())
	for _, result := range claimOf(ctx, pod).Status.Allocation.Devices.Results {
		if result.Driver == gpuDriver {
			return addresses[result.Device]
		}
	}
	Fail("pod " + pod.Name + " has no GPU")
	return ""
}

// expectNodeOf checks that a pod has the device node of a drive, and of no other.
func expectNodeOf(ctx context.Context, pod *corev1.Pod, address string) {
	GinkgoHelper()
	nodes := driveNodes(ctx, inKernel(snapshot(ctx), pod).PID)
	Expect(nodes).To(Equal([]string{controllerOf(ctx, address)}), "nodes of drives in pod %s", pod.Name)
}
