package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/dra-driver-numa/dra-driver-numa/test/kernel"
)

// What the driver and its keeper may take together while nothing changes.
const (
	idleMemoryBytes = 45 << 20
	idleShare       = 0.08 // of the CPU time of the kubelet: 0.044 to 0.058 were measured, and 0.059 at a load of 37
	idlePods        = 8
	idlePeriod      = time.Minute // the kernel counts in steps of 10 ms
)

var _ = Describe("the idle driver", atLength, func() {
	It("and its keeper need little memory and little of the CPUs", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "idle"), oneCore(ctx)
		core.zone = anyZone
		for i := range idlePods {
			pod := claimPod(fmt.Sprintf("idle-%d", i), core)
			if i%2 == 0 {
				createClaimed(ctx, namespace, pod, core)
			} else {
				createPod(ctx, namespace, plainPod(pod.Name))
			}
		}
		waitRunningPods(ctx, namespace, idlePods)
		expectCheap(ctx, idlePods)
	})
})

// process is a process of the node.
type process struct{ name, argument string }

func (p process) String() string { return strings.TrimSpace(p.name + " " + p.argument) }

var ownProcesses = []process{{driverProcess, ""}, {keeperProcess, keeperArgument}}

// expectCheap compares the CPU time that the driver takes while nothing changes with that
// of the kubelet. Then it looks at the driver's memory: by now the driver has given back what
// it does not use. The pods are those of the namespace of the spec.
func expectCheap(ctx context.Context, pods int) {
	GinkgoHelper()
	Eventually(ctx, func() float64 { return shareWhenIdle(ctx, pods) }).Should(BeNumerically("<=", idleShare), "CPU time of the driver while nothing changes, compared with the kubelet") // what the specs before have begun may still go on
	Eventually(ctx, func() (resident int64) {
		for _, of := range ownProcesses {
			bytes := usage(ctx, of).MemoryBytes
			fmt.Printf("with %d pods, resident memory of %s: %.1f MiB\n", pods, of, float64(bytes)/(1<<20))
			resident += bytes
		}
		return resident
	}).WithPolling(idlePeriod).Should(BeNumerically("<=", idleMemoryBytes), "resident memory of driver and keeper, which gives back once a minute what it does not use")
}

// shareWhenIdle returns the CPU time that the driver takes for a while, as a share of that of
// the kubelet.
func shareWhenIdle(ctx context.Context, pods int) float64 {
	GinkgoHelper()
	kubelet := process{name: "kubelet"}
	before := map[process]time.Duration{}
	all := append([]process{kubelet}, ownProcesses...)
	for _, of := range all {
		before[of] = usage(ctx, of).CPU
	}
	time.Sleep(idlePeriod)
	var ours, kubelets time.Duration
	for _, of := range all {
		spent := usage(ctx, of).CPU - before[of]
		fmt.Printf("with %d pods, %s takes %.1f ms of CPU time each second\n", pods, of, float64(spent.Milliseconds())/idlePeriod.Seconds())
		if of == kubelet {
			kubelets = spent
		} else {
			ours += spent
		}
	}
	share := float64(ours) / float64(kubelets)
	fmt.Printf("with %d pods, the driver takes %.1f %% of the CPU time of the kubelet\n", pods, 100*share)
	return share
}

func usage(ctx context.Context, of process) kernel.Usage {
	GinkgoHelper()
	used, err := observer.Usage(ctx, of.name, of.argument)
	Expect(err).NotTo(HaveOccurred())
	return used
}
