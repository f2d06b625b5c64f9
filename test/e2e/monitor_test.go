package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var monitor = flag.String("e2e.monitor", "", "program, with arguments between spaces, that has the QEMU of a node's machine do what follows -node NAME --")

// inMonitor has QEMU do something to the machine. QEMU says why it does not.
func inMonitor(ctx context.Context, command string) {
	GinkgoHelper()
	Expect(tryInMonitor(ctx, command)).To(Succeed())
}

func tryInMonitor(ctx context.Context, command string) error {
	GinkgoHelper()
	words := strings.Fields(*monitor)
	if len(words) == 0 {
		lacks("flag -e2e.monitor names no program")
	}
	output, err := exec.CommandContext(ctx, words[0], append(words[1:], "-node", node.name, "--", command)...).CombinedOutput()
	if err == nil && strings.Contains(strings.ToLower(string(output)), "error:") {
		err = errors.New("QEMU refuses")
	}
	if err != nil {
		return fmt.Errorf("%s: %w: %s", command, err, output)
	}
	return nil
}

// deviceOf is what the rig has QEMU call a function: all of a topology's functions are
// numbered in the order of their addresses. The rig's node has to publish them all.
func deviceOf(ctx context.Context, address string) string {
	GinkgoHelper()
	addresses := addressesOf(publishedFunctions(ctx, ""))
	place := slices.Index(addresses, address)
	Expect(place).NotTo(Equal(-1), "published functions %v have no %s", addresses, address)
	return fmt.Sprintf("dev%d", place+1)
}

var _ = Describe("a machine whose devices fail", withDevices, func() {
	It("has no new claim get a drive that is pulled out of its slot", func(ctx context.Context) {
		namespace := createNamespace(ctx, "slot")
		pod := waitRunning(ctx, createWithSelected(ctx, namespace, "drive", pullable(ctx)))
		_, drive := driveResults(ctx, pod)
		device := deviceOf(ctx, drive.address)
		serial := inSysfs(ctx, drive.address, "nvme/"+controllerOf(ctx, drive.address)+"/serial")
		Expect("dev"+strings.TrimPrefix(strings.TrimSpace(serial), "rig")).To(Equal(device), "serial number of drive %s", drive.address)

		inMonitor(ctx, "device_del "+device)
		isThere := func(ctx context.Context) (string, error) {
			return observer.Run(ctx, `ls /sys/bus/pci/devices | grep -Fx "$1" || true`, drive.address)
		}
		Eventually(ctx, isThere).Should(BeEmpty(), "PCI function %s is still there", drive.address) // the port's button blinks for 5 s
		expectPublished(ctx, drive.name, "a taint", tainted)
		expectHealth(ctx, pod, "PCI function "+drive.address+" is gone")

		// Linux removes a function from sysfs, then cuts the power of its slot, and waits a
		// second (remove_board of pciehp): only then has QEMU no device of that name.
		replug := fmt.Sprintf("device_add nvme,id=%s,bus=%s,serial=%s", device, strings.Replace(device, "dev", "rp", 1), strings.TrimSpace(serial))
		Eventually(ctx, tryInMonitor).WithArguments(replug).Should(Succeed())
		Eventually(ctx, isThere).ShouldNot(BeEmpty(), "PCI function %s is not there again", drive.address)
		expectPublished(ctx, drive.name, "no taint", untainted)
		expectHealth(ctx, pod)
	})

	It("has no new claim get a card whose link had a fatal error", func(ctx context.Context) {
		card := reportingCard(ctx)
		link, err := observer.Run(ctx, `readlink -f "/sys/bus/pci/devices/$1"`, card.address)
		Expect(err).NotTo(HaveOccurred())
		port := path.Base(path.Dir(strings.TrimSpace(link)))
		DeferCleanup(func(ctx context.Context) {
			Expect(observer.Unplug(ctx, port)).To(Succeed()) // which has counted
			Expect(observer.Rescan(ctx)).To(Succeed())
			expectPublished(ctx, card.name, "no taint", untainted)
		})
		inMonitor(ctx, "pcie_aer_inject_error "+deviceOf(ctx, card.address)+" DLP")
		expectPublished(ctx, card.name, "a taint", tainted)
		Expect(strings.TrimSpace(inSysfs(ctx, port, "aer_rootport_total_err_fatal"))).To(Equal("1"), "fatal errors that port %s received", port)
	})
})

// pullable is an expression that is true for one drive that has no virtual functions: QEMU
// ends when one that has them is pulled (nvme_subsys_unreserve_cntlids of 10.0).
func pullable(ctx context.Context) string {
	GinkgoHelper()
	for _, address := range addressesOf(publishedFunctions(ctx, "nvme")) {
		out, err := observer.Run(ctx, `ls "/sys/bus/pci/devices/$1" | grep -Fx sriov_totalvfs || true`, address)
		Expect(err).NotTo(HaveOccurred())
		if out == "" {
			return hasAddress(address)
		}
	}
	lacks("node %s publishes no drive without virtual functions", node.name)
	return ""
}

// reportingCard is a network card of which QEMU reports errors: its e1000e, igb and
// drives have no register to turn that on (QEMU 10.0).
func reportingCard(ctx context.Context) publishedFunction {
	GinkgoHelper()
	for _, card := range publishedFunctions(ctx, "nic") {
		if driver, err := driverOf(ctx, card.address); err == nil && driver == "virtio-pci" {
			return card
		}
	}
	lacks("node %s publishes no network card with driver virtio-pci", node.name)
	return publishedFunction{}
}
