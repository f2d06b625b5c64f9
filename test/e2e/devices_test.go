package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// withDevices marks specs for a node with attached devices, and for what the chart
// installs only if it is told to: make e2e-devices runs them.
var withDevices = Label("devices")

var _ = Describe("claims of a drive, and of CPUs on its NUMA node", withDevices, func() {
	It("have exactly its device node, which no other claim gets", func(ctx context.Context) {
		drives := publishedDrives(ctx)
		namespace := createNamespace(ctx, "drives")
		var pods []*corev1.Pod
		for i := range len(drives) + 1 { // one too many
			pods = append(pods, createWithDrive(ctx, namespace, fmt.Sprintf("drive-%d", i)))
		}
		var running []*corev1.Pod
		Eventually(ctx, func(g Gomega) {
			running = nil
			for _, pod := range pods {
				current, err := readPod(ctx, pod)
				g.Expect(err).NotTo(HaveOccurred())
				if statuses := current.Status.ContainerStatuses; len(statuses) > 0 && statuses[0].State.Running != nil {
					running = append(running, current)
				}
			}
			g.Expect(running).To(HaveLen(len(drives)), "pods that run, of as many drives")
		}).Should(Succeed())

		s, holders := snapshot(ctx), map[string]string{}
		for _, pod := range running {
			zone, drive := driveResults(ctx, pod)
			Expect(holders[drive.address]).To(BeEmpty(), "pods %s and %s have drive %s", holders[drive.address], pod.Name, drive.address)
			holders[drive.address] = pod.Name
			Expect(zone.id).To(Equal(drives[drive.name].zone), "NUMA node of the CPUs of pod %s, drive %s", pod.Name, drive.address)
			expectHeld(s, pod, zone.id, zone.threadsPerCore)
			expectDrive(ctx, inKernel(s, pod).PID, pod, drive.address)
		}
		for _, pod := range pods {
			if !slices.Contains(slices.Collect(maps.Values(holders)), pod.Name) {
				expectPending(ctx, pod, noDevices)
			}
		}

		By("giving one back")
		deletePod(ctx, running[0])
		deleteClaim(ctx, running[0])
		for _, pod := range pods {
			if pod.Name == running[0].Name {
				continue
			}
			pod = waitRunning(ctx, pod)
			_, drive := driveResults(ctx, pod)
			expectDrive(ctx, inKernel(snapshot(ctx), pod).PID, pod, drive.address)
		}
	})

	It("are told when it is gone, and when it is back", func(ctx context.Context) {
		namespace := createNamespace(ctx, "gone")
		pod := waitRunning(ctx, createWithDrive(ctx, namespace, "drive"))
		_, drive := driveResults(ctx, pod)
		DeferCleanup(func(ctx context.Context) { Expect(observer.Rescan(ctx)).To(Succeed()) })

		Expect(observer.Unplug(ctx, drive.address)).To(Succeed())
		expectPublished(ctx, drive.name, "a taint", tainted)
		expectHealth(ctx, pod, "PCI function "+drive.address+" is gone")

		Expect(observer.Rescan(ctx)).To(Succeed())
		expectPublished(ctx, drive.name, "no taint", untainted)
		expectHealth(ctx, pod)
	})

	It("are told when the kernel gives it up", func(ctx context.Context) {
		namespace := createNamespace(ctx, "dead")
		pod := waitRunning(ctx, createWithDrive(ctx, namespace, "drive"))
		_, drive := driveResults(ctx, pod)
		link, err := observer.CutLink(ctx, drive.address)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx context.Context) {
			Expect(observer.Unplug(ctx, drive.address)).To(Succeed()) // nothing else has the kernel take it back
			Expect(observer.MendLink(ctx, link)).To(Succeed())
			Expect(observer.Rescan(ctx)).To(Succeed())
			expectPublished(ctx, drive.name, "no taint", untainted)
		})
		Expect(observer.ResetDrive(ctx, drive.address)).NotTo(Succeed(), "reset of a drive that does not answer")

		Expect(strings.TrimSpace(inSysfs(ctx, drive.address, "nvme/"+controllerOf(ctx, drive.address)+"/state"))).To(Equal("dead"))
		expectPublished(ctx, drive.name, "a taint", tainted)
		expectHealth(ctx, pod, "PCI function "+drive.address+" is dead")
	})
})

