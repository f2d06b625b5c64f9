package e2e

import (
	"context"
	"maps"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/interrupts"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// The node's own disk, drives and network cards have interrupts. The kernel moves some of
// them.
var _ = Describe("claims of CPUs without interrupts", withDevices, func() {
	It("have those only that the kernel does not move, and give the others back", func(ctx context.Context) {
		namespace := createNamespace(ctx, "quiet")
		before, handlersBefore := affinities(ctx), affinitiesOfHandlers(ctx)
		pod := waitRunning(ctx, createTuned(ctx, namespace, "quiet", `"interrupts": "away"`))
		cpus := inKernel(snapshot(ctx), pod).CPUs
		said := performanceOf(ctx, pod)
		Expect(said.Asked.Interrupts).To(Equal(deviceclasses.InterruptsAway))
		Expect(said.Interrupts).To(ContainElement(And(HaveField("Name", HavePrefix("nvme")), HaveField("Why", interrupts.Managed))), "queues of drives")
		onlyStaying := func(g Gomega) {
			handlers, staying := handledBy(ctx, cpus), performanceOf(ctx, pod).Interrupts
			for _, name := range handlers {
				g.Expect(staying).To(ContainElement(HaveField("Name", name)), "CPUs %s handle %v", cpus, handlers)
			}
		}
		onlyStaying(Default)
		after := affinities(ctx)
		Expect(cpuset.ParseMask(after["default"])).To(WithTransform(cpus.Overlaps, BeFalse()), "CPUs of new interrupts")
		var moved []string
		for number, list := range after {
			if list != before[number] && number != "default" {
				moved = append(moved, interruptName(ctx, number))
			}
		}
		Expect(moved).To(ContainElement(HavePrefix("virtio")), "interrupts that have other CPUs")

		By("binding a drive again, so that it has new interrupts, and maybe numbers of others that have ended")
		drive := addressesOf(publishedFunctions(ctx, "nvme"))[0]
		queue := controllerOf(ctx, drive) + "q"
		maps.DeleteFunc(handlersBefore, func(name, _ string) bool { return strings.HasPrefix(name, queue) })
		_, err := observer.Run(ctx, `cd /sys/bus/pci/drivers/nvme && echo "$1" >unbind && echo "$1" >bind`, drive)
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, onlyStaying).Should(Succeed())

		By("killing the driver as the pod is deleted")
		Expect(observer.KillNext(ctx, driverProcess, "", limit(eventuallyTimeout))).To(Succeed())
		deletePod(ctx, pod)
		waitDriverReady(ctx)
		Eventually(ctx, func() map[string]string {
			now := affinitiesOfHandlers(ctx)
			maps.DeleteFunc(now, func(name, _ string) bool { _, was := handlersBefore[name]; return !was })
			return now
		}).Should(Equal(handlersBefore))
	})

	It("have those of the claim's own drive", func(ctx context.Context) {
		namespace := createNamespace(ctx, "own")
		want := oneCore(ctx)
		want.zone = anyZone
		claim := alike(numaNode, configured(performanceConfig(`"interrupts": "own"`), newClaim("own", want)), wholeDevice("drive", "nvme.dra.numa"))
		claim.Spec.Devices.Config[0].Requests = []string{claim.Spec.Devices.Requests[0].Name}
		createClaim(ctx, namespace, claim)
		before := affinities(ctx)
		pod := waitRunning(ctx, createPod(ctx, namespace, claimPod("own", want)))
		_, drive := driveResults(ctx, pod)
		cpus := inKernel(snapshot(ctx), pod).CPUs
		text, err := observer.Run(ctx, `ls "/sys/bus/pci/devices/$1/msi_irqs"`, drive.address)
		Expect(err).NotTo(HaveOccurred())
		own, after := strings.Fields(text), affinities(ctx)
		var handled []string // the kernel manages the interrupts of queues, and not that of the controller
		for _, number := range own {
			if after[number] == cpus.String() && before[number] != after[number] {
				handled = append(handled, number)
			}
		}
		Expect(handled).NotTo(BeEmpty(), "interrupts %v of drive %s that CPUs %s handle because of the claim: %v", own, drive.address, cpus, after)
		deletePod(ctx, pod)
		Eventually(ctx, func() map[string]string { return affinities(ctx) }).Should(Equal(before))
	})

	It("are refused with the reason what the node does not have", func(ctx context.Context) {
		namespace := createNamespace(ctx, "fast")
		pod := createTuned(ctx, namespace, "fast", `"energyPreference": "performance"`)
		Eventually(ctx, func() ([]string, error) { return eventMessages(ctx, namespace, pod.Name) }).Should(ContainElement(ContainSubstring("energyPreference: ")))
	})
})

