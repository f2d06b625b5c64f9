package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

var _ = Describe("ways of several requests, claims and programs", withCache, func() {
	It("are those of each of two containers of a pod", ofGate, func(ctx context.Context) {
		namespace, core, most := createNamespace(ctx, "containers"), oneCore(ctx).cpus, someWays(ctx, 2)
		cache, limited, before := inCache(roomyCache(ctx)), limitInKernel(ctx, 35), readGroups(ctx)
		claim := claimOfDevices("both")
		pod := withoutRequests(claimPod("both", request{cpus: core}))
		pod.Spec.Containers = append(pod.Spec.Containers, plainContainer(secondContainer))
		for i, amounts := range []map[string]int64{{"ways": int64(most - 1), "bandwidthPercent": 35}, {"ways": 1}} {
			cpus, ways := fmt.Sprint("cpus-", i), fmt.Sprint("ways-", i)
			alike("dra.numa/l3", claim, shareOf(cpus, "zone.dra.numa", map[string]int64{"cpu": core}), shareOf(ways, "gold.dra.numa", amounts, cache))
			claim.Spec.Devices.Config = append(claim.Spec.Devices.Config, ofRequest(ways, configOf(deviceclasses.CacheConfigKind, fmt.Sprintf(`"cpus": %q`, cpus))))
			pod.Spec.Containers[i].Resources.Claims = []corev1.ResourceClaim{{Name: "zone", Request: cpus}}
		}
		createClaim(ctx, namespace, claim)
		pod = waitAllRunning(ctx, createPod(ctx, namespace, pod))
		said, s := statusOfCaches(ctx, pod, 2), snapshot(ctx)
		Expect(said["cpus-0"].Group).NotTo(Equal(said["cpus-1"].Group))
		checkGroup(ctx, Default, said["cpus-0"], inKernel(s, pod).CPUs, most-1, limited)
		checkGroup(ctx, Default, said["cpus-1"], containerOf(s, pod, secondContainer).CPUs, 1, 100)

		By("ending the pod")
		deletePod(ctx, pod)
		deleteClaim(ctx, pod)
		Eventually(ctx, func() map[string]cacheGroup { return readGroups(ctx) }).Should(Equal(before), "groups after the claim")
	})

	It("move where a larger claim needs them in one piece, and their container runs on", ofGate, func(ctx context.Context) {
		namespace, most, cache, limited := createNamespace(ctx, "moved"), someWays(ctx, 3), roomyCache(ctx), limitInKernel(ctx, 50)
		small := map[string]int64{"ways": 1, "bandwidthPercent": 50}
		one := createWithWays(ctx, namespace, "one", "gold.dra.numa", small, inCache(cache))
		other := createWithWays(ctx, namespace, "other", "gold.dra.numa", small, inCache(cache))
		lower, higher := waitRunning(ctx, one), waitRunning(ctx, other)
		if groupOf(ctx, lower).ways[cache] > groupOf(ctx, higher).ways[cache] {
			lower, higher = higher, lower
		}
		was, process := groupOf(ctx, higher), inKernel(snapshot(ctx), higher)
		deletePod(ctx, lower)
		deleteClaim(ctx, lower)
		large := waitRunning(ctx, createWithWays(ctx, namespace, "large", "gold.dra.numa", map[string]int64{"ways": int64(most - 1)}, inCache(cache)))
		expectWays(ctx, large, most-1, 100)
		expectWays(ctx, higher, 1, limited)
		is := groupOf(ctx, higher)
		Expect(is.ways[cache]).NotTo(Equal(was.ways[cache]), "ways that leave %d in one piece", most-1)
		Expect(is.name).To(Equal(was.name))
		Expect(inKernel(snapshot(ctx), higher)).To(Equal(process), "the container whose ways have moved")
	})

	It("move off those of another program's group, which stays as it is", ofGate, atLength, func(ctx context.Context) {
		namespace, most, cache := createNamespace(ctx, "foreign"), someWays(ctx, 3), roomyCache(ctx)
		device := fmt.Sprintf("cache-%d-guaranteed", cache)
		held := waitRunning(ctx, createWithWays(ctx, namespace, "held", "gold.dra.numa", map[string]int64{"ways": 1}, inCache(cache)))
		ways := groupOf(ctx, held).ways[cache]
		foreign := makeForeignGroup(ctx, cache, ways)
		waitPublished(ctx, device, "the ways that are left", offers(deviceclasses.CapacityWays, int64(most-1), untainted))
		Eventually(ctx, func(g Gomega) { checkWays(ctx, g, held, 1, 100) }).Should(Succeed(), "ways of the claim, which had %x", ways)

		By("giving the rest to a claim")
		rest := waitRunning(ctx, createWithWays(ctx, namespace, "rest", "gold.dra.numa", map[string]int64{"ways": int64(most - 2)}, inCache(cache)))
		expectWays(ctx, rest, most-2, 100)

		By("starting the driver again, which repairs all groups")
		killDriver(ctx)
		Expect(readGroups(ctx)[foreignGroup]).To(Equal(foreign), "the group of the other program")
		expectWays(ctx, held, 1, 100)
		expectWays(ctx, rest, most-2, 100)

		By("removing the group, while a claim waits for its way")
		deletePod(ctx, rest)
		deleteClaim(ctx, rest)
		more := createWithWays(ctx, namespace, "more", "gold.dra.numa", map[string]int64{"ways": int64(most - 1)}, inCache(cache))
		expectPending(ctx, more, noDevices)
		removeForeignGroup(ctx)
		expectWays(ctx, waitRunning(ctx, more), most-1, 100)
	})
})

// someWays returns how many ways the pool guaranteed has in each cache.
func someWays(ctx context.Context, atLeast int) int {
	GinkgoHelper()
	ways := poolsOfNode(ctx).Guaranteed.Ways
	if ways < atLeast {
		lacks("the pool guaranteed has %d ways, %d are needed", ways, atLeast)
	}
	return ways
}

// foreignGroup is a group that is not the driver's.
const foreignGroup = "e2e-foreign"

// makeForeignGroup makes a group that has ways of a cache, and one of the CPUs that no claim
// gets. In the other caches it has the ways of the root group, which no claim gets.
func makeForeignGroup(ctx context.Context, cache int, ways uint64) cacheGroup {
	GinkgoHelper()
	root := readGroups(ctx)[""]
	masks := []string{fmt.Sprintf("%d=%x", cache, ways)}
	for other, mask := range root.ways {
		if other != cache {
			masks = append(masks, fmt.Sprintf("%d=%x", other, mask))
		}
	}
	slices.Sort(masks)
	cpu, _ := kubeletReserved(ctx).First()
	DeferCleanup(removeForeignGroup)
	_, err := observer.Run(ctx, `cd "$1" && mkdir "$2" && echo "L3:$3" >"$2/schemata" && echo "$4" >"$2/cpus_list"`,
		resctrlMount, foreignGroup, strings.Join(masks, ";"), fmt.Sprint(cpu))
	Expect(err).NotTo(HaveOccurred())
	group := readGroups(ctx)[foreignGroup]
	Expect(group.ways[cache]).To(Equal(ways), "ways of group %s", foreignGroup)
	return group
}

func removeForeignGroup(ctx context.Context) {
	GinkgoHelper()
	_, err := observer.Run(ctx, `cd "$1" && [ ! -d "$2" ] || rmdir "$2"`, resctrlMount, foreignGroup)
	Expect(err).NotTo(HaveOccurred())
}
