package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/demo"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// withCache marks specs for a node whose kernel has resctrl: make e2e-cache runs them.
var withCache = Label("cache", withOwnBoot)

// resctrlMount is where the host has resctrl, as the observer sees it.
const resctrlMount = "/proc/1/root/sys/fs/resctrl"

var _ = Describe("a node whose caches are divided", withCache, func() {
	It("has resctrl mounted on the host, with every L3 cache of its CPUs", ofGate, func(ctx context.Context) {
		root, pools := readGroups(ctx)[""], poolsOfNode(ctx)
		ids, err := observer.Run(ctx, "sort -n -u /sys/devices/system/cpu/cpu*/cache/index3/id")
		Expect(err).NotTo(HaveOccurred())
		var have []string
		for id := range root.ways {
			have = append(have, strconv.Itoa(id))
		}
		Expect(have).To(ConsistOf(strings.Fields(ids)), "L3 caches of the root group")
		for id, ways := range root.ways {
			Expect(ways).To(BeEquivalentTo(1<<pools.OS.Ways-1), "ways of everything else in cache %d", id)
		}
	})

	It("gives claims their ways and limits, until none are left", ofGate, func(ctx context.Context) {
		namespace, pool, cache := createNamespace(ctx, "ways"), poolsOfNode(ctx).Guaranteed, inCache(roomyCache(ctx))
		rest := pool.Ways - pool.DefaultWays
		first := createWithWays(ctx, namespace, "first", "gold.dra.numa", map[string]int64{"ways": int64(rest), "bandwidthPercent": 35}, cache)
		second := createWithWays(ctx, namespace, "second", "gold.dra.numa", nil, cache) // the default of the pool
		first, second = waitRunning(ctx, first), waitRunning(ctx, second)
		expectWays(ctx, first, rest, limitInKernel(ctx, 35))
		expectWays(ctx, second, pool.DefaultWays, 100)
		third := createWithWays(ctx, namespace, "third", "gold.dra.numa", map[string]int64{"ways": int64(rest)}, cache)
		expectPending(ctx, third, noDevices)

		By("ending the first")
		deletePod(ctx, first)
		deleteClaim(ctx, first)
		third = waitRunning(ctx, third)
		expectWays(ctx, third, rest, 100)
		expectWays(ctx, second, pool.DefaultWays, 100)
	})

	It("grows and shrinks the ways of best-effort claims", func(ctx context.Context) {
		namespace := createNamespace(ctx, "besteffort")
		first := waitRunning(ctx, createWithWays(ctx, namespace, "first", "silver.dra.numa", nil, inCache0))
		expectWays(ctx, first, 3, 100)
		second := waitRunning(ctx, createWithWays(ctx, namespace, "second", "silver.dra.numa", nil, inCache0))
		expectWays(ctx, first, 2, 100)
		expectWays(ctx, second, 1, 100)
		deletePod(ctx, second)
		deleteClaim(ctx, second)
		Eventually(ctx, func() int { return bits.OnesCount64(groupOf(ctx, first).ways[0]) }).Should(Equal(3), "ways of the claim that is left")
	})

	It("gives the members of the shared pool the same ways", func(ctx context.Context) {
		namespace := createNamespace(ctx, "shared")
		first := createWithWays(ctx, namespace, "first", "bronze.dra.numa", nil, inCache0)
		second := createWithWays(ctx, namespace, "second", "bronze.dra.numa", nil, inCache0)
		first, second = waitRunning(ctx, first), waitRunning(ctx, second)
		one, other := groupOf(ctx, first), groupOf(ctx, second)
		Expect(one.name).To(Equal(other.name))
		Expect(one.ways[0]).To(BeEquivalentTo(0xc00))
		both := cpusOfContainer(ctx, first).Union(cpusOfContainer(ctx, second))
		Expect(groupOf(ctx, first).cpus.String()).To(Equal(both.String()))
	})

	It("gives a claim the same number of ways again, whatever happens to the kernel's groups", func(ctx context.Context) {
		namespace := createNamespace(ctx, "kept")
		pod := waitRunning(ctx, createWithWays(ctx, namespace, "kept", "gold.dra.numa", map[string]int64{"ways": 3, "bandwidthPercent": 50}, inCache0))
		expectWays(ctx, pod, 3, 50)
		group := groupOf(ctx, pod).name
		for what, command := range map[string]string{
			"another mask":       "echo L3:0=3f >$1/schemata",
			"another limit":      "echo MB:0=90 >$1/schemata",
			"no CPUs":            "echo >$1/cpus_list",
			"the group removed":  "rmdir $1",
			"the root group":     "echo L3:0=fff >$1/../schemata",
			"CPUs of all caches": "echo 0-15 >$1/../cpus_list",
		} {
			By("writing " + what)
			_, err := observer.Run(ctx, command, resctrlMount+"/"+group)
			Expect(err).NotTo(HaveOccurred(), what)
			Eventually(ctx, func(g Gomega) { checkWays(ctx, g, pod, 3, 50) }).Should(Succeed(), what)
		}

		By("killing the driver while its groups change")
		Expect(observer.KillNamed(ctx, driverProcess)).To(Succeed())
		_, err := observer.Run(ctx, "echo L3:0=3f >$1/schemata; echo >$1/cpus_list", resctrlMount+"/"+group)
		Expect(err).NotTo(HaveOccurred())
		waitDriverReady(ctx)
		Eventually(ctx, func(g Gomega) { checkWays(ctx, g, pod, 3, 50) }).Should(Succeed())

		By("restarting the node")
		Expect(observer.Reboot(ctx)).To(Succeed())
		pod = waitRestarted(ctx, pod)
		waitDriverReady(ctx)
		expectWays(ctx, pod, 3, 50)
	})

	It("runs the manifests in demo/cache", func(ctx context.Context) {
		namespace := createNamespace(ctx, "demo-cache")
		manifests, err := fs.Sub(demo.Caches, "cache")
		Expect(err).NotTo(HaveOccurred())
		Expect(cluster.Apply(ctx, manifests, namespace)).To(Succeed())
		pods := podsIn(ctx, namespace)
		Expect(pods).NotTo(BeEmpty())
		for _, pod := range pods {
			own := groupOf(ctx, waitRunning(ctx, pod))
			Expect(own.cpus.String()).To(Equal(cpusOfContainer(ctx, pod).String()))
			Expect(bits.OnesCount64(own.ways[own.cache])).To(Equal(3), "ways %x of group %s", own.ways[own.cache], own.name)
			Expect(own.bandwidth[own.cache]).To(Equal(50), "bandwidth of group %s", own.name)
		}
	})

	It("refuses ways of another cache than that of the CPUs", func(ctx context.Context) {
		namespace := createNamespace(ctx, "apart")
		createClaim(ctx, namespace, claimOfDevices("apart",
			shareOf("cpus", "zone.dra.numa", map[string]int64{"cpu": 2}, numaNodeIs(1)), shareOf("cache", "gold.dra.numa", nil, inCache0)))
		pod := createPod(ctx, namespace, withoutRequests(claimPod("apart", request{cpus: 2})))
		Eventually(ctx, eventMessages).WithArguments(namespace, pod.Name).Should(ContainElement(ContainSubstring("add the constraint matchAttribute dra.numa/l3")))
	})
})

