package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

var _ = Describe("a node whose caches are divided, and what belongs to no claim", withCache, func() {
	It("has groups that containers of mixed claims join", ofGate, func(ctx context.Context) {
		namespace, usual, cache := createNamespace(ctx, "joined"), poolsOfNode(ctx).Guaranteed.DefaultWays, roomyCache(ctx)
		own := waitRunning(ctx, createWithWays(ctx, namespace, "own", "gold.dra.numa", map[string]int64{"ways": 1}, inCache(cache)))
		mixed := waitRunning(ctx, createConfiguredWays(ctx, namespace, "mixed", `"mixed": true`, inCache(cache)))
		group, process := groupOf(ctx, mixed), inKernel(snapshot(ctx), mixed)
		Expect(groupOfTask(ctx, process.PID)).To(Equal(group.name), "group of the container's process")
		Expect(groupOfTask(ctx, inKernel(snapshot(ctx), own).PID)).To(BeEmpty(), "group of a process that has only CPUs of its own")
		Expect(bits.OnesCount64(group.ways[cache])).To(Equal(usual), "ways %x of group %s", group.ways[cache], group.name)
		Expect(group.cpus.IsSubsetOf(process.CPUs)).To(BeTrue(), "CPUs %s of the group, the container runs on %s", group.cpus, process.CPUs)
		Expect(process.CPUs.Difference(group.cpus).IsEmpty()).To(BeFalse(), "the container runs on no shared CPU")
		for _, other := range readGroups(ctx) {
			if other.name != group.name && (other.name == "" || !other.cpus.IsEmpty()) {
				Expect(other.ways[cache]&group.ways[cache]).To(BeZero(), "ways of group %q and of %s", other.name, group.name)
			}
		}
		root := readGroups(ctx)[""]
		for elsewhere, ways := range group.ways {
			if elsewhere != cache {
				Expect(ways).To(Equal(root.ways[elsewhere]), "ways of group %s in cache %d, where the claim has none", group.name, elsewhere)
			}
		}
		By("moving the process into another group")
		drift := func() string { _, stdout, stderr := ask(ctx, "drift"); return stdout + stderr }
		Eventually(ctx, drift).Should(Equal("no problems found\n"))
		moveTask(ctx, process.PID, "")
		Eventually(ctx, drift).Should(ContainSubstring("task-in-other-group"))
		moveTask(ctx, process.PID, group.name)
		Eventually(ctx, drift).Should(Equal("no problems found\n"))
	})

	It("gives reserved CPUs and everything else ways and limits, and takes all back", func(ctx context.Context) {
		reserved := kubeletReserved(ctx)
		first, _ := reserved.First()
		infra := cpuset.New(first)
		const pools = "cache: {os: {ways: 1, bandwidthPercent: 50}, infra: {ways: 10, cpus: %q, bandwidthPercent: 20}, guaranteed: {ways: 5}}"
		configureNode(ctx, fmt.Sprintf(pools, infra))
		expectGroup(ctx, "", 0x1, 50, nil)
		expectGroup(ctx, "dra-numa.0", 0xffc, 20, &infra)

		By("reserving ways for reserved CPUs")
		configureNode(ctx, "cache: {os: {ways: 1}, reserved: {ways: 2, bandwidthPercent: 35}, guaranteed: {ways: 5}}")
		expectGroup(ctx, "", 0x1, 50, nil) // without a limit, that of the root group stays
		expectGroup(ctx, "dra-numa.65537", 0x6, 40, &reserved)

		By("giving reserved CPUs that the operator names ways of their own")
		const groups = "cache: {os: {ways: 1}, groups: [{name: e2e, cpus: %q, ways: 2, bandwidthPercent: 35}], guaranteed: {ways: 5}%s}"
		configureNode(ctx, fmt.Sprintf(groups, reserved, ""))
		expectGroup(ctx, "dra-numa.e2e", 0x6, 40, &reserved)
		Eventually(ctx, func() []string { return ourGroups(ctx) }).ShouldNot(ContainElement("dra-numa.65537"), "the group of reserved")

		By("giving everything back")
		configureNode(ctx, fmt.Sprintf(groups, reserved, ", restore: true"))
		expectGroup(ctx, "", 0xfff, 100, nil)
		Eventually(ctx, func() []string { return ourGroups(ctx) }).Should(BeEmpty(), "groups of the driver")
	})

	It("gives everything back when the pools are taken away and no claim has ways any more", ofGate, atLength, func(ctx context.Context) {
		namespace, pools, cache := createNamespace(ctx, "restore"), poolsOfNode(ctx), roomyCache(ctx)
		pod := waitRunning(ctx, createWithWays(ctx, namespace, "last", "gold.dra.numa", nil, inCache(cache)))
		pools.Restore = true
		text, err := json.Marshal(pools)
		Expect(err).NotTo(HaveOccurred())
		configureNode(ctx, "cache: "+string(text))
		Eventually(ctx, func() ([]resourceapi.Device, error) {
			devices, err := nodeDevices(ctx)
			return slices.DeleteFunc(devices, func(d resourceapi.Device) bool {
				return attribute(d, deviceclasses.AttributeKind) != deviceclasses.KindCache
			}), err
		}).Should(BeEmpty(), "caches that are published")
		expectWays(ctx, pod, pools.Guaranteed.DefaultWays, 100)

		By("ending the last claim")
		deletePod(ctx, pod)
		deleteClaim(ctx, pod)
		expectGroup(ctx, "", allWays(ctx), 100, nil)
		Eventually(ctx, func() []string { return ourGroups(ctx) }).Should(BeEmpty(), "groups of the driver")
	})

	It("keeps a claim pending while no class is left, and says so", func(ctx context.Context) {
		configureNode(ctx, "cache: {os: {ways: 2}, guaranteed: {ways: 8, classes: 2, defaultWays: 1}}")
		namespace := createNamespace(ctx, "classes")
		first := waitRunning(ctx, createWithWays(ctx, namespace, "first", "gold.dra.numa", nil, inCache1))
		waitRunning(ctx, createWithWays(ctx, namespace, "second", "gold.dra.numa", nil, inCache1))
		third := createWithWays(ctx, namespace, "third", "gold.dra.numa", nil, inCache1)
		expectPending(ctx, third, noDevices)
		Expect(answer(ctx, "explain", "pod", third.Name, "-n", namespace)).To(ContainSubstring("classes"))
		Expect(eventMessages(ctx, namespace, third.Name)).NotTo(ContainElement(HavePrefix("FailedPrepare")))
		By("ending the first")
		deletePod(ctx, first)
		deleteClaim(ctx, first)
		Expect(bits.OnesCount64(groupOf(ctx, waitRunning(ctx, third)).ways[1])).To(Equal(1))
	})

	It("mounts resctrl on the host where it is not mounted", func(ctx context.Context) {
		namespace := createNamespace(ctx, "mount")
		stopDriver(ctx)
		_, err := observer.Run(ctx, "nsenter -t 1 -m umount /sys/fs/resctrl")
		Expect(err).NotTo(HaveOccurred())
		mounts := func() (string, error) { return observer.Run(ctx, "grep resctrl /proc/1/mounts || true") }
		Expect(mounts()).To(BeEmpty(), "resctrl on the host")
		startDriver(ctx)
		Expect(mounts()).To(HavePrefix("resctrl /sys/fs/resctrl resctrl "))
		expectWays(ctx, waitRunning(ctx, createWithWays(ctx, namespace, "mounted", "gold.dra.numa", nil, inCache0)), 2, 100)
		By("starting again where it is mounted")
		killDriver(ctx)
		Expect(mounts()).To(HavePrefix("resctrl /sys/fs/resctrl resctrl "))
	})

	It("gives a claim its ways again when an administrator mounts resctrl again", func(ctx context.Context) {
		namespace := createNamespace(ctx, "remount")
		pod := waitRunning(ctx, createWithWays(ctx, namespace, "remounted", "gold.dra.numa", map[string]int64{"ways": 3, "bandwidthPercent": 50}, inCache0))
		expectWays(ctx, pod, 3, 50)
		remount(ctx)
		Eventually(ctx, func(g Gomega) { checkWays(ctx, g, pod, 3, 50) }).Should(Succeed())
	})

	It("limits megabytes per second when an administrator mounts resctrl with mba_MBps", func(ctx context.Context) {
		namespace, cache := createNamespace(ctx, "mbps"), roomyCache(ctx)
		device := fmt.Sprintf("cache-%d-guaranteed", cache)
		percent := waitRunning(ctx, createWithWays(ctx, namespace, "percent", "gold.dra.numa", map[string]int64{"ways": 1, "bandwidthPercent": 50}, inCache(cache)))
		expectWays(ctx, percent, 1, limitInKernel(ctx, 50))
		DeferCleanup(func(ctx context.Context) {
			remount(ctx)
			waitPublished(ctx, device, "percent", counts(deviceclasses.CapacityBandwidthPercent))
		})
		remount(ctx, "-o", "mba_MBps")
		Expect(observer.Run(ctx, "grep resctrl /proc/1/mounts")).To(ContainSubstring("mba_MBps"))
		waitPublished(ctx, device, "a taint, because a claim has its limit in percent", tainted)
		Eventually(ctx, func(g Gomega) { checkWays(ctx, g, percent, 1, noLimitMBps) }).Should(Succeed(), "the claim keeps its ways")

		By("ending that claim")
		deletePod(ctx, percent)
		deleteClaim(ctx, percent)
		waitPublished(ctx, device, "megabytes per second", counts(deviceclasses.CapacityBandwidthMBps))
		megabytes := waitRunning(ctx, createWithWays(ctx, namespace, "megabytes", "gold.dra.numa", map[string]int64{"ways": 2, "bandwidthMBps": 5001}, inCache(cache)))
		expectWays(ctx, megabytes, 2, 5001)
		group := groupOf(ctx, megabytes).name
		deletePod(ctx, megabytes)
		deleteClaim(ctx, megabytes)
		Eventually(ctx, func() int { return readGroups(ctx)[group].bandwidth[cache] }).Should(Equal(noLimitMBps), "limit after the claim")
	})

	// The kernel does not take the last CPU of a partition offline, so the claim has none.
	It("gives a claim its ways again when CPUs come back, also all of a cache", func(ctx context.Context) {
		namespace := createNamespace(ctx, "hotplug")
		pod := waitRunning(ctx, createConfiguredWays(ctx, namespace, "hotplug", `"partition": "none"`, inCache1))
		group := groupOf(ctx, pod)
		Expect(bits.OnesCount64(group.ways[1])).To(Equal(2), "ways %x", group.ways[1])
		text, err := observer.Run(ctx, "cat /sys/devices/system/node/node1/cpulist")
		Expect(err).NotTo(HaveOccurred())
		all, err := cpuset.Parse(strings.TrimSpace(text))
		Expect(err).NotTo(HaveOccurred())
		first, _ := group.cpus.First()
		for what, gone := range map[string]cpuset.Set{"one CPU": cpuset.New(first), "all CPUs of the cache": all} {
			By("taking offline " + what)
			DeferCleanup(func(ctx context.Context) { Expect(observer.SetOnline(ctx, all, true)).To(Succeed()) })
			Expect(observer.SetOnline(ctx, gone, false)).To(Succeed())
			Eventually(ctx, func() string { return readGroups(ctx)[group.name].cpus.String() }).Should(Equal(group.cpus.Difference(gone).String()), "CPUs of the group")
			Expect(observer.SetOnline(ctx, gone, true)).To(Succeed())
			Eventually(ctx, func(g Gomega) {
				now, root := readGroups(ctx)[group.name], readGroups(ctx)[""]
				g.Expect(now.cpus.String()).To(Equal(group.cpus.String()), "CPUs of the group")
				g.Expect(bits.OnesCount64(now.ways[1])).To(Equal(2), "ways %x of the claim", now.ways[1])
				g.Expect(root.ways[1]&now.ways[1]).To(BeZero(), "ways %x of the root group and %x of the claim", root.ways[1], now.ways[1])
			}).Should(Succeed(), what)
		}
	})
})

