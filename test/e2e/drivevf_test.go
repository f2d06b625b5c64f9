package e2e

import (
	"context"
	"fmt"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

var _ = Describe("claims of the virtual functions of a drive", withDevices, func() {
	It("have one each, and the drive itself waits for all of them", atLength, func(ctx context.Context) {
		drive := withVirtualFunctions(ctx, nvmeDrives, "2", 1)[0]
		namespace, holders := createNamespace(ctx, "drivevf"), map[string]string{}
		virtual := fmt.Sprintf(`device.attributes["dra.numa"].virtualFunction && device.attributes["dra.numa"].physicalFunction == %q`, drive)
		var pods []*corev1.Pod
		for _, name := range []string{"one", "two"} {
			pods = append(pods, createWithSelected(ctx, namespace, name, virtual))
		}
		for i, pod := range pods {
			pods[i] = waitRunning(ctx, pod)
			functions := allocatedFunctions(ctx, claimOf(ctx, pod))["drive"]
			Expect(functions).To(HaveLen(1), "virtual functions of pod %s", pod.Name)
			address := functions[0].address
			Expect(holders[address]).To(BeEmpty(), "pods %s and %s have virtual function %s", holders[address], pod.Name, address)
			holders[address] = pod.Name
			Expect(inSysfs(ctx, address, "physfn")).To(HaveSuffix("/"+drive), "physical function of %s", address)
			Expect(inSysfs(ctx, drive, "numa_node")).To(Equal(strconv.Itoa(functions[0].zone)), "NUMA node of %s", address)
			environment := environmentOf(ctx, inKernel(snapshot(ctx), pods[i]).PID)
			Expect(environment).To(HaveKeyWithValue("DRA_NUMA_PCI", address))
		}

		whole := createWithSelected(ctx, namespace, "whole", hasAddress(drive))
		deletePod(ctx, pods[0])
		deleteClaim(ctx, pods[0])
		Consistently(ctx, func(g Gomega) {
			current, err := readPod(ctx, whole)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(current.Spec.NodeName).To(BeEmpty(), "node of pod %s, of whose drive a virtual function is in use", whole.Name)
		}).WithTimeout(limit(reschedule)).Should(Succeed())
		deletePod(ctx, pods[1])
		deleteClaim(ctx, pods[1])
		whole = waitRunning(ctx, whole)
		expectNodeOf(ctx, whole, drive)
	})
})

// createWithSelected creates a pod with a claim of a drive for which an expression
// holds, and of nothing else.
func createWithSelected(ctx context.Context, namespace, name, expression string) *corev1.Pod {
	GinkgoHelper()
	createClaim(ctx, namespace, claimOfDevices(name, wholeDevice("drive", "nvme."+driverName, expression)))
	return createPod(ctx, namespace, withoutRequests(claimPod(name, request{})))
}
