package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
)

// publishedFunction is a PCI function that the node publishes.
type publishedFunction struct {
	name, address, kind string
	zone                int
}

// publishedFunctions are those of the node, of one kind unless that is empty, by
// the names of their devices.
func publishedFunctions(ctx context.Context, kind string) map[string]publishedFunction {
	GinkgoHelper()
	devices, err := nodeDevices(ctx)
	Expect(err).NotTo(HaveOccurred())
	functions := map[string]publishedFunction{}
	for _, device := range devices {
		is, address := attribute(device, driverName+"/kind"), attribute(device, pciBusID)
		zone, err := strconv.Atoi(attribute(device, numaNode))
		if err == nil && is != "" && address != "" && (kind == "" || kind == is) {
			functions[device.Name] = publishedFunction{device.Name, address, is, zone}
		}
	}
	return functions
}

// allocatedFunctions are those of a claim, by request.
func allocatedFunctions(ctx context.Context, claim *resourceapi.ResourceClaim) map[string][]publishedFunction {
	GinkgoHelper()
	published, allocated := publishedFunctions(ctx, ""), map[string][]publishedFunction{}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if function, is := published[result.Device]; is {
			allocated[result.Request] = append(allocated[result.Request], function)
		}
	}
	return allocated
}

// inSysfs is what a file says, or a link leads to, in the folder that the kernel
// has for a PCI function.
func inSysfs(ctx context.Context, address, name string) string {
	GinkgoHelper()
	text, err := observer.Run(ctx, `cd "/sys/bus/pci/devices/$1" && if [ -L "$2" ]; then readlink -f "$2"; else cat "$2"; fi`, address, name)
	Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(text)
}

// hasAddress is the CEL expression that is true for one PCI function.
func hasAddress(address string) string {
	return fmt.Sprintf(`device.attributes["resource.kubernetes.io"].pciBusID == %q`, address)
}

// driverOf is the kernel driver that is bound to a PCI function; "" if none is.
func driverOf(ctx context.Context, address string) (string, error) {
	text, err := observer.Run(ctx, `cd "/sys/bus/pci/devices/$1" && if [ -e driver ]; then basename "$(readlink driver)"; fi`, address)
	return strings.TrimSpace(text), err
}

// rootOf is the PCIe root that the kernel has a function below.
func rootOf(ctx context.Context, address string) string {
	GinkgoHelper()
	path, err := observer.Run(ctx, `readlink -f "/sys/bus/pci/devices/$1"`, address)
	Expect(err).NotTo(HaveOccurred())
	return strings.Split(strings.TrimPrefix(path, "/sys/devices/"), "/")[0]
}

// Classes of PCI functions, as they start in sysfs.
const (
	networkCards = "0x02"
	nvmeDrives   = "0x0108"
)

// setVirtualFunctions has each of the node's functions of a class that can have
// virtual functions have so many, and waits until they are published. It returns the
// addresses of the physical ones.
func setVirtualFunctions(ctx context.Context, class, count string) []string {
	GinkgoHelper()
	text, err := observer.Run(ctx, `cd /sys/bus/pci/devices && for card in */sriov_numvfs; do
		case "$(cat "${card%/*}/class")" in "$2"*) ;; *) continue;; esac
		[ "$(cat "$card")" = "$1" ] || echo "$1" >"/proc/1/root$PWD/$card" || exit
		echo "${card%/*}"
	done`, count, class)
	Expect(err).NotTo(HaveOccurred())
	cards := strings.Fields(text)
	Eventually(ctx, func(g Gomega) {
		virtual := map[string]int{}
		devices, err := nodeDevices(ctx)
		g.Expect(err).NotTo(HaveOccurred())
		for _, device := range devices {
			virtual[attribute(device, driverName+"/physicalFunction")]++
		}
		for _, card := range cards {
			g.Expect(virtual[card]).To(BeEquivalentTo(int(count[0]-'0')), "virtual functions of %s that are published", card)
		}
	}).Should(Succeed())
	return cards
}

// withVirtualFunctions is setVirtualFunctions until the end of the spec. It needs some
// physical functions.
func withVirtualFunctions(ctx context.Context, class, count string, atLeast int) []string {
	GinkgoHelper()
	DeferCleanup(func(ctx context.Context) { setVirtualFunctions(ctx, class, "0") })
	physical := setVirtualFunctions(ctx, class, count)
	if len(physical) < atLeast {
		lacks("node %s has %d functions of class %s with virtual functions, %d are needed", node.name, len(physical), class, atLeast)
	}
	return physical
}

// publishedDrives are the NVMe drives of the node, which needs some.
func publishedDrives(ctx context.Context) map[string]publishedFunction {
	GinkgoHelper()
	drives := publishedFunctions(ctx, "nvme")
	if len(drives) == 0 {
		lacks("node %s publishes no NVMe drives", node.name)
	}
	return drives
}

// podsIn are the pods of a namespace, all of them running.
func podsIn(ctx context.Context, namespace string) (pods []*corev1.Pod) {
	GinkgoHelper()
	list, err := listPods(ctx, namespace)
	Expect(err).NotTo(HaveOccurred())
	for i := range list {
		pods = append(pods, waitRunning(ctx, &list[i]))
	}
	return pods
}
