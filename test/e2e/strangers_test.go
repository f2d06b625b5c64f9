package e2e

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/kernel"
)

// watch records what runs on the CPUs from now to the end of the spec. To end a record that
// has ended changes nothing, so a connection that is lost meanwhile is no failure.
func watch(ctx context.Context, cpus cpuset.Set) {
	GinkgoHelper()
	DeferCleanup(func(ctx context.Context) { Eventually(ctx, observer.Unwatch).Should(Succeed()) })
	Expect(observer.Watch(ctx, cpus)).To(Succeed())
}

// strangers returns the tasks of no owner, the cgroups given and all below them,
// that have run on the watched CPUs or may do so now.
func strangers(ctx context.Context, cpus cpuset.Set, owners ...string) []string {
	GinkgoHelper()
	ran, err := observer.Ran(ctx)
	Expect(err).NotTo(HaveOccurred())
	var found []string
	for _, task := range ran {
		if !task.Kernel() && !below(task.Cgroup, owners) {
			found = append(found, "ran: "+task.String())
		}
	}
	allowed, err := observer.AllowedOutside(ctx, owners...)
	Expect(err).NotTo(HaveOccurred())
	for _, set := range allowed {
		if set.CPUs.Overlaps(cpus) {
			found = append(found, fmt.Sprintf("may run on %s: %d tasks, one is %s", set.CPUs, set.Tasks, set.One))
		}
	}
	return found
}

func below(cgroup string, owners []string) bool {
	for _, owner := range owners {
		if cgroup == owner || strings.HasPrefix(cgroup, owner+"/") {
			return true
		}
	}
	return false
}

// expectNoStrangers checks that only the owners' tasks use the watched CPUs.
func expectNoStrangers(ctx context.Context, cpus cpuset.Set, owners ...string) {
	GinkgoHelper()
	Expect(strangers(ctx, cpus, owners...)).To(BeEmpty(), "tasks of others on CPUs %s", cpus)
}

// follow notes what a process's cgroup has from now to settled.
func follow(ctx context.Context, process kernel.Process) {
	GinkgoHelper()
	DeferCleanup(func(ctx context.Context) {
		_, err := observer.Unfollow(ctx)
		Expect(err).NotTo(HaveOccurred())
	})
	Expect(observer.Follow(ctx, process.Cgroup)).To(Succeed())
}