// noLimitMBps is the limit of a group without one: MBA_MAX_MBPS in include/linux/resctrl.h.
const noLimitMBps = math.MaxUint32

// remount mounts resctrl on the host again, with options of mount. It is not mounted if the
// kernel has refused the options of the last mount.
func remount(ctx context.Context, options ...string) {
	GinkgoHelper()
	_, err := observer.Run(ctx, `nsenter -t 1 -m umount /sys/fs/resctrl; nsenter -t 1 -m mount -t resctrl "$@" resctrl /sys/fs/resctrl`, options...)
	Expect(err).NotTo(HaveOccurred())
}

// counts returns what reports whether a device has bandwidth in a unit.
func counts(unit resourceapi.QualifiedName) func(resourceapi.Device) bool {
	return func(device resourceapi.Device) bool {
		_, has := device.Capacity[unit]
		return has
	}
}

const inCache1 = `device.attributes["dra.numa"].l3 == 1`

// createConfiguredWays creates a pod with a core of a cache and the default of its
// guaranteed pool. The fields are those of a ZoneConfig, in JSON.
func createConfiguredWays(ctx context.Context, namespace, name, fields, where string) *corev1.Pod {
	GinkgoHelper()
	cpus := oneCore(ctx).cpus
	createClaim(ctx, namespace, configured(configOf(deviceclasses.ZoneConfigKind, fields), alike("dra.numa/l3", claimOfDevices(name,
		shareOf("cpus", "zone.dra.numa", map[string]int64{"cpu": cpus}), shareOf("cache", "gold.dra.numa", nil, where)))))
	return createPod(ctx, namespace, withoutRequests(claimPod(name, request{cpus: cpus})))
}

