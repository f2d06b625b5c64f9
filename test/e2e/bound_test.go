package e2e

import (
	"context"
	"path"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

var _ = Describe("claims of functions with a driver of their own", withDevices, func() {
	It("have VFIO bound as long as they last, whoever dies meanwhile", atLength, func(ctx context.Context) {
		withVirtualFunctions(ctx, networkCards, "1", 1)
		namespace := createNamespace(ctx, "bound")
		pod := waitRunning(ctx, createWithVFIO(ctx, namespace, "vfio"))
		functions := allocatedFunctions(ctx, claimOf(ctx, pod))
		Expect(functions).To(And(HaveKey("drive"), HaveKey("card")))
		before := map[string]string{functions["drive"][0].address: "nvme", functions["card"][0].address: "igbvf"}
		expectGroups(ctx, pod, before)

		By("killing the driver while it is used")
		killDriver(ctx)
		expectGroups(ctx, pod, before)

		By("killing the driver as the pod is deleted")
		Expect(observer.KillNext(ctx, driverProcess, "", limit(eventuallyTimeout))).To(Succeed())
		deletePod(ctx, pod)
		for address, driver := range before {
			Eventually(ctx, func() (string, error) { return driverOf(ctx, address) }).Should(Equal(driver), "driver of PCI function %s", address)
		}
		Expect(inSysfs(ctx, functions["drive"][0].address, "driver_override")).To(Equal("(null)"))

		By("using a drive as it is again")
		waitDriverReady(ctx)
		_, drive := driveResults(ctx, waitRunning(ctx, createWithDrive(ctx, namespace, "plain")))
		Expect(driverOf(ctx, drive.address)).To(Equal("nvme"))
	})
})

// createWithVFIO creates a pod that has a drive and a virtual function open as
// VFIO groups.
func createWithVFIO(ctx context.Context, namespace, name string) *corev1.Pod {
	GinkgoHelper()
	want := oneCore(ctx)
	claim := newClaim(name, want)
	claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests,
		wholeDevice("drive", "nvme.dra.numa"), wholeDevice("card", "nic.dra.numa", `device.attributes["dra.numa"].virtualFunction`))
	createClaim(ctx, namespace, configured(configOf(deviceclasses.DeviceConfigKind, `"driver": "vfio-pci"`), claim))
	pod := claimPod(name, want)
	pod.Spec.Containers[0].Command = []string{"/bin/sh", "-c", `set -- /dev/vfio/[0-9]*; exec 3<>"$1" 4<>"$2"; exec /bin/sleep 2147483647`}
	return createPod(ctx, namespace, pod)
}

// expectGroups checks that VFIO is bound to the functions, and that a container
// has the nodes of their IOMMU groups and no other.
func expectGroups(ctx context.Context, pod *corev1.Pod, functions map[string]string) {
	GinkgoHelper()
	want := []string{"vfio"}
	for address := range functions {
		Expect(driverOf(ctx, address)).To(Equal("vfio-pci"), "driver of PCI function %s", address)
		want = append(want, path.Base(inSysfs(ctx, address, "iommu_group")))
	}
	names, err := observer.Run(ctx, `cd "/proc/$1/root/dev/vfio" && ls | grep -v devices`, strconv.Itoa(inKernel(snapshot(ctx), pod).PID))
	Expect(err).NotTo(HaveOccurred())
	Expect(strings.Fields(names)).To(ConsistOf(want), "nodes below /dev/vfio in pod %s", pod.Name)
}
