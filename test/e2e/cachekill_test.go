package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// stateOfWays prints all that the driver writes for a claim with ways: its record, its CDI
// spec, and its group with ways and CPUs. One process reads all, so that few steps go by
// between two looks.
const stateOfWays = `resctrl="$root/sys/fs/resctrl"
	echo "$resctrl"/* /host/cdi/*; cat "$root/var/lib/kubelet/plugins/dra.numa/checkpoint.json" "$resctrl"/*/schemata "$resctrl"/*/cpus_list`

// killsOfAClaim is how often a spec kills the driver while a claim begins, and again while it
// ends. Each time, the kubelet waits longer before it starts the driver again.
const killsOfAClaim = 4

var _ = Describe("a claim with ways whose driver is killed after each step", withCache, func() {
	It("has its ways in the end, and leaves nothing when it is deleted", ofGate, atLength, func(ctx context.Context) {
		namespace, cache, limited := createNamespace(ctx, "killed"), inCache(roomyCache(ctx)), limitInKernel(ctx, 50)
		before, all := readGroups(ctx), poolsOfNode(ctx).Guaranteed.Ways
		kill := func(what string, atLeast int, run func()) {
			GinkgoHelper()
			By(what)
			Expect(observer.KillAtChanges(ctx, driverProcess, stateOfWays, killsOfAClaim, 2*limit(eventuallyTimeout))).To(Succeed())
			run()
			kills, err := observer.Kills(ctx)
			Expect(err).NotTo(HaveOccurred())
			GinkgoWriter.Printf("%s: killed %d times\n", what, kills)
			Expect(kills).To(BeNumerically(">=", atLeast), "kills while %s", what)
			waitDriverReady(ctx)
		}
		var pod *corev1.Pod
		kill("the claim begins", 2, func() {
			pod = waitRunning(ctx, createWithWays(ctx, namespace, "killed", "gold.dra.numa", map[string]int64{"ways": int64(all), "bandwidthPercent": 50}, cache))
		})
		Eventually(ctx, func(g Gomega) { checkWays(ctx, g, pod, all, limited) }).Should(Succeed())
		kill("the claim ends", 1, func() { deletePod(ctx, pod); deleteClaim(ctx, pod) })
		Eventually(ctx, func() map[string]cacheGroup { return readGroups(ctx) }).Should(Equal(before), "groups after the claim")
	})
})

var _ = Describe("claims of all pools of a cache at the same time", withCache, func() {
	It("have the ways of their pools, and no other", func(ctx context.Context) {
		namespace, pools, cache := createNamespace(ctx, "pools"), poolsOfNode(ctx), inCache(roomyCache(ctx))
		all := pools.Guaranteed.Ways
		gold := createWithWays(ctx, namespace, "gold", "gold.dra.numa", map[string]int64{"ways": int64(all)}, cache)
		silver := createWithWays(ctx, namespace, "silver", "silver.dra.numa", nil, cache)
		bronze := createWithWays(ctx, namespace, "bronze", "bronze.dra.numa", nil, cache)
		gold, silver, bronze = waitRunning(ctx, gold), waitRunning(ctx, silver), waitRunning(ctx, bronze)
		expectWays(ctx, gold, all, 100)
		expectWays(ctx, silver, pools.BestEffort.DefaultMaxWays, 100)
		expectWays(ctx, bronze, pools.Shared.Ways, 100)
	})

	It("have them on a cache of two cores, too, one pool after the other beside claims of the first", ofGate, func(ctx context.Context) {
		namespace, pools, cache := createNamespace(ctx, "pairs"), poolsOfNode(ctx), roomyCache(ctx)
		all := pools.Guaranteed.Ways
		gold := waitRunning(ctx, createWithWays(ctx, namespace, "gold", "gold.dra.numa", map[string]int64{"ways": int64(all)}, inCache(cache)))
		seen := groupOf(ctx, gold).ways[cache]
		for class, ways := range map[string]int{"silver": pools.BestEffort.DefaultMaxWays, "bronze": pools.Shared.Ways} {
			pod := waitRunning(ctx, createWithWays(ctx, namespace, class, class+".dra.numa", nil, inCache(cache)))
			expectWays(ctx, gold, all, 100)
			expectWays(ctx, pod, ways, 100)
			mask := groupOf(ctx, pod).ways[cache]
			Expect(mask&seen).To(BeZero(), "ways %x of pool %s, and %x of those before", mask, class, seen)
			seen |= mask
			deletePod(ctx, pod)
			deleteClaim(ctx, pod)
		}
	})
})