const inCache0 = `device.attributes["dra.numa"].l3 == 0`

func numaNodeIs(id int) string {
	return fmt.Sprintf(`device.attributes["resource.kubernetes.io"].?numaNode.orValue(-1) == %d`, id)
}

// createWithWays creates a pod with a CPU, and amounts of the cache of that CPU: a cache may
// be that of two cores.
func createWithWays(ctx context.Context, namespace, name, class string, amounts map[string]int64, where ...string) *corev1.Pod {
	GinkgoHelper()
	createClaim(ctx, namespace, alike("dra.numa/l3", claimOfDevices(name,
		shareOf("cpus", "zone.dra.numa", map[string]int64{"cpu": 1}), shareOf("cache", class, amounts, where...))))
	return createPod(ctx, namespace, withoutRequests(claimPod(name, request{cpus: 1})))
}

// expectWays checks in the kernel that a claim has a number of ways of a cache for its CPUs,
// which nothing else has, and a limit of bandwidth.
func expectWays(ctx context.Context, pod *corev1.Pod, ways, bandwidth int) {
	GinkgoHelper()
	checkWays(ctx, Default, pod, ways, bandwidth)
}

func checkWays(ctx context.Context, g Gomega, pod *corev1.Pod, ways, bandwidth int) {
	checkGroup(ctx, g, statusOfCache(ctx, pod), cpusOfContainer(ctx, pod), ways, bandwidth)
}