// controllerOf is the name of the NVMe controller that a drive is.
func controllerOf(ctx context.Context, address string) string {
	GinkgoHelper()
	controller, err := observer.Run(ctx, `ls "/sys/bus/pci/devices/$1/nvme"`, address)
	Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(controller)
}

// driveNodes are the device nodes of drives that a process has.
func driveNodes(ctx context.Context, pid int) []string {
	GinkgoHelper()
	names, err := observer.Run(ctx, `cd "/proc/$1/root/dev" && ls -d nvme* 2>/dev/null || true`, strconv.Itoa(pid))
	Expect(err).NotTo(HaveOccurred())
	return strings.Fields(names)
}

// createWithDrive creates a pod with a claim of a drive and one core beside it.
func createWithDrive(ctx context.Context, namespace, name string) *corev1.Pod {
	GinkgoHelper()
	want := request{cpus: int64(node.zones[0].threadsPerCore), zone: anyZone}
	createClaim(ctx, namespace, alike(numaNode, newClaim(name, want), wholeDevice("drive", "nvme.dra.numa")))
	return createPod(ctx, namespace, claimPod(name, want))
}

// driveResults are what the claim of a pod was allocated.
func driveResults(ctx context.Context, pod *corev1.Pod) (zone publishedZone, drive publishedFunction) {
	GinkgoHelper()
	drives := publishedFunctions(ctx, "nvme")
	for _, result := range claimOf(ctx, pod).Status.Allocation.Devices.Results {
		if result.Request == "drive" {
			drive = drives[result.Device]
		} else {
			zone = zoneOf(result.Device)
		}
	}
	Expect(drive.address).NotTo(BeEmpty(), "drive of pod %s", pod.Name)
	return zone, drive
}

// expectDrive checks what a container and the status of its claim have of a drive.
func expectDrive(ctx context.Context, pid int, pod *corev1.Pod, address string) {
	GinkgoHelper()
	controller := controllerOf(ctx, address)
	Expect(driveNodes(ctx, pid)).To(Equal([]string{controller}), "nodes of drives in pod %s", pod.Name)
	numbers, err := observer.Run(ctx, `stat -c %t:%T "/proc/$1/root/dev/$2" && stat -c %t:%T "/proc/1/root/dev/$2"`, strconv.Itoa(pid), controller)
	Expect(err).NotTo(HaveOccurred())
	both := strings.Fields(numbers)
	Expect(both).To(HaveLen(2))
	Expect(both[0]).To(Equal(both[1]), "number of /dev/%s in pod %s and on the node", controller, pod.Name)

	environment := environmentOf(ctx, pid)
	Expect(environment).To(HaveKeyWithValue("DRA_NUMA_PCI", address))
	Expect(environment).To(HaveKeyWithValue("DRA_NUMA_PCI_DRIVE", address))
	Eventually(ctx, func(g Gomega) {
		var data struct {
			PCI   string
			Nodes []string
		}
		for _, device := range claimOf(ctx, pod).Status.Devices {
			if strings.HasPrefix(device.Device, "nvme-") {
				g.Expect(json.Unmarshal(device.Data.Raw, &data)).To(Succeed())
			}
		}
		g.Expect(data.PCI).To(Equal(address), "status of claim %s", pod.Name)
		g.Expect(data.Nodes).To(Equal([]string{"/dev/" + controller}), "status of claim %s", pod.Name)
	}).Should(Succeed())
}
