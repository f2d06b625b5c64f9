package e2e

import (
	"context"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/diagnosis"
)

// The node's display controllers are GPUs to the library of test/nvml, which is in
// the image that the chart runs numa-nvml in.
var _ = Describe("GPUs that NVIDIA's library knows", withDevices, atLength, func() {
	It("are published with what it tells, and linked ones go to one pod", func(ctx context.Context) {
		addresses := addressesOf(knownGPUs(ctx))
		pod := waitRunning(ctx, createWithLinkedGPUs(ctx, createNamespace(ctx, "linked"), "linked", len(addresses)))
		environment := environmentOf(ctx, inKernel(snapshot(ctx), pod).PID)
		Expect(environment).To(HaveKeyWithValue("DRA_NUMA_PCI", strings.Join(addresses, ",")))
	})

	It("go to no new pod when it reports an error, until numa-nvml starts again", func(ctx context.Context) {
		gpus := knownGPUs(ctx)
		namespace := createNamespace(ctx, "sick")
		pod := waitRunning(ctx, createWithLinkedGPUs(ctx, namespace, "sick", 1))
		gpu := gpus[claimOf(ctx, pod).Status.Allocation.Devices.Results[0].Device]
		expectHealth(ctx, pod)

		Expect(observer.WriteFile(ctx, "/run/dra-numa/xid", gpu.address+" 79")).To(Succeed())
		expectPublished(ctx, gpu.name, "a taint", tainted)
		expectHealth(ctx, pod, "PCI function "+gpu.address+": its driver has reported XID 79")

		By("asking for all of them")
		deletePod(ctx, pod)
		deleteClaim(ctx, pod)
		next := createWithLinkedGPUs(ctx, namespace, "next", len(gpus))
		expectPending(ctx, next, noDevices) // it would have the sick one

		By("starting numa-nvml again")
		ofNVML := metav1.ListOptions{LabelSelector: diagnosis.Program("nvml").Selector()}
		Expect(cluster.Kubernetes.CoreV1().Pods(*driverNamespace).DeleteCollection(ctx, metav1.DeleteOptions{}, ofNVML)).To(Succeed())
		expectHealth(ctx, waitRunning(ctx, next))
	})
})

// createWithLinkedGPUs creates a pod with a claim of so many GPUs that NVLinks
// connect, of a generation and not divided.
func createWithLinkedGPUs(ctx context.Context, namespace, name string, count int) *corev1.Pod {
	GinkgoHelper()
	gpus := wholeDevice("gpu", "gpu."+driverName,
		`device.attributes["`+driverName+`"].?computeCapability.orValue("") == "9.0" && !device.attributes["`+driverName+`"].?mig.orValue(true)`)
	gpus.Exactly.Count = int64(count)
	createClaim(ctx, namespace, alike(driverName+"/nvlink", claimOfDevices(name, gpus)))
	return createPod(ctx, namespace, withoutRequests(claimPod(name, request{})))
}

// knownGPUs are the node's GPUs, once all that the library tells of them is published.
func knownGPUs(ctx context.Context) map[string]publishedFunction {
	GinkgoHelper()
	gpus := publishedFunctions(ctx, "gpu")
	if len(gpus) == 0 {
		lacks("node %s publishes no GPUs", node.name)
	}
	first := slices.Min(addressesOf(gpus))
	for name := range gpus {
		waitPublished(ctx, name, "what NVIDIA's library tells", func(device resourceapi.Device) bool {
			for name, want := range map[resourceapi.QualifiedName]string{
				"computeCapability": "9.0", "mig": "false", "memoryMiB": "81920", "model": "Fake NVIDIA GPU", "nvlink": first,
			} {
				if attribute(device, driverName+"/"+name) != want {
					return false
				}
			}
			return strings.HasPrefix(attribute(device, driverName+"/uuid"), "GPU-") && !tainted(device)
		})
	}
	return gpus
}

// addressesOf are those of functions, ascending.
func addressesOf(functions map[string]publishedFunction) (addresses []string) {
	for _, function := range functions {
		addresses = append(addresses, function.address)
	}
	slices.Sort(addresses)
	return addresses
}
