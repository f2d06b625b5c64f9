package e2e

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// withCache marks specs for a node whose kernel has resctrl: make e2e-cache runs them.
var withCache = Label("cache", withOwnBoot)

var _ = Describe("a node whose caches can be divided", withCache, func() {
	It("has resctrl mounted on the host, with every L3 cache of its CPUs", func(ctx context.Context) {
		schemata, err := observer.Run(ctx, "cat /proc/1/root/sys/fs/resctrl/schemata")
		Expect(err).NotTo(HaveOccurred())
		ids, err := observer.Run(ctx, "sort -n -u /sys/devices/system/cpu/cpu*/cache/index3/id")
		Expect(err).NotTo(HaveOccurred())
		Expect(cachesOf(schemata)).To(Equal(strings.Fields(ids)), "L3 caches of the root group, schemata %q", schemata)
	})
})

// cachesOf are the ids of the L3 caches in a text such as
//
//	L3:0=fff;1=fff
//	MB:0=100;1=100
func cachesOf(schemata string) (ids []string) {
	for line := range strings.Lines(schemata) {
		masks, found := strings.CutPrefix(strings.TrimSpace(line), "L3:")
		if !found {
			continue
		}
		for mask := range strings.SplitSeq(masks, ";") {
			id, _, _ := strings.Cut(mask, "=")
			ids = append(ids, strings.TrimSpace(id))
		}
	}
	return ids
}
