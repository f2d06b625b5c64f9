package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

var scrapesFolder = flag.String("e2e.scrapes", "", "folder for the metrics of a node with each fault, which test/monitoring reads")

// withAlerts marks specs that break a node in each way that has an alert, and record what it
// sends to Prometheus meanwhile: make e2e-alerts runs them, and then Prometheus' rules.
var withAlerts = Label("alerts", withOwnBoot)

const (
	scrapePeriod = 5 * time.Second
	faultLasts   = 100 * time.Second
)

// recording is what a node sends while one thing is wrong.
type recording struct {
	Alert   string   `json:"alert"`   // the one that fires; empty: none
	Scrapes []string `json:"scrapes"` // one each scrapePeriod; empty if the daemon did not answer
}

// record records the metrics of the node as it is now.
func record(ctx context.Context, alert string) {
	GinkgoHelper()
	recorded := recording{Alert: alert}
	ticker := time.NewTicker(scrapePeriod)
	defer ticker.Stop()
	for range int(faultLasts / scrapePeriod) {
		text, err := scrapeText(ctx)
		if err != nil {
			text = ""
		}
		recorded.Scrapes = append(recorded.Scrapes, text)
		<-ticker.C
	}
	text, err := json.Marshal(recorded)
	Expect(err).NotTo(HaveOccurred())
	name := strings.ReplaceAll(CurrentSpecReport().LeafNodeText, " ", "-") + ".json"
	Expect(os.MkdirAll(*scrapesFolder, 0o755)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(*scrapesFolder, name), text, 0o644)).To(Succeed())
}