// createTuned creates a pod whose claim has a PerformanceConfig with these fields, in JSON.
func createTuned(ctx context.Context, namespace, name, fields string) *corev1.Pod {
	GinkgoHelper()
	core := oneCore(ctx)
	core.zone = anyZone
	createClaim(ctx, namespace, configured(performanceConfig(fields), newClaim(name, core)))
	return createPod(ctx, namespace, claimPod(name, core))
}

// performanceConfig is a PerformanceConfig with these fields, in JSON.
func performanceConfig(fields string) string {
	return `{"apiVersion": "dra.numa/v1alpha1", "kind": "PerformanceConfig", ` + fields + `}`
}

// performanceOf returns what the status of a pod's claim says of its CPUs.
func performanceOf(ctx context.Context, pod *corev1.Pod) (said deviceclasses.PerformanceStatus) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		claim, err := readClaim(ctx, pod.Namespace, pod.Name)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(claim.Status.Devices).To(HaveLen(1))
		status, err := deviceclasses.ReadShareStatus(claim.Status.Devices[0].Data.Raw)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(status.Zone).NotTo(BeNil())
		g.Expect(status.Zone.Performance).NotTo(BeNil())
		said = *status.Zone.Performance
	}).Should(Succeed())
	return said
}

// affinities returns which CPUs each interrupt may use, by its number, and those of new ones,
// "default".
func affinities(ctx context.Context) map[string]string {
	GinkgoHelper()
	text, err := observer.Run(ctx, `cd /proc/1/root/proc/irq && echo default $(cat default_smp_affinity) && for f in [0-9]*; do echo $f $(cat $f/smp_affinity_list); done`)
	Expect(err).NotTo(HaveOccurred())
	all := map[string]string{}
	for line := range strings.Lines(text) {
		number, cpus, _ := strings.Cut(strings.TrimSpace(line), " ")
		all[number] = cpus
	}
	return all
}

// affinitiesOfHandlers returns which CPUs the interrupts of each handler may use, by its name,
// and those of new ones, "default".
func affinitiesOfHandlers(ctx context.Context) map[string]string {
	GinkgoHelper()
	text, err := observer.Run(ctx, `cd /proc/1/root/proc/irq && echo $(cat default_smp_affinity)/default && for f in [0-9]*; do echo $(cat $f/smp_affinity_list)/$(cat /sys/kernel/irq/$f/actions); done | sort`)
	Expect(err).NotTo(HaveOccurred())
	all := map[string]string{}
	for line := range strings.Lines(text) {
		if cpus, name, _ := strings.Cut(strings.TrimSpace(line), "/"); name != "" {
			all[name] += cpus + " "
		}
	}
	return all
}

// interruptName returns the name of an interrupt's handler.
func interruptName(ctx context.Context, number string) string {
	GinkgoHelper()
	name, err := observer.Run(ctx, `cat "/sys/kernel/irq/$1/actions"`, number)
	Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(name)
}

// handledBy returns the names of the interrupts that are handled by some of the CPUs.
func handledBy(ctx context.Context, cpus cpuset.Set) (names []string) {
	GinkgoHelper()
	text, err := observer.Run(ctx, `cd /proc/1/root/proc/irq && for f in [0-9]*; do echo $(cat /sys/kernel/irq/$f/actions)/$(cat $f/effective_affinity_list); done`)
	Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(text) {
		name, list, _ := strings.Cut(strings.TrimSpace(line), "/")
		effective, err := cpuset.Parse(list)
		Expect(err).NotTo(HaveOccurred(), "CPUs of interrupt %s", name)
		if name != "" && effective.Overlaps(cpus) {
			names = append(names, name)
		}
	}
	return names
}
