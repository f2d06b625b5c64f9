package e2e

import (
	"context"
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// withCacheLayout marks specs for machines whose L3 caches are not those of NUMA nodes: make
// e2e-cache runs them.
var withCacheLayout = Label("cache-layout", withOwnBoot)

var _ = Describe("a machine whose caches are not those of NUMA nodes", withCacheLayout, func() {
	It("gives ways of each cache to claims of all zones that lie in it", func(ctx context.Context) {
		caches := cachesInKernel(ctx)
		namespace := createNamespace(ctx, "layout")
		devices, err := nodeDevices(ctx)
		Expect(err).NotTo(HaveOccurred())
		var pods []*corev1.Pod
		for _, device := range devices {
			cache, near := attribute(device, driverName+"/l3"), attribute(device, numaNode)
			if attribute(device, driverName+"/kind") != "zone" || cache == "" {
				continue
			}
			id, err := strconv.Atoi(near)
			Expect(err).NotTo(HaveOccurred(), "NUMA node of %s", device.Name)
			cpus := int64(node.zones[0].threadsPerCore)
			createClaim(ctx, namespace, alike("dra.numa/l3", claimOfDevices(device.Name,
				shareOf("cpus", "zone.dra.numa", map[string]int64{"cpu": cpus}, numaNodeIs(id), fmt.Sprintf(`device.attributes["dra.numa"].l3 == %s`, cache)),
				shareOf("cache", "gold.dra.numa", map[string]int64{"ways": 2}))))
			pods = append(pods, createPod(ctx, namespace, withoutRequests(claimPod(device.Name, request{cpus: cpus}))))
		}
		Expect(len(pods)).To(BeNumerically(">", 2), "zones with CPUs in one cache")
		for i := range pods {
			pods[i] = waitRunning(ctx, pods[i])
		}
		for _, pod := range pods {
			own, groups := groupOf(ctx, pod), readGroups(ctx)
			inCache := caches[own.cache]
			cpus := cpusOfContainer(ctx, pod)
			Expect(cpus.IsSubsetOf(inCache)).To(BeTrue(), "pod %s has CPUs %s, and ways of cache %d of CPUs %s", pod.Name, cpus, own.cache, inCache)
			Expect(own.cpus.Intersection(inCache).String()).To(Equal(cpus.String()), "CPUs of group %s in cache %d", own.name, own.cache)
			Expect(bits.OnesCount64(own.ways[own.cache])).To(Equal(2), "ways %x of cache %d for pod %s", own.ways[own.cache], own.cache, pod.Name)
			for _, other := range groups {
				if other.name != own.name && (other.name == "" || other.cpus.Overlaps(inCache)) {
					Expect(other.ways[own.cache]&own.ways[own.cache]).To(BeZero(), "ways %x of group %q and %x of group %q", other.ways[own.cache], other.name, own.ways[own.cache], own.name)
				}
			}
		}
	})
})

// cachesInKernel returns the CPUs of each L3 cache, by its id.
func cachesInKernel(ctx context.Context) map[int]cpuset.Set {
	GinkgoHelper()
	text, err := observer.Run(ctx, `for cache in /sys/devices/system/cpu/cpu*/cache/index3; do echo "$(cat "$cache/id") $(cat "$cache/shared_cpu_list")"; done | sort -u`)
	Expect(err).NotTo(HaveOccurred())
	caches := map[int]cpuset.Set{}
	for line := range strings.Lines(text) {
		id, list, _ := strings.Cut(strings.TrimSpace(line), " ")
		cache, err := strconv.Atoi(id)
		Expect(err).NotTo(HaveOccurred(), line)
		caches[cache], err = cpuset.Parse(list)
		Expect(err).NotTo(HaveOccurred(), line)
	}
	return caches
}
