package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/demo"
	"github.com/dra-driver-numa/dra-driver-numa/test/client"
	"github.com/dra-driver-numa/dra-driver-numa/test/kernel"
)

// driverName is the name the driver publishes under.
const driverName = "dra.numa"

var (
	kubeconfig      = flag.String("kubeconfig", "", "path of the test cluster's kubeconfig; KUBECONFIG is not read")
	require         = flag.Bool("e2e.require", false, "fail instead of skip without -kubeconfig, or with a node that a spec cannot run on")
	image           = flag.String("observer-image", demo.Image, "image of all pods: busybox with its commands in /bin")
	driverNamespace = flag.String("driver-namespace", "dra-numa", "namespace of the driver's DaemonSet")
	driverDaemonSet = flag.String("driver-daemonset", "dra-driver-numa", "name of the driver's DaemonSet")
)

// ofKernel marks specs whose answer is the kernel's, or that of PID 1: make test
// runs them on a second kind of node, too.
var ofKernel = Label("kernel")

// ofMachine marks specs that change the machine below the node: they reboot it, set its
// clock, its CPUs or its hugepages. Where others share the machine, as on kind, they are left
// out.
var ofMachine = Label("machine")

// ofGate marks specs of caches and frequencies that every change has to pass: make
// e2e-devices runs them, too. They assume no machine, and ask the kernel and the NodeConfig
// what the node has.
var ofGate = Label("gate", withOwnBoot)

// atLength marks specs that take a minute or so and guard what seldom changes, or what
// another suite guards, too, such as upgrade-test and reach: make e2e runs them, make test
// does without them.
var atLength = Label("long")

// withCrowd marks specs that leave a node behind which is busy for minutes: make
// e2e runs them when all others are done, make test does without them.
var withCrowd = Label("crowd")

// What the suite tests, set before the first spec.
var (
	cluster  *client.Cluster
	observer *kernel.Observer
	node     testNode
)

// The specs kill daemons, kubelets and the node: go test ./... leaves the cluster of KUBECONFIG alone.
func TestOnlyTheClusterOfTheFlagIsUsed(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(kubeconfig, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	again := exec.Command(os.Args[0], "-test.v", "-test.run", "^TestE2E$")
	again.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	output, err := again.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "--- SKIP: TestE2E") {
		t.Errorf("%v, want the suite to be skipped:\n%s", err, output)
	}
}

func TestE2E(t *testing.T) {
	if *kubeconfig == "" {
		const why = "no cluster: name a test cluster with -kubeconfig; the specs kill its daemons and change its nodes"
		if *require {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	RegisterFailHandler(Fail)
	klog.SetLogger(GinkgoLogr) // client-go complains of connections whose other end a spec kills
	SetDefaultEventuallyTimeout(firstTimeout)
	EnforceDefaultTimeoutsWhenUsingContexts()
	SetDefaultEventuallyPollingInterval(pollInterval)
	RunSpecs(t, "dra-driver-numa")
}

var _ = BeforeSuite(func(ctx context.Context) {
	var err error
	cluster, err = client.New(*kubeconfig)
	Expect(err).NotTo(HaveOccurred())
	waitDriverReady(ctx)
	publishedZones := func(ctx context.Context) []publishedZone { return readNode(ctx).zones }
	Eventually(ctx, publishedZones).ShouldNot(BeEmpty(), "no node publishes a zone of driver %s", driverName)
	node = readNode(ctx)
	slicesWritten.watch()
	expectNoClaims(ctx)

	namespace := createNamespace(ctx, "observer")
	observer, err = kernel.Start(ctx, cluster.Kubernetes, cluster.Config, namespace, node.name, *image)
	DeferCleanup(func(ctx context.Context) { Expect(observer.Remove(ctx)).To(Succeed()) })
	Expect(err).NotTo(HaveOccurred())
	measurePace(ctx)
	checkNode(snapshot(ctx))
})

// lacks ends a spec that the node is too small for. With -e2e.require, as on
// the rig, every spec has to run.
func lacks(format string, args ...any) {
	GinkgoHelper()
	if *require {
		Fail(fmt.Sprintf(format, args...))
	}
	Skip(fmt.Sprintf(format, args...))
}

// snapshot asks the node's kernel.
func snapshot(ctx context.Context) kernel.Snapshot {
	GinkgoHelper()
	defer spend(kernelAnswers)()
	s, err := observer.Snapshot(ctx)
	Expect(err).NotTo(HaveOccurred())
	return s
}

// expectNoClaims stops the suite if somebody else's claims hold zones: the specs
// need the whole node.
func expectNoClaims(ctx context.Context) {
	claims, err := cluster.Kubernetes.ResourceV1().ResourceClaims("").List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	for _, claim := range claims.Items {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			Expect(result.Driver).NotTo(Equal(driverName),
				"claim %s/%s holds device %s; delete its pod, the suite needs the whole node", claim.Namespace, claim.Name, result.Device)
		}
	}
}
