package e2e

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

var _ = Describe("a pod that is deleted by force and does not end", ofKernel, func() {
	It("keeps what it has until its processes have ended, also when the driver restarts", func(ctx context.Context) {
		namespace := createNamespace(ctx, "forced")
		for name, config := range map[string]string{"alone": `{"apiVersion": "dra.numa/v1alpha1", "kind": "ZoneConfig"}`, "mixed": `{"apiVersion": "dra.numa/v1alpha1", "kind": "ZoneConfig", "mixed": true}`} {
			By("deleting one: " + name)
			late, cpus := deleteHolder(ctx, namespace, name, config)
			Expect(expectPinned(ctx, snapshot(ctx), late).String()).To(Equal(cpus.String()), "CPUs of the pod that has waited")
			deletePod(ctx, late)
			deleteClaim(ctx, late)
		}
	})
})

// deleteHolder deletes a pod by force that has a whole zone, and whose process does not end. It
// checks that another pod with a claim of the zone waits until the process is killed, also
// when the driver restarts. It returns that pod, which runs then, and the CPUs of the zone.
func deleteHolder(ctx context.Context, namespace, name, config string) (late *corev1.Pod, cpus cpuset.Set) {
	GinkgoHelper()
	zone, cpus := wholeZone(snapshot(ctx))
	whole := request{zone: zone.id, cpus: int64(zone.cpus)}
	stubborn := withoutRequests(claimPod("stubborn-"+name, whole))
	stubborn.Spec.TerminationGracePeriodSeconds = ptr.To[int64](900) // process 1 of a container ignores SIGTERM
	createClaim(ctx, namespace, configured(config, newClaim(stubborn.Name, whole)))
	stubborn = waitRunning(ctx, createPod(ctx, namespace, stubborn))
	process := inKernel(snapshot(ctx), stubborn)
	deleteByForce(ctx, stubborn)
	deleteClaim(ctx, stubborn)

	late = createClaimed(ctx, namespace, withoutRequests(claimPod("late-"+name, whole)), whole)
	expectHeldBack(ctx, late, fmt.Sprintf("cpus %s are held by claim %s/%s until its containers have ended", cpus, namespace, stubborn.Name))
	expectStillRuns(ctx, process.PID)
	killDriver(ctx)
	Consistently(ctx, func(g Gomega) {
		current, err := readPod(ctx, late)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(current.Status.Phase).To(Equal(corev1.PodPending), "pod %s", late.Name)
	}).WithTimeout(limit(reschedule)).Should(Succeed())
	expectStillRuns(ctx, process.PID)
	Expect(observer.Kill(ctx, process.PID)).To(Succeed())
	return waitRunning(ctx, late), cpus
}

var _ = Describe("a pod with a drive that is deleted by force and does not end", withDevices, func() {
	It("keeps the drive until its processes have ended", func(ctx context.Context) {
		namespace := createNamespace(ctx, "forced")
		createClaim(ctx, namespace, claimOfDevices("stubborn", wholeDevice("drive", "nvme."+driverName)))
		stubborn := withoutRequests(claimPod("stubborn", request{}))
		stubborn.Spec.TerminationGracePeriodSeconds = ptr.To[int64](900)
		stubborn = waitRunning(ctx, createPod(ctx, namespace, stubborn))
		drive := allocatedFunctions(ctx, claimOf(ctx, stubborn))["drive"][0]
		process := inKernel(snapshot(ctx), stubborn)
		deleteByForce(ctx, stubborn)
		deleteClaim(ctx, stubborn)
		waiting := createWithSelected(ctx, namespace, "waiting", fmt.Sprintf(`device.attributes["resource.kubernetes.io"].pciBusID == %q`, drive.address))
		expectHeldBack(ctx, waiting, fmt.Sprintf("claim %s/stubborn has PCI function %s", namespace, drive.address))
		expectStillRuns(ctx, process.PID)
		Expect(observer.Kill(ctx, process.PID)).To(Succeed())
		expectNodeOf(ctx, waitRunning(ctx, waiting), drive.address)
	})
})

var _ = Describe("a container that starts again after drives have changed places", withDevices, func() {
	It("has its own drive, and the other one is not given while the first container's device is its own", func(ctx context.Context) {
		namespace := createNamespace(ctx, "swapped")
		byBus := func(name, address string) *corev1.Pod {
			return createWithSelected(ctx, namespace, name, fmt.Sprintf(`device.attributes["resource.kubernetes.io"].pciBusID == %q`, address))
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

// swapDrives has the kernel find two drives again, this one first: it gives it the lower
// number.
func swapDrives(ctx context.Context, first, second string) {
	GinkgoHelper()
	_, err := observer.Run(ctx, `cd /proc/1/root/sys/bus/pci/drivers/nvme && echo "$1" >unbind && echo "$2" >unbind && echo "$1" >bind && sleep 1 && echo "$2" >bind`, first, second)
	Expect(err).NotTo(HaveOccurred())
	Eventually(ctx, func(g Gomega) {
		for _, address := range []string{first, second} {
			text, err := observer.Run(ctx, `ls "/sys/bus/pci/devices/$1/nvme"`, address)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(text).To(ContainSubstring("nvme"), "nodes of drive %s", address)
		}
	}).Should(Succeed())
}

// deleteByForce removes a pod from the API server. Its containers run until their grace
// period has ended.
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
