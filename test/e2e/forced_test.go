package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// The kinds of claims with CPUs, by a word for names.
var zoneConfigs = map[string]string{
	"alone": `{"apiVersion": "dra.numa/v1alpha1", "kind": "ZoneConfig"}`,
	"mixed": `{"apiVersion": "dra.numa/v1alpha1", "kind": "ZoneConfig", "mixed": true}`,
}

var _ = Describe("a pod that is deleted by force and does not end", ofKernel, func() {
	It("keeps what it has until its processes have ended, also when the driver restarts", func(ctx context.Context) {
		for _, late := range deleteHolders(ctx, "alone", "mixed") {
			Expect(expectPinned(ctx, snapshot(ctx), late.pod).String()).To(Equal(late.cpus.String()), "CPUs of pod %s, which has waited", late.pod.Name)
		}
	})
})

// held is a pod, and the CPUs of the zone that it wants.
type held struct {
	pod     *corev1.Pod
	cpus    cpuset.Set
	process int // of the pod that has them
	claim   string
}

// deleteHolders deletes pods by force whose processes do not end. Each has a whole zone, and a
// claim of one of zoneConfigs. It checks that other pods with claims of these zones wait until
// the processes are killed, also when the driver restarts. It returns these pods, which run
// then.
func deleteHolders(ctx context.Context, configs ...string) (waiting []held) {
	GinkgoHelper()
	namespace, s := createNamespace(ctx, "forced"), snapshot(ctx)
	var whole []request
	for _, zone := range node.zones {
		if machineZone, ok := s.Zone(zone.id); ok && zone.cpus == machineZone.CPUs.Size() {
			whole = append(whole, request{zone: zone.id, cpus: int64(zone.cpus)})
		}
	}
	if len(whole) < len(configs) {
		lacks("node %s publishes %d whole zones, %d are needed", node.name, len(whole), len(configs))
	}
	for i, name := range configs {
		stubborn := withoutRequests(claimPod("stubborn-"+name, whole[i]))
		createClaim(ctx, namespace, configured(zoneConfigs[name], newClaim(stubborn.Name, whole[i])))
		stubborn = waitRunning(ctx, createPod(ctx, namespace, stubborn))
		machineZone, _ := s.Zone(whole[i].zone)
		waiting = append(waiting, held{cpus: machineZone.CPUs, process: inKernel(snapshot(ctx), stubborn).PID, claim: namespace + "/" + stubborn.Name})
		stopShim(ctx, waiting[i].process)
		deleteByForce(ctx, stubborn)
		deleteClaim(ctx, stubborn)
	}
	for i, name := range configs {
		waiting[i].pod = createClaimed(ctx, namespace, withoutRequests(claimPod("late-"+name, whole[i])), whole[i])
	}
	for _, late := range waiting {
		expectHeldBack(ctx, late.pod, fmt.Sprintf("cpus %s are held by claim %s until its containers have ended", late.cpus, late.claim))
	}
	killDriver(ctx)
	Consistently(ctx, func(g Gomega) {
		for _, late := range waiting {
			current, err := readPod(ctx, late.pod)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(current.Status.Phase).To(Equal(corev1.PodPending), "pod %s", late.pod.Name)
		}
	}).WithTimeout(limit(reschedule)).Should(Succeed())
	for _, late := range waiting {
		expectStillRuns(ctx, late.process)
		endProcess(ctx, late.process)
	}
	for i := range waiting {
		waiting[i].pod = waitRunning(ctx, waiting[i].pod)
	}
	return waiting
}

var _ = Describe("a pod with a drive that is deleted by force and does not end", withDevices, func() {
	It("keeps the drive until its processes have ended", func(ctx context.Context) {
		namespace := createNamespace(ctx, "forced")
		createClaim(ctx, namespace, claimOfDevices("stubborn", wholeDevice("drive", "nvme."+driverName)))
		stubborn := withoutRequests(claimPod("stubborn", request{}))
		stubborn = waitRunning(ctx, createPod(ctx, namespace, stubborn))
		drive := allocatedFunctions(ctx, claimOf(ctx, stubborn))["drive"][0]
		process := inKernel(snapshot(ctx), stubborn)
		stopShim(ctx, process.PID)
		deleteByForce(ctx, stubborn)
		deleteClaim(ctx, stubborn)
		waiting := createWithSelected(ctx, namespace, "waiting", hasAddress(drive.address))
		expectHeldBack(ctx, waiting, fmt.Sprintf("claim %s/stubborn has PCI function %s", namespace, drive.address))
		expectStillRuns(ctx, process.PID)
		endProcess(ctx, process.PID)
		expectNodeOf(ctx, waitRunning(ctx, waiting), drive.address)
	})
})

