package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

var (
	auditLog  = flag.String("e2e.audit", "", "audit log of the API server: all writes but the leases of kubelets")
	quietTime = flag.Duration("e2e.quiet", 10*time.Minute, "how long nothing changes")
)

// withAudit marks specs that read the API server's audit log: make e2e-audit runs them.
var withAudit = Label("audit", withOwnBoot)

const (
	auditedPods   = 6
	claimsOfEach  = 10          // one of a core, the others of memory
	settledPeriod = time.Minute // the driver looks at claims each second, and at the machine every 5 s
)

var _ = Describe("the API server's audit log", withAudit, func() {
	It("has no write of the driver while 60 claims run and nothing changes", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "audit"), oneCore(ctx)
		core.zone = anyZone
		begin := time.Now()
		for i := range auditedPods {
			createPod(ctx, namespace, withMemoryClaims(ctx, namespace, claimPod(fmt.Sprintf("audited-%d", i), core), core))
		}
		waitRunningPods(ctx, namespace, auditedPods)

		By("finding in the log what the driver wrote about them")
		expectStatuses(ctx, begin, auditedPods*claimsOfEach)
		Eventually(ctx, func() (map[string]int, error) { return driversWrites(time.Now().Add(-settledPeriod), time.Now()) }).Should(BeEmpty(), "the driver's writes in %s", settledPeriod)

		By("waiting while nothing changes")
		begin = time.Now()
		select {
		case <-ctx.Done():
		case <-time.After(*quietTime):
		}
		end := time.Now()

		By("seeing that the driver and the log are still alive")
		waitRunning(ctx, createClaimed(ctx, namespace, withoutRequests(claimPod("last", core)), core))
		expectStatuses(ctx, end, 1)
		writes, err := writesBetween(begin, end)
		Expect(err).NotTo(HaveOccurred())
		counts := map[string]int{}
		for _, write := range writes {
			counts[what(write)+" by "+write.User.Username]++
		}
		for _, write := range slices.Sorted(maps.Keys(counts)) {
			fmt.Printf("in %s: %d times %s\n", quietTime, counts[write], write)
		}
		Expect(driversWrites(begin, end)).To(BeEmpty(), "the driver's writes in %s", quietTime)
	})
})

// expectStatuses waits until the log has so many writes of the status of claims by the driver.
func expectStatuses(ctx context.Context, since time.Time, count int) {
	GinkgoHelper()
	Eventually(ctx, func() (int, error) {
		writes, err := driversWrites(since, time.Now())
		return writes["update resourceclaims/status"], err
	}).Should(BeNumerically(">=", count), "the driver's writes of the status of claims")
}

// withMemoryClaims creates the pod's claim and others of memory, which its container uses, too.
func withMemoryClaims(ctx context.Context, namespace string, pod *corev1.Pod, want request) *corev1.Pod {
	GinkgoHelper()
	createClaim(ctx, namespace, newClaim(pod.Name, want))
	for i := 1; i < claimsOfEach; i++ {
		name, claim := fmt.Sprintf("memory-%d", i), fmt.Sprintf("%s-memory-%d", pod.Name, i)
		createClaim(ctx, namespace, newClaim(claim, request{memoryBytes: someMemory, zone: anyZone}))
		pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: name, ResourceClaimName: &claim})
		resources := &pod.Spec.Containers[0].Resources
		resources.Claims = append(resources.Claims, corev1.ResourceClaim{Name: name})
	}
	return pod
}

// driversWrites counts the writes that the API server has answered the driver in that time.
func driversWrites(begin, end time.Time) (map[string]int, error) {
	all, err := writesBetween(begin, end)
	counts := map[string]int{}
	for _, write := range all {
		if strings.HasPrefix(write.User.Username, "system:serviceaccount:"+*driverNamespace+":") {
			counts[what(write)]++
		}
	}
	return counts, err
}

// what is the verb and the resource of a write.
func what(write auditv1.Event) string {
	resource := write.ObjectRef.Resource
	if write.ObjectRef.Subresource != "" {
		resource += "/" + write.ObjectRef.Subresource
	}
	return write.Verb + " " + resource
}

// writesBetween returns the writes that the API server has answered in that time.
func writesBetween(begin, end time.Time) ([]auditv1.Event, error) {
	text, err := os.ReadFile(*auditLog)
	if err != nil {
		return nil, err
	}
	var writes []auditv1.Event
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // it is being written
		}
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("%s: %w", *auditLog, err)
		}
		if event.ObjectRef != nil && event.StageTimestamp.After(begin) && event.StageTimestamp.Time.Before(end) {
			writes = append(writes, event)
		}
	}
	return writes, nil
}
