package e2e

import (
	"context"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/demo"
)

// aligned is a running pod that has CPUs and functions.
type aligned struct {
	pod       *corev1.Pod
	zone      int
	functions map[string][]publishedFunction // by request
}

// The GPUs of the rig have no device nodes, so a drive stands for one, and its NUMA nodes
// are small.
var forTheRig = strings.NewReplacer("gpu.dra.numa", "nvme.dra.numa", "cpu: 8", "cpu: 2", "memory: 32Gi", "memory: 64Mi")

var _ = Describe("the manifests in demo/devices", withDevices, Ordered, ContinueOnFailure, func() {
	BeforeAll(func(ctx context.Context) {
		withVirtualFunctions(ctx, networkCards, "2", 4)
	})

	for _, manifest := range []struct {
		file  string
		check func(context.Context, []aligned)
	}{
		{"gpu-near.yaml", expectNear},
		{"gpu-nearest.yaml", expectNear},
		{"drive-card.yaml", func(ctx context.Context, all []aligned) {
			expectNear(ctx, all)
			drive, card := all[0].functions["drive"][0], all[0].functions["card"][0]
			Expect(rootOf(ctx, drive.address)).To(Equal(rootOf(ctx, card.address)), "PCIe root of %s and %s", drive.address, card.address)
		}},
		{"four-vfs.yaml", func(ctx context.Context, all []aligned) {
			var cards []string
			for _, vf := range all[0].functions["vf"] {
				cards = append(cards, path.Base(inSysfs(ctx, vf.address, "physfn")))
			}
			slices.Sort(cards)
			Expect(slices.Compact(cards)).To(HaveLen(4), "cards of the virtual functions %v", all[0].functions["vf"])
		}},
		{"apart.yaml", func(ctx context.Context, all []aligned) {
			expectNear(ctx, all)
			Expect(all).To(HaveLen(2), "pods")
			var sockets []string
			s := snapshot(ctx)
			for _, one := range all {
				cpu, _ := inKernel(s, one.pod).CPUs.First()
				socket, err := observer.Run(ctx, `cat "/sys/devices/system/cpu/cpu$1/topology/physical_package_id"`, strconv.Itoa(cpu))
				Expect(err).NotTo(HaveOccurred())
				sockets = append(sockets, socket)
			}
			Expect(sockets[0]).NotTo(Equal(sockets[1]), "socket of the pods")
		}},
	} {
		It("give what they say: "+manifest.file, func(ctx context.Context) {
			namespace := createNamespace(ctx, "aligned")
			text, err := fs.ReadFile(demo.Devices, "devices/"+manifest.file)
			Expect(err).NotTo(HaveOccurred())
			apply(ctx, namespace, manifest.file, forTheRig.Replace(string(text)))
			var all []aligned
			for _, pod := range podsIn(ctx, namespace) {
				all = append(all, alignedPod(ctx, pod))
			}
			manifest.check(ctx, all)
		})
	}
})

// alignedPod checks that a pod has its CPUs, and of the drives those of its
// requests only.
func alignedPod(ctx context.Context, pod *corev1.Pod) aligned {
	GinkgoHelper()
	claim := onlyClaim(ctx, pod)
	one := aligned{pod: pod, functions: map[string][]publishedFunction{}}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if amount, isZone := result.ConsumedCapacity["cpu"]; isZone {
			one.zone = zoneOf(result.Device).id
			expectHeld(snapshot(ctx), pod, one.zone, int(amount.Value()))
		}
	}
	var drives []string
	for request, functions := range allocatedFunctions(ctx, claim) {
		one.functions[request] = functions
		for _, function := range functions {
			if function.kind == "nvme" {
				drives = append(drives, controllerOf(ctx, function.address))
			}
		}
	}
	Expect(driveNodes(ctx, inKernel(snapshot(ctx), pod).PID)).To(ConsistOf(drives), "nodes of drives in pod %s", pod.Name)
	return one
}

// expectNear checks that all functions are where the kernel has their pods' CPUs.
func expectNear(ctx context.Context, all []aligned) {
	GinkgoHelper()
	for _, one := range all {
		Expect(one.functions).NotTo(BeEmpty(), "functions of pod %s", one.pod.Name)
		for request, functions := range one.functions {
			for _, function := range functions {
				Expect(inSysfs(ctx, function.address, "numa_node")).To(Equal(strconv.Itoa(one.zone)), "NUMA node of request %s of pod %s", request, one.pod.Name)
			}
		}
	}
}
