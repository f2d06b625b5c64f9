package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/test/startup"
)

var (
	startupFile  = flag.String("e2e.startup", "", "file to which the time of starts is written")
	startupPairs = flag.Int("e2e.startup-pairs", 30, "how many pairs of pods start; beside a crowd, a third of them")
	startupCrowd = flag.Int("e2e.startup-crowd", 250, "how many pods the crowd has; 0: there is none")
)

// withStartup marks the spec that measures starts: make bench-start runs it.
var withStartup = Label("startup", withOwnBoot)

// settleTime is how long what belongs to a start may go on when the container runs: the
// driver writes the status of its claim.
const settleTime = 3 * time.Second

var _ = Describe("the start of a pod", withStartup, func() {
	It("is measured with and without a claim, in turn, and again beside a crowd", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "startup"), oneCore(ctx)
		object, err := cluster.Kubernetes.CoreV1().Nodes().Get(ctx, node.name, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		run := startup.Run{
			Kubernetes: object.Status.NodeInfo.KubeletVersion, Kernel: object.Status.NodeInfo.KernelVersion, Runtime: object.Status.NodeInfo.ContainerRuntimeVersion,
			Claim: fmt.Sprintf("%d CPUs of one NUMA node", core.cpus), Load: loadAverages(),
		}
		measureStart(ctx, namespace, "first", core, true) // what only the first start needs is not measured
		run.Nodes = append(run.Nodes, measureStarts(ctx, namespace, core, 0, *startupPairs))
		if *startupCrowd > 0 {
			for i := range *startupCrowd {
				pod := plainPod(fmt.Sprintf("other-%d", i))
				pod.Spec.NodeName, pod.Spec.NodeSelector = node.name, nil
				createPod(ctx, namespace, pod)
				waitRunningPods(ctx, namespace, i+1-newcomersAtATime)
			}
			waitRunningPods(ctx, namespace, *startupCrowd)
			run.Nodes = append(run.Nodes, measureStarts(ctx, namespace, core, *startupCrowd, max(*startupPairs/3, 1)))
		}
		run.LoadAfter = loadAverages()
		text, err := json.MarshalIndent(run, "", " ")
		Expect(err).NotTo(HaveOccurred())
		Expect(os.WriteFile(*startupFile, text, 0o644)).To(Succeed())
	})
})

// measureStarts measures pairs of starts beside other pods, and the driver while nothing
// changes.
func measureStarts(ctx context.Context, namespace string, want request, others, pairs int) startup.Node {
	GinkgoHelper()
	measured := startup.Node{Pods: others}
	for i := range pairs {
		var pair startup.Pair
		for turn := range 2 {
			// The claim is first in every second pair.
			if name := fmt.Sprintf("start-%d-%d", others, i); turn == i%2 {
				pair.Without = measureStart(ctx, namespace, name+"-without", want, false)
			} else {
				pair.With = measureStart(ctx, namespace, name+"-with", want, true)
			}
		}
		fmt.Printf("beside %d pods, pair %d: %.0f ms without, %.0f ms with a claim\n", others, i+1, pair.Without.Total(), pair.With.Total())
		measured.Pairs = append(measured.Pairs, pair)
	}
	measured.IdleShare = shareWhenIdle(ctx, others)
	return measured
}

// measureStart starts a pod, and deletes it.
func measureStart(ctx context.Context, namespace, name string, want request, claims bool) (s startup.Sample) {
	GinkgoHelper()
	pod := claimPod(name, want)
	if claims {
		createClaim(ctx, namespace, newClaim(name, want))
	} else {
		pod.Spec.ResourceClaims, pod.Spec.Containers[0].Resources.Claims = nil, nil
	}
	before := startCounts(ctx)
	pod = waitRunning(ctx, createPod(ctx, namespace, pod))
	time.Sleep(settleTime)
	s.Counts = startCounts(ctx)
	for what, count := range before {
		s.Counts[what] -= count
	}
	var err error
	s.Milliseconds, err = startup.Read(nodeLog(ctx, "kubelet", "SyncLoop ADD"), nodeLog(ctx, "containerd", " for "), namespace, name)
	Expect(err).NotTo(HaveOccurred())
	deletePod(ctx, pod)
	if claims {
		Expect(cluster.Kubernetes.ResourceV1().ResourceClaims(namespace).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
	}
	return s
}

// nodeLog returns the last lines of a program's log on the rig's node that have the text.
func nodeLog(ctx context.Context, program, text string) string {
	GinkgoHelper()
	out, err := observer.Run(ctx, `tail -n 2000 "/proc/1/root/var/log/$1.log" | grep -F -e "$2" | tail -n 200`, program, text)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// startCounts returns what is the same on any machine: what the driver and the kubelet have
// done so far.
func startCounts(ctx context.Context) map[string]float64 {
	GinkgoHelper()
	ours, err := scrape(ctx)
	Expect(err).NotTo(HaveOccurred())
	counts := map[string]float64{}
	for metric, value := range ours {
		switch name, _, _ := strings.Cut(metric, "{"); name {
		case "dra_numa_hook_duration_seconds_count":
			counts["processes (hooks)"] += value
		case "dra_numa_fsync_duration_seconds_count":
			counts["fsyncs of the driver"] += value
		case "dra_numa_apiserver_requests_total":
			counts["API requests of the driver"] += value
		}
	}
	text, err := cluster.Kubernetes.CoreV1().RESTClient().Get().Resource("nodes").Name(node.name).SubResource("proxy").Suffix("metrics").DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
	for name, value := range metricsIn(string(text)) {
		if strings.HasPrefix(name, "rest_client_requests_total{") && !strings.Contains(name, `verb="WATCH"`) {
			counts["API requests of the kubelet"] += value
		}
	}
	return counts
}

// loadAverages are those of the machine on which the node is emulated.
func loadAverages() string {
	GinkgoHelper()
	text, err := os.ReadFile("/proc/loadavg")
	Expect(err).NotTo(HaveOccurred())
	return strings.Join(strings.Fields(string(text))[:3], ", ")
}
