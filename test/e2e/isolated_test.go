package e2e

import (
	"context"
	"fmt"
	"path"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// withIsolatedCPUs marks specs for a node with the boot parameter isolcpus=.
var withIsolatedCPUs = Label("isolcpus", withOwnBoot)

var _ = Describe("a node with isolated CPUs", withIsolatedCPUs, func() {
	It("gives them to claims that ask for them, and to no others", func(ctx context.Context) {
		text, err := observer.Run(ctx, "cat /sys/devices/system/cpu/isolated")
		Expect(err).NotTo(HaveOccurred())
		isolated, err := cpuset.Parse(strings.TrimSpace(text))
		Expect(err).NotTo(HaveOccurred())
		if isolated.IsEmpty() {
			lacks("node %s has no isolated CPUs", node.name)
		}
		s := snapshot(ctx)
		zones := s.ZonesOf(isolated)
		id, _ := zones.First()
		zone := zoneWithID(id)
		inZone, _ := s.Zone(id)
		Expect(zone.cpus).To(BeNumerically("<=", inZone.CPUs.Difference(isolated).Size()), "CPUs that zone %s publishes", zone.device)

		namespace := createNamespace(ctx, "isolated")
		By("filling the zone")
		whole := request{cpus: int64(zone.cpus), zone: id}
		other := waitRunning(ctx, createClaimed(ctx, namespace, withoutRequests(claimPod("other", whole)), whole))
		Expect(expectPinned(ctx, snapshot(ctx), other).Overlaps(isolated)).To(BeFalse(), "isolated CPUs are in a claim that did not ask for them")

		By("asking for isolated CPUs and for memory near them")
		createClaim(ctx, namespace, alike(numaNode, claimOfDevices("poller",
			shareOf("cpus", "isolated.dra.numa", map[string]int64{"cpu": int64(isolated.Size())}),
			shareOf("memory", "zone.dra.numa", map[string]int64{"memory": 64 << 20}))))
		poller := waitRunning(ctx, createPod(ctx, namespace, withoutRequests(claimPod("poller", request{cpus: int64(isolated.Size())}))))
		s = snapshot(ctx)
		process := inKernel(s, poller)
		Expect(process.CPUs.String()).To(Equal(isolated.String()), "CPUs of the container")
		Expect(process.Mems.String()).To(Equal(fmt.Sprint(id)), "memory of the container")
		state, err := observer.ReadCgroup(ctx, process.Cgroup, "cpuset.cpus.partition")
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.TrimSpace(state)).To(Equal("isolated"), "partition of cgroup %s", path.Base(process.Cgroup))
		Eventually(ctx, func(g Gomega) {
			claim, err := readClaim(ctx, namespace, poller.Name)
			g.Expect(err).NotTo(HaveOccurred())
			var said []string
			for _, device := range claim.Status.Devices {
				if condition := meta.FindStatusCondition(device.Conditions, "Exclusive"); condition != nil {
					said = append(said, device.Device+" "+condition.Reason)
				}
			}
			g.Expect(said).To(ConsistOf(fmt.Sprintf("isolated-%d KernelPartition", id), zone.device+" NoCPUs"), "conditions of claim %s", claim.Name)
		}).Should(Succeed())

		By("killing the driver and the container")
		killDriver(ctx)
		Expect(observer.Kill(ctx, process.PID)).To(Succeed())
		poller = waitRestarted(ctx, poller)
		Expect(inKernel(snapshot(ctx), poller).CPUs.String()).To(Equal(isolated.String()), "CPUs of the container after a restart")
	})
})

// zoneWithID returns the published zone of a NUMA node.
func zoneWithID(id int) publishedZone {
	GinkgoHelper()
	for _, zone := range node.zones {
		if zone.id == id {
			return zone
		}
	}
	Fail(fmt.Sprintf("node %s publishes no zone of NUMA node %d", node.name, id))
	return publishedZone{}
}
