package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// metricsPort is the chart's default.
const metricsPort = 8090

// scrape returns the metrics of the daemon on the node by their names and labels, as
// Prometheus reads them from the pod's address.
func scrape(ctx context.Context) (map[string]float64, error) {
	text, err := scrapeText(ctx)
	return metricsIn(text), err
}

// metricsIn returns the metrics of a text by their names and labels.
func metricsIn(text string) map[string]float64 {
	metrics := map[string]float64{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "} ")
		if ok {
			name += "}"
		} else {
			name, value, ok = strings.Cut(strings.TrimSpace(line), " ")
		}
		number, err := strconv.ParseFloat(value, 64)
		if ok && err == nil && !strings.HasPrefix(line, "#") {
			metrics[name] = number
		}
	}
	return metrics
}

// scrapeText returns the metrics of the daemon on the node as it sends them.
func scrapeText(ctx context.Context) (string, error) {
	pods, err := driverPods(ctx)
	if err != nil || len(pods) != 1 {
		return "", fmt.Errorf("%d pods of the driver: %w", len(pods), err)
	}
	return observer.Run(ctx, `timeout 4 wget -q -O - "http://$1:$2/metrics"`, pods[0].Status.PodIP, strconv.Itoa(metricsPort))
}

var _ = Describe("the metrics of a node", func() {
	It("name a claim, and a repair of its partition", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "metrics"), oneCore(ctx)
		before, err := scrape(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(before).To(And(
			HaveKeyWithValue("dra_numa_ready", 1.0), HaveKeyWithValue("dra_numa_kubelet_registered", 1.0),
			HaveKeyWithValue(`dra_numa_record_mismatches{record="checkpoint"}`, 0.0),
		))
		pod := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("metrics", core), core))
		claim := claimOf(ctx, pod)
		s := snapshot(ctx)
		held := expectPinned(ctx, s, pod)
		device := claim.Status.Allocation.Devices.Results[0].Device
		cpus := fmt.Sprintf("dra_numa_claim_cpus{device=%q,namespace=%q,resourceclaim=%q}", device, namespace, claim.Name)
		Eventually(ctx, scrape).Should(And(
			HaveKeyWithValue(cpus, float64(held.Size())),
			HaveKeyWithValue(`dra_numa_cgroups{state="exclusive"}`, BeNumerically(">", 0)),
		))
		now, err := scrape(ctx)
		Expect(err).NotTo(HaveOccurred())
		const prepared = `dra_numa_claim_operation_duration_seconds_count{operation="prepare",result="ok"}`
		Expect(now[prepared]).To(BeNumerically(">", before[prepared]))

		const repairs = `dra_numa_keeper_repairs_total{cause="partition"}`
		Expect(observer.WriteCgroup(ctx, inKernel(s, pod).Cgroup, "cpuset.cpus.partition", "member")).To(Succeed())
		Eventually(ctx, scrape).Should(HaveKeyWithValue(repairs, BeNumerically(">", now[repairs])))
		deletePod(ctx, pod)
		Eventually(ctx, scrape).ShouldNot(HaveKey(cpus))
	})

	// What hangs in the kernel cannot be killed either; a process that is stopped hangs as
	// far as others can see.
	It("say that the keeper hangs, and the node is not ready meanwhile", atLength, func(ctx context.Context) {
		signal := func(name string) {
			GinkgoHelper()
			Expect(observer.Signal(ctx, name, keeperProcess, keeperArgument)).To(Succeed())
		}
		const silent = `dra_numa_not_ready{reason="keeper"}`
		signal("STOP")
		DeferCleanup(func(ctx context.Context) error { return observer.Signal(ctx, "CONT", keeperProcess, keeperArgument) })
		Eventually(ctx, scrape).Should(And(HaveKeyWithValue(silent, 1.0), HaveKeyWithValue("dra_numa_ready", 0.0)))
		signal("CONT")
		Eventually(ctx, scrape).Should(And(Not(HaveKey(silent)), HaveKeyWithValue("dra_numa_ready", 1.0)))
		waitDriverReady(ctx)
	})

	// A rolling update stops at such a daemon. The init container of its next pod installs the
	// hook again.
	It("say that the daemon could not prepare a claim, until the hook runs again", atLength, func(ctx context.Context) {
		const failed = `dra_numa_not_ready{reason="rehearsal"}`
		DeferCleanup(func(ctx context.Context) {
			pods, err := driverPods(ctx)
			Expect(err).NotTo(HaveOccurred())
			for _, pod := range pods {
				Expect(cluster.Kubernetes.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{})).To(Succeed())
			}
			Eventually(ctx, scrape).Should(And(Not(HaveKey(failed)), HaveKeyWithValue("dra_numa_ready", 1.0)))
			waitDriverReady(ctx)
		})
		Expect(observer.WriteFile(ctx, hookPath, "no program")).To(Succeed())
		Expect(observer.KillNamed(ctx, driverProcess)).To(Succeed())
		Eventually(ctx, scrape).Should(And(HaveKeyWithValue(failed, 1.0), HaveKeyWithValue("dra_numa_ready", 0.0)))
	})
})