var _ = Describe("metrics for alerts:", withAlerts, ofMachine, func() {
	BeforeEach(func(ctx context.Context) {
		Expect(*scrapesFolder).NotTo(BeEmpty(), "-e2e.scrapes")
		waitDriverReady(ctx)
	})

	It("nothing is wrong", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "fine"), oneCore(ctx)
		waitRunning(ctx, createClaimed(ctx, namespace, claimPod("fine", core), core))
		core.zone = anyZone
		createWhileRecording(ctx, namespace, "more", core)
		record(ctx, "")
	})

	It("the daemon hangs", func(ctx context.Context) {
		stopProcess(ctx, driverProcess, "")
		record(ctx, "NUMADriverDown")
	})

	It("the keeper hangs", func(ctx context.Context) {
		stopProcess(ctx, keeperProcess, keeperArgument)
		record(ctx, "NUMAKeeperSilent")
	})

	It("the API server refuses slices", func(ctx context.Context) {
		roles := cluster.Kubernetes.RbacV1().ClusterRoles()
		before, err := roles.Get(ctx, *driverDaemonSet, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		setRules := func(ctx context.Context, rules []rbacv1.PolicyRule) {
			current, err := roles.Get(ctx, before.Name, metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			current.Rules = rules
			_, err = roles.Update(ctx, current, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		var without []rbacv1.PolicyRule
		for _, rule := range before.DeepCopy().Rules {
			if rule.Resources[0] == "resourceslices" {
				rule.Verbs = []string{"get", "list", "watch"}
			}
			without = append(without, rule)
		}
		Expect(without).NotTo(Equal(before.Rules))
		DeferCleanup(func(ctx context.Context) { setRules(ctx, before.Rules) })
		setRules(ctx, without)
		all := cluster.Kubernetes.ResourceV1().ResourceSlices()
		Expect(all.DeleteCollection(ctx, metav1.DeleteOptions{}, slicesOfNode())).To(Succeed())
		Eventually(ctx, scrape).Should(HaveKeyWithValue("dra_numa_ready", 0.0))
		record(ctx, "NUMADriverNotReady")
	})

	It("the kubelet gives out CPUs", func(ctx context.Context) {
		DeferCleanup(func(ctx context.Context) { setCPUManager(ctx, observer, "static", "none") })
		setCPUManager(ctx, observer, "none", "static")
		Eventually(ctx, scrape).Should(HaveKeyWithValue(`dra_numa_not_ready{reason="kubelet-manager"}`, 1.0))
		record(ctx, "NUMADriverConflict")
	})

	It("a CPU of a claim is offline", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "offline"), oneCore(ctx)
		pod := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("offline", core), core))
		held := expectPinned(ctx, snapshot(ctx), pod)
		kept, _ := held.First()
		gone := held.Difference(cpuset.New(kept))
		if gone.IsEmpty() {
			lacks("a core has one CPU only")
		}
		DeferCleanup(func(ctx context.Context) { Expect(observer.SetOnline(ctx, gone, true)).To(Succeed()) })
		Expect(observer.SetOnline(ctx, gone, false)).To(Succeed())
		record(ctx, "NUMAClaimFaulty")
	})

	It("hugepages of a claim are gone", func(ctx context.Context) {
		const pageBytes = 2 << 20
		zone := node.zones[len(node.zones)-1]
		pages := int(zone.hugepages2Mi / pageBytes)
		namespace := createNamespace(ctx, "pages")
		want := request{cpus: int64(zone.threadsPerCore), hugepages2MiBytes: zone.hugepages2Mi, zone: zone.id}
		waitRunning(ctx, createClaimed(ctx, namespace, claimPod("pages", want), want))
		DeferCleanup(func(ctx context.Context) { Expect(observer.SetHugepages(ctx, zone.id, pages)).To(Succeed()) })
		Expect(observer.SetHugepages(ctx, zone.id, pages-1)).To(Succeed())
		record(ctx, "NUMADeviceTainted")
	})

	It("the node does not divide its caches", func(ctx context.Context) {
		configureNode(ctx, "cache: {os: {ways: 31}, infra: {ways: 1}}")
		Eventually(ctx, scrape).Should(HaveKeyWithValue(`dra_numa_setting_unmet{setting="cache"}`, 1.0))
		record(ctx, "NUMASettingUnmet")
	})

	It("an administrator pauses publishing", func(ctx context.Context) {
		pausePublishing(ctx)
		Eventually(ctx, scrape).Should(HaveKeyWithValue("dra_numa_publishing_paused", 1.0))
		record(ctx, "NUMAPublishingPaused")
	})

	It("claims fill one zone of a node that spreads them", func(ctx context.Context) {
		configureNode(ctx, "zoneOrder: spread")
		namespace, core := createNamespace(ctx, "uneven"), oneCore(ctx)
		zone := zoneOf(fmt.Sprintf("numa-%d", core.zone))
		for i := range zone.cpus / int(core.cpus) {
			waitRunning(ctx, createClaimed(ctx, namespace, claimPod(fmt.Sprintf("uneven-%d", i), core), core))
		}
		record(ctx, "NUMAZonesUneven")
	})

	It("a program changes a partition again and again", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "repairs"), oneCore(ctx)
		pod := waitRunning(ctx, createClaimed(ctx, namespace, claimPod("repairs", core), core))
		inBackground(ctx, `while sleep 2; do echo member >"/proc/1/root/sys/fs/cgroup/$1/cpuset.cpus.partition"; done`, inKernel(snapshot(ctx), pod).Cgroup)
		record(ctx, "NUMARepairsRepeat")
	})

	It("a CDI spec is gone", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "records"), oneCore(ctx)
		claim := claimOf(ctx, waitRunning(ctx, createClaimed(ctx, namespace, claimPod("records", core), core)))
		specs, err := observer.CDISpecsNaming(ctx, string(claim.UID))
		Expect(err).NotTo(HaveOccurred())
		specs = slices.DeleteFunc(specs, func(name string) bool { return !strings.Contains(name, "-claim_") }) // the other one is of the metadata
		Expect(specs).To(HaveLen(1))
		spec := "/var/run/cdi/" + filepath.Base(specs[0])
		move := func(ctx context.Context, from, to string) {
			_, err := observer.Run(ctx, `chroot /proc/1/root mv "$1" "$2"`, from, to)
			Expect(err).NotTo(HaveOccurred())
		}
		DeferCleanup(move, spec+".away", spec)
		move(ctx, spec, spec+".away")
		record(ctx, "NUMARecordsDiffer")
	})

	It("claims are refused", func(ctx context.Context) {
		namespace := createNamespace(ctx, "refused")
		for i := range 4 {
			createTuned(ctx, namespace, fmt.Sprintf("refused-%d", i), `"governor": "performance"`)
		}
		record(ctx, "NUMAPrepareFails")
	})

	It("the disk is slow", func(ctx context.Context) {
		namespace, core := createNamespace(ctx, "disk"), oneCore(ctx)
		core.zone = anyZone
		DeferCleanup(inMonitor, "block_set_io_throttle root 0 0 0 0 0 0")
		inMonitor(ctx, "block_set_io_throttle root 0 0 0 0 0 2") // 2 writes each second
		createWhileRecording(ctx, namespace, "disk", core)
		record(ctx, "NUMADiskSlow")
	})

	It("the runtime has no NRI", func(ctx context.Context) {
		runtime := runtimeProcess(ctx)
		DeferCleanup(func(ctx context.Context) { Expect(observer.KillNamed(ctx, runtime)).To(Succeed()) })
		inBackground(ctx, `while usleep 50000; do rm -f /proc/1/root/var/run/nri/nri.sock; done`)
		Expect(observer.KillNamed(ctx, runtime)).To(Succeed())
		Eventually(ctx, scrape).Should(HaveKeyWithValue("dra_numa_nri_connected", 0.0))
		record(ctx, "NUMARuntimeDisconnected")
	})
})

// createWhileRecording creates some pods with claims in the background: of a counter, only
// what changes between two scrapes counts.
func createWhileRecording(ctx context.Context, namespace, name string, want request) {
	go func() {
		defer GinkgoRecover()
		time.Sleep(2 * scrapePeriod)
		for i := range 3 {
			createClaimed(ctx, namespace, claimPod(fmt.Sprintf("%s-%d", name, i), want), want)
			time.Sleep(scrapePeriod)
		}
	}()
}

// stopProcess stops a process of the node until the spec ends.
func stopProcess(ctx context.Context, name, argument string) {
	GinkgoHelper()
	Expect(observer.Signal(ctx, "STOP", name, argument)).To(Succeed())
	DeferCleanup(func(ctx context.Context) error { return observer.Signal(ctx, "CONT", name, argument) })
}

// inBackground runs a script on the node until the spec ends.
func inBackground(ctx context.Context, script string, args ...string) {
	GinkgoHelper()
	pid, err := observer.Run(ctx, `(`+script+`) >/dev/null 2>&1 & echo $!`, args...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) error {
		_, err := observer.Run(ctx, `kill "$1"`, strings.TrimSpace(pid))
		return err
	})
}
