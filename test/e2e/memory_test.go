package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// What the processes of the driver may have in memory while there is nothing to do.
const (
	driverMemoryBytes = 40 << 20
	keeperMemoryBytes = 20 << 20
)

var _ = Describe("the idle driver", func() {
	It("and its keeper need little memory", func(ctx context.Context) {
		for _, process := range []struct {
			name, argument string
			limitBytes     int
		}{
			{driverProcess, "", driverMemoryBytes},
			{keeperProcess, keeperArgument, keeperMemoryBytes},
		} {
			Eventually(ctx, func(g Gomega) {
				sizes, err := observer.Memory(ctx, process.name, process.argument)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(sizes).To(HaveLen(1), "processes named %s %s", process.name, process.argument)
				GinkgoWriter.Printf("resident memory of %s %s: %.1f MiB\n", process.name, process.argument, float64(sizes[0])/(1<<20))
				g.Expect(sizes[0]).To(BeNumerically("<=", process.limitBytes), "resident memory of %s %s", process.name, process.argument)
			}).WithTimeout(limit(idleTimeout)).Should(Succeed())
		}
	})
})
