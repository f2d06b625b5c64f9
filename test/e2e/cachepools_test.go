package e2e

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// poolsOfNode returns the pools of each cache, as the NodeConfig of the chart has them.
func poolsOfNode(ctx context.Context) deviceclasses.CachePools {
	GinkgoHelper()
	file, err := cluster.Kubernetes.CoreV1().ConfigMaps(*driverNamespace).Get(ctx, *driverDaemonSet, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	config, err := deviceclasses.DecodeNodeConfig([]byte(file.Data["node.yaml"]))
	Expect(err).NotTo(HaveOccurred())
	pools := config.Cache
	if pools == nil || pools.OS == nil || pools.Guaranteed == nil || pools.BestEffort == nil || pools.Shared == nil {
		lacks("the NodeConfig does not divide caches into the pools os, guaranteed, besteffort and shared: %s", file.Data["node.yaml"])
	}
	pools.Guaranteed.DefaultWays = cmp.Or(pools.Guaranteed.DefaultWays, 1)
	pools.BestEffort.DefaultMinWays = cmp.Or(pools.BestEffort.DefaultMinWays, 1)
	pools.BestEffort.DefaultMaxWays = cmp.Or(pools.BestEffort.DefaultMaxWays, pools.BestEffort.Ways)
	return *pools
}

// roomyCache returns the id of the cache whose zones have the most CPUs for claims, the lowest
// of several.
func roomyCache(ctx context.Context) int {
	GinkgoHelper()
	devices, err := nodeDevices(ctx)
	Expect(err).NotTo(HaveOccurred())
	cpus := map[int]int{}
	for _, device := range devices {
		if zone, is := readZone(device); is {
			cache, err := strconv.Atoi(attribute(device, deviceclasses.AttributeL3))
			Expect(err).NotTo(HaveOccurred(), "cache of zone %s", device.Name)
			cpus[cache] += zone.cpus
		}
	}
	roomy := -1
	for cache, count := range cpus {
		if roomy < 0 || count > cpus[roomy] || count == cpus[roomy] && cache < roomy {
			roomy = cache
		}
	}
	if cpus[roomy] < 4 {
		lacks("no cache of node %s is that of 4 CPUs for claims", node.name)
	}
	return roomy
}

// inCache is true for the devices of a cache.
func inCache(id int) string { return fmt.Sprintf(`device.attributes["dra.numa"].l3 == %d`, id) }

// inResctrl returns what a file of resctrl has.
func inResctrl(ctx context.Context, name string) string {
	GinkgoHelper()
	text, err := observer.Run(ctx, `cat "$1/$2"`, resctrlMount, name)
	Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(text)
}

// limitInKernel returns what the kernel makes of a limit of memory bandwidth in percent.
func limitInKernel(ctx context.Context, percent int) int {
	GinkgoHelper()
	step, err := strconv.Atoi(inResctrl(ctx, "info/MB/bandwidth_gran"))
	Expect(err).NotTo(HaveOccurred())
	return (percent + step - 1) / step * step
}

// allWays returns the mask of all ways of a cache.
func allWays(ctx context.Context) uint64 {
	GinkgoHelper()
	mask, err := strconv.ParseUint(inResctrl(ctx, "info/L3/cbm_mask"), 16, 64)
	Expect(err).NotTo(HaveOccurred())
	return mask
}
