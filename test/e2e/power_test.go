package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// Folders of the node, as the chart mounts them by default.
const (
	kubeletFolder = "/var/lib/kubelet"
	driverFolder  = kubeletFolder + "/plugins/dra.numa"
	hookPath      = driverFolder + "-hook/numa-pin"
)

var _ = Describe("the driver's containers", func() {
	It("cannot replace the hook, and the daemon sees nothing of other pods", func(ctx context.Context) {
		for _, path := range []string{hookPath, hookPath + ".new"} {
			Expect(observer.Append(ctx, driverProcess, "", path)).To(HaveSuffix("Read-only file system"), "daemon opens %s to write", path)
		}
		Expect(observer.Append(ctx, driverProcess, "", driverFolder+"/instance.lock")).To(BeEmpty(), "daemon opens a file of its own")
		Expect(observer.List(ctx, driverProcess, "", kubeletFolder)).To(ConsistOf("plugins", "plugins_registry"), "the kubelet's folder in the daemon")
		Expect(observer.List(ctx, driverProcess, "", kubeletFolder+"/plugins")).To(ConsistOf("dra.numa", "dra.numa-hook"), "plugins in the daemon")
		Expect(observer.List(ctx, keeperProcess, keeperArgument, kubeletFolder+"/plugins")).To(ConsistOf("dra.numa"), "plugins in the keeper")
		Expect(observer.Append(ctx, keeperProcess, keeperArgument, "/host/kubelet/plugins/dra.numa-hook/numa-pin")).To(
			HaveSuffix("Read-only file system"), "keeper opens the hook to write")
	})
})