var _ = Describe("a container that starts again after drives have changed places", withDevices, func() {
	It("has its own drive, and the other one is not given while the first container's device is its own", func(ctx context.Context) {
		namespace := createNamespace(ctx, "swapped")
		byBus := func(name, address string) *corev1.Pod {
			return createWithSelected(ctx, namespace, name, hasAddress(address))
		}
		var addresses []string
		for _, drive := range publishedDrives(ctx) {
			if drive.zone == 1 {
				addresses = append(addresses, drive.address)
			}
		}
		if len(addresses) < 2 {
			lacks("NUMA node 1 of node %s has %d drives, 2 are needed", node.name, len(addresses))
		}
		slices.Sort(addresses)
		one, two := addresses[0], addresses[1]
		first := waitRunning(ctx, byBus("first", one))
		before := driveNodes(ctx, inKernel(snapshot(ctx), first).PID)
		expectNodeOf(ctx, first, one)
		DeferCleanup(swapDrives, one, two)
		swapDrives(ctx, two, one)
		Expect([]string{controllerOf(ctx, two)}).To(Equal(before), "the node of the second drive is now what the first one had")

		Expect(observer.Kill(ctx, inKernel(snapshot(ctx), first).PID)).To(Succeed())
		second := byBus("second", two)
		first = waitRestarted(ctx, first)
		expectNodeOf(ctx, first, one)
		expectHeldBack(ctx, second, fmt.Sprintf("its device nodes may be open in containers: claim %s/first has PCI function %s", namespace, one))
		deletePod(ctx, first)
		expectNodeOf(ctx, waitRunning(ctx, second), two)
	})
})

// swapDrives has the kernel find two drives again, so that the first one has the number that the
// second one had. The kernel gives the lowest number that is free, and a drive's own is free only
// when nothing has its old device open anymore, which may be after it was found again. So it is
// tried again, and the drives are found in the other order, should a lower number be free.
func swapDrives(ctx context.Context, first, second string) {
	GinkgoHelper()
	want := controllerOf(ctx, second)
	order := []string{first, second}
	Eventually(ctx, func() (string, error) {
		_, err := observer.Run(ctx, `cd /proc/1/root/sys/bus/pci/drivers/nvme
for address in "$1" "$2"; do test ! -e "$address" || echo "$address" >unbind; done
echo "$1" >bind && sleep 1 && echo "$2" >bind`, order...)
		if err != nil {
			return "", err
		}
		slices.Reverse(order)
		controller, err := observer.Run(ctx, `ls "/sys/bus/pci/devices/$1/nvme"`, first)
		return strings.TrimSpace(controller), err
	}).Should(Equal(want), "controller of drive %s, as drive %s had it", first, second)
}

// stopShim stops the parent of a container's process until the end of the spec, as if the
// runtime hung: the kubelet gives a pod that is deleted by force one second, whatever its
// grace period is, and cannot end the container then.
func stopShim(ctx context.Context, pid int) {
	GinkgoHelper()
	if runtimeProcess(ctx) != "containerd" {
		Skip("only containerd ends containers through the parent of their process")
	}
	DeferCleanup(func(ctx context.Context) {
		_, err := observer.Run(ctx, `for shim in $(pgrep containerd-shim); do kill -CONT "$shim"; done`)
		Expect(err).NotTo(HaveOccurred())
	})
	_, err := observer.Run(ctx, `kill -STOP "$(awk '/^PPid:/ { print $2 }' "/proc/$1/status")"`, fmt.Sprint(pid))
	Expect(err).NotTo(HaveOccurred())
}

// endProcess kills a container's process, and lets the runtime see that.
func endProcess(ctx context.Context, pid int) {
	GinkgoHelper()
	_, err := observer.Run(ctx, `shim=$(awk '/^PPid:/ { print $2 }' "/proc/$1/status") && kill -KILL "$1" && kill -CONT "$shim"`, fmt.Sprint(pid))
	Expect(err).NotTo(HaveOccurred())
}

// deleteByForce removes a pod from the API server.
func deleteByForce(ctx context.Context, pod *corev1.Pod) {
	GinkgoHelper()
	Expect(cluster.Kubernetes.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})).To(Succeed())
	waitGone(ctx, pod)
}

// expectHeldBack waits until an event says why the kubelet cannot prepare a claim of a pod.
func expectHeldBack(ctx context.Context, pod *corev1.Pod, why string) {
	GinkgoHelper()
	Eventually(ctx, func() ([]string, error) { return eventMessages(ctx, pod.Namespace, pod.Name) }).
		Should(ContainElement(ContainSubstring(why)), "events of pod %s", pod.Name)
}

func expectStillRuns(ctx context.Context, pid int) {
	GinkgoHelper()
	_, err := observer.Run(ctx, `test -d "/proc/$1"`, fmt.Sprint(pid))
	Expect(err).NotTo(HaveOccurred(), "process %d has ended", pid)
}
