package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
)

var _ = Describe("a node that pretends to have another machine", ofMachine, atLength, func() {
	It("runs pods with claims of it, pins none of them, and says so", func(ctx context.Context) {
		before := snapshot(ctx)
		changeDriver(ctx, func(set *appsv1.DaemonSet) {
			for i := range set.Spec.Template.Spec.Containers {
				if container := &set.Spec.Template.Spec.Containers[i]; container.Name == "driver" {
					container.Args = append(container.Args, "--made-up-machine=intel-2s")
				}
			}
		})
		waitDriverReady(ctx)
		devices, err := nodeDevices(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(devices).To(HaveLen(2))
		for _, device := range devices {
			Expect(device.Attributes["madeUp"].BoolValue).To(HaveValue(BeTrue()), device.Name)
			Expect(attribute(device, "exclusivity")).To(Equal("none"), device.Name)
		}

		const cpus = 40 // more than the node has
		Expect(before.Online.Size()).To(BeNumerically("<", cpus))
		want := request{cpus: cpus, memoryBytes: 64 << 30, zone: 1}
		pod := waitRunning(ctx, createClaimed(ctx, createNamespace(ctx, "pretends"), withoutRequests(claimPod("large", want)), want))
		s := snapshot(ctx)
		process := inKernel(s, pod)
		Expect(process.CPUs.String()).To(Equal(before.Online.String()), "CPUs of the pod, which nothing pins")
		Expect(process.Partition).To(Equal("member"))
		Expect(cpusIn(environmentOf(ctx, process.PID), "DRA_NUMA_CPUS").Size()).To(Equal(cpus))
		_, stdout, _ := ask(ctx, "validate")
		Expect(stdout).To(ContainSubstring("made-up-machine"))
		deletePod(ctx, pod)
	})
})
