package e2e

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing/fstest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// gpuDriver is the second driver, see test/gpudriver. It has the drives for GPUs.
const gpuDriver = "gpu.example.com"

var _ = Describe("claims over the devices of another driver and ours", withDevices, func() {
	It("have CPUs on the NUMA node of its device, and ours beside it under one PCIe root", func(ctx context.Context) {
		drives := publishedFunctions(ctx, "nvme")
		if len(drives) == 0 {
			lacks("node %s publishes no NVMe drives", node.name)
		}
		installGPUDriver(ctx, len(drives))
		Eventually(ctx, publishedFunctions).WithArguments("nvme").Should(BeEmpty(), "drives that both drivers publish")

		By("all GPUs, each with CPUs of its NUMA node")
		namespace := createNamespace(ctx, "beside")
		numaNode, holders := resourceapi.FullyQualifiedName("resource.kubernetes.io/numaNode"), map[string]string{}
		var pods []*corev1.Pod
		for i := range len(drives) {
			want := request{cpus: int64(node.zones[0].threadsPerCore), zone: anyZone}
			claim := newClaim(fmt.Sprintf("near-%d", i), want)
			claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, wholeDevice("gpu", gpuDriver))
			claim.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{{MatchAttribute: &numaNode}}
			createClaim(ctx, namespace, claim)
			pods = append(pods, createPod(ctx, namespace, claimPod(claim.Name, want)))
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
		pcieRoot := resourceapi.FullyQualifiedName("resource.kubernetes.io/pcieRoot")
		claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "root"}}
		claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{wholeDevice("gpu", gpuDriver), wholeDevice("card", "nic."+driverName)}
		claim.Spec.Devices.Constraints = []resourceapi.DeviceConstraint{{MatchAttribute: &pcieRoot}}
		createClaim(ctx, namespace, claim)
		pod := waitRunning(ctx, createPod(ctx, namespace, withoutRequests(claimPod(claim.Name, request{}))))
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
	Expect(cluster.Apply(ctx, fstest.MapFS{"gpudriver.yaml": {Data: []byte(text)}}, namespace)).To(Succeed())
	Eventually(ctx, gpus).Should(HaveLen(count), "GPUs that driver %s publishes", gpuDriver)
}

// removeGPUDriver leaves nothing of the second driver. Ours takes it for one that
// starts again until it starts again itself.
func removeGPUDriver(ctx context.Context, namespace string, count int) {
	api := cluster.Kubernetes
	foreground := metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}
	Expect(api.AppsV1().DaemonSets(namespace).Delete(ctx, "gpudriver", foreground)).To(Succeed())
	Eventually(ctx, podNames).WithArguments(namespace).Should(BeEmpty(), "pods of driver %s are still there", gpuDriver)
	ofDriver := metav1.ListOptions{FieldSelector: resourceapi.ResourceSliceSelectorDriver + "=" + gpuDriver}
	Expect(api.ResourceV1().ResourceSlices().DeleteCollection(ctx, metav1.DeleteOptions{}, ofDriver)).To(Succeed())
	Expect(api.ResourceV1().DeviceClasses().Delete(ctx, gpuDriver, metav1.DeleteOptions{})).To(Succeed())
	Expect(api.RbacV1().ClusterRoleBindings().Delete(ctx, "gpudriver", metav1.DeleteOptions{})).To(Succeed())
	Expect(api.RbacV1().ClusterRoles().Delete(ctx, "gpudriver", metav1.DeleteOptions{})).To(Succeed())
	killDriver(ctx)
	Eventually(ctx, publishedFunctions).WithArguments("nvme").Should(HaveLen(count), "drives that are published again")
}

// gpus are the addresses of what the second driver publishes, by the names of the
// devices.
func gpus(ctx context.Context) (map[string]string, error) {
	slices, err := cluster.Kubernetes.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{
		FieldSelector: resourceapi.ResourceSliceSelectorDriver + "=" + gpuDriver,
	})
	if err != nil {
		return nil, err
	}
	addresses := map[string]string{}
	for _, slice := range slices.Items {
		for _, device := range slice.Spec.Devices {
			addresses[device.Name] = ptr.Deref(device.Attributes["resource.kubernetes.io/pciBusID"].StringValue, "")
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
	nodes, err := observer.Run(ctx, `cd "/proc/$1/root/dev" && ls -d nvme*`, strconv.Itoa(inKernel(snapshot(ctx), pod).PID))
	Expect(err).NotTo(HaveOccurred())
	Expect(strings.Fields(nodes)).To(Equal([]string{controllerOf(ctx, address)}), "nodes of drives in pod %s", pod.Name)
}

// wholeDevice asks for one device of a class.
func wholeDevice(name, class string) resourceapi.DeviceRequest {
	return resourceapi.DeviceRequest{Name: name, Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: class}}
}