// groupOfTask returns the group that the kernel says a process is in; empty for the root
// group.
func groupOfTask(ctx context.Context, pid int) string {
	GinkgoHelper()
	text, err := observer.Run(ctx, `cat "/proc/$1/cpu_resctrl_groups"`, fmt.Sprint(pid))
	Expect(err).NotTo(HaveOccurred())
	group, found := strings.CutPrefix(strings.Split(text, "\n")[0], "res:")
	Expect(found).To(BeTrue(), text)
	return strings.TrimPrefix(group, "/")
}

// moveTask puts a process into a group, or into the root group.
func moveTask(ctx context.Context, pid int, group string) {
	GinkgoHelper()
	_, err := observer.Run(ctx, `echo "$1" >"$2/$3/tasks"`, fmt.Sprint(pid), resctrlMount, group)
	Expect(err).NotTo(HaveOccurred())
}

// expectGroup waits until a group has ways and a limit in each cache, and CPUs.
func expectGroup(ctx context.Context, name string, ways uint64, bandwidth int, cpus *cpuset.Set) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		group, found := readGroups(ctx)[name]
		g.Expect(found).To(BeTrue())
		for cache := range group.ways {
			g.Expect(group.ways[cache]).To(Equal(ways), "ways %x of cache %d", group.ways[cache], cache)
			g.Expect(group.bandwidth[cache]).To(Equal(bandwidth), "bandwidth of cache %d", cache)
		}
		if cpus != nil {
			g.Expect(group.cpus.String()).To(Equal(cpus.String()), "CPUs")
		}
	}).Should(Succeed(), "group %q", name)
}

// ourGroups returns the names of the driver's groups.
func ourGroups(ctx context.Context) (names []string) {
	for name := range readGroups(ctx) {
		if strings.HasPrefix(name, "dra-numa.") {
			names = append(names, name)
		}
	}
	return names
}