// checkGroup is checkWays for what the status of a claim says of one cache, and the CPUs that
// it is for.
func checkGroup(ctx context.Context, g Gomega, said deviceclasses.CacheStatus, cpus cpuset.Set, ways, bandwidth int) {
	all := readGroups(ctx)
	own, found := all[said.Group]
	g.Expect(found).To(BeTrue(), "the kernel has no group %s", said.Group)
	mask := own.ways[said.L3]
	g.Expect(own.cpus.String()).To(Equal(cpus.String()), "CPUs of group %s and of the container", own.name)
	g.Expect(bits.OnesCount64(mask)).To(Equal(ways), "ways %x of group %s", mask, own.name)
	g.Expect(own.bandwidth[said.L3]).To(Equal(bandwidth), "bandwidth of group %s", own.name)
	for _, other := range all {
		if other.name != own.name && (other.name == "" || !other.cpus.IsEmpty()) {
			g.Expect(other.ways[said.L3]&mask).To(BeZero(), "ways %x of group %q and %x of group %q", other.ways[said.L3], other.name, mask, own.name)
		}
	}
}

// cpusOfContainer returns the CPUs that the kernel lets the pod's container run on.
func cpusOfContainer(ctx context.Context, pod *corev1.Pod) cpuset.Set {
	GinkgoHelper()
	return inKernel(snapshot(ctx), pod).CPUs
}

// groupOf returns the group that the status of a pod's claim names.
func groupOf(ctx context.Context, pod *corev1.Pod) cacheGroup {
	GinkgoHelper()
	said := statusOfCache(ctx, pod)
	group, found := readGroups(ctx)[said.Group]
	Expect(found).To(BeTrue(), "the kernel has no group %s", said.Group)
	group.cache = said.L3
	return group
}

// statusOfCache returns what the status of a pod's claim says of its only cache.
func statusOfCache(ctx context.Context, pod *corev1.Pod) deviceclasses.CacheStatus {
	GinkgoHelper()
	return slices.Collect(maps.Values(statusOfCaches(ctx, pod, 1)))[0]
}

// statusOfCaches waits until the status of a pod's claim says something of so many caches, and
// returns that by the request for the CPUs.
func statusOfCaches(ctx context.Context, pod *corev1.Pod, count int) map[string]deviceclasses.CacheStatus {
	GinkgoHelper()
	claim := pod.Name
	if len(pod.Status.ResourceClaimStatuses) > 0 {
		claim = onlyClaim(ctx, pod).Name
	}
	said := map[string]deviceclasses.CacheStatus{}
	Eventually(ctx, func(g Gomega) {
		current, err := readClaim(ctx, pod.Namespace, claim)
		g.Expect(err).NotTo(HaveOccurred())
		for _, device := range current.Status.Devices {
			status, err := deviceclasses.ReadShareStatus(device.Data.Raw)
			g.Expect(err).NotTo(HaveOccurred())
			if status.Cache != nil {
				said[status.Cache.Request] = *status.Cache
			}
		}
		g.Expect(said).To(HaveLen(count), "caches in the status of claim %s", claim)
	}).Should(Succeed())
	return said
}

// cacheGroup is a group of resctrl as the kernel shows it.
type cacheGroup struct {
	name      string // empty for the root group
	cpus      cpuset.Set
	ways      map[int]uint64 // by L3 cache
	bandwidth map[int]int
	cache     int // of the claim that groupOf was asked about
}

// readGroups returns the groups of the kernel by name.
func readGroups(ctx context.Context) map[string]cacheGroup {
	GinkgoHelper()
	text, err := observer.Run(ctx, `cd "$1" && for schemata in schemata */schemata; do [ -e "$schemata" ] || continue
		group=$(dirname "$schemata"); echo "group ${group#.}"; echo "cpus $(cat "$group/cpus_list")"; cat "$schemata"; done`, resctrlMount)
	Expect(err).NotTo(HaveOccurred())
	groups := make(map[string]cacheGroup)
	var now cacheGroup
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if name, found := strings.CutPrefix(line, "group"); found {
			now = cacheGroup{name: strings.TrimSpace(name), ways: map[int]uint64{}, bandwidth: map[int]int{}}
		} else if list, found := strings.CutPrefix(line, "cpus"); found {
			now.cpus, err = cpuset.Parse(strings.TrimSpace(list))
			Expect(err).NotTo(HaveOccurred(), line)
		} else if resource, values, found := strings.Cut(line, ":"); found && slices.Contains([]string{"L3", "MB"}, resource) {
			for value := range strings.SplitSeq(values, ";") {
				id, amount, _ := strings.Cut(value, "=")
				cache, err := strconv.Atoi(strings.TrimSpace(id))
				Expect(err).NotTo(HaveOccurred(), line)
				if resource == "L3" {
					now.ways[cache], err = strconv.ParseUint(amount, 16, 64)
				} else {
					now.bandwidth[cache], err = strconv.Atoi(strings.TrimSpace(amount))
				}
				Expect(err).NotTo(HaveOccurred(), line)
			}
		}
		groups[now.name] = now
	}
	return groups
}
