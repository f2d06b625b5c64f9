package scheduler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/attached"
	"github.com/dra-driver-numa/dra-driver-numa/driver/dividing"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// spelled is a claim, and what the scheduler gives it on a free node: devices, gaveUp, or
// nothing. Classes are those of the chart, by the first word of their names.
type spelled struct{ what, claim, want string }

func spellings() []spelled {
	const (
		zones    = "{name: a, exactly: {deviceClassName: zone, count: %d, capacity: {requests: {cpu: 2}}}}"
		onSocket = `{name: a, exactly: {deviceClassName: zone, capacity: {requests: {cpu: 2}}, selectors: [{cel: {expression: 'device.attributes["dra.numa"].socket == %d'}}]}}`
		ways     = `{name: b, exactly: {deviceClassName: cache, capacity: {requests: {ways: 2}}, selectors: [{cel: {expression: '%s'}}]}}`
		drive    = "{name: b, exactly: {deviceClassName: nvme}}"
	)
	one := fmt.Sprintf(zones, 1)
	claim := func(constraint string, requests ...string) string {
		return "{requests: [" + strings.Join(requests, ", ") + "], constraints: [" + constraint + "]}"
	}
	return []spelled{
		{"class", claim("", one), "a=numa-0 cpu:2 memory:0"},
		{"selector", claim("", fmt.Sprintf(onSocket, 1)), "a=numa-1 cpu:2 memory:0"},
		{"selector of a missing attribute", claim("", strings.Replace(fmt.Sprintf(onSocket, 1), ".socket", ".nothing", 1)), gaveUp},
		{"match l3", claim("{matchAttribute: dra.numa/l3}", fmt.Sprintf(onSocket, 1), fmt.Sprintf(ways, "true")), "a=numa-1 cpu:2 memory:0, b=cache-1-guaranteed bandwidthPercent:100 classes:1 ways:2"},
		{"match another l3", claim("{matchAttribute: dra.numa/l3}", fmt.Sprintf(onSocket, 1), fmt.Sprintf(ways, `device.attributes["dra.numa"].l3 == 0`)), ""},
		{"match socket", claim("{matchAttribute: dra.numa/socket}", one, drive), "a=numa-1 cpu:2 memory:0, b=nvme-0000-21-00-0"},
		{"match a missing attribute", claim("{matchAttribute: dra.numa/nothing}", one), ""},
		{"distinct sockets", claim("{distinctAttribute: dra.numa/socket}", fmt.Sprintf(zones, 2)), "a=numa-0 cpu:2 memory:0, a=numa-1 cpu:2 memory:0"},
		{"three distinct sockets", claim("{distinctAttribute: dra.numa/socket}", fmt.Sprintf(zones, 3)), ""},
		{"more CPUs than a zone has", claim("", strings.Replace(one, "cpu: 2", "cpu: 9", 1)), ""},
	}
}

// spelledSlices are what the driver publishes for a node with two sockets, divided caches
// and a drive on the second socket.
func spelledSlices(t *testing.T, node string) (published []*resourceapi.ResourceSlice) {
	t.Helper()
	machine, err := numa.Read(fake.Machine{
		Sockets: 2, CoresPerSocket: 8, MemoryBytes: 1 << 30, PCI: []fake.Function{fake.NVMe("0000:21:00.0", 1, 0)},
		Resctrl: &fake.Resctrl{CLOSIDs: 16, Ways: 20, MinBandwidth: 10, BandwidthStep: 10},
	}.FS())
	if err != nil {
		t.Fatal(err)
	}
	all, err := attached.NewSelection(deviceclasses.DeviceSelection{Include: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	config := driver.Config{
		NodeName: node, Exclusivity: driver.ExclusivityKernel, Attached: all,
		Caches: &dividing.Config{Pools: *object.Parse[deviceclasses.CachePools](t, "{os: {ways: 2}, guaranteed: {ways: 8}}")},
	}
	pool := driver.Resources(node, driver.Devices(machine, config, nil)).Pools[node]
	for i, part := range pool.Slices {
		published = append(published, &resourceapi.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", node, i)},
			Spec: resourceapi.ResourceSliceSpec{
				Driver: driver.Name, NodeName: &node, Devices: part.Devices, SharedCounters: part.SharedCounters,
				Pool: resourceapi.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: int64(len(pool.Slices))},
			},
		})
	}
	return published
}

// TestSchedulerAllocatesAlikeInBothSpellings: a claim gets the same on a node whose slices
// have attributes as this driver publishes them, and on one whose slices have the driver's
// domain in their names, as those of older builds.
func TestSchedulerAllocatesAlikeInBothSpellings(t *testing.T) {
	api := connect(t, "APISERVER_KUBECONFIG")
	waitForAccount(t, api)
	run := fmt.Sprintf("spelling-%d", time.Now().Unix()%100_000) // so that one cluster can have several runs
	resources := api.ResourceV1()
	for _, kind := range []string{"zone", "cache", "nvme"} {
		class := object.Classes(t)[kind+".dra.numa"]
		class.Name = run + "-" + kind
		if _, err := resources.DeviceClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	rows := spellings()
	var names []string
	for i := range rows {
		name := fmt.Sprintf("%s-%d", run, i)
		choice{nodes: []string{"{}", "{}"}}.createNodes(t, api, name)
		published, older := spelledSlices(t, name+"-a"), object.WithDomain(spelledSlices(t, name+"-b"))
		if own := object.OwnDomain(published); len(own) > 0 || len(object.OwnDomain(older)) == 0 {
			t.Errorf("published with the driver's domain: %s", own)
		}
		parallel(t, append(creations(resources.ResourceSlices(), published), creations(resources.ResourceSlices(), older)...))
		names = append(names, name+"-a", name+"-b")
	}
	time.Sleep(3 * time.Second) // the scheduler learns of them
	for i, name := range names {
		createClaimant(t, api, run, name, rows[i/2].claim)
	}
	pods, claims := waitForScheduler(t, api, names), listClaims(t, api)
	for i, name := range names {
		row, spelling := rows[i/2], []string{"without", "with"}[i%2]
		if got := allocatedTo(pods[name], claims[name]); got != row.want {
			t.Errorf("%s, %s the driver's domain: %q, want %q: %s", row.what, spelling, got, row.want, message(pods[name]))
		}
	}
}

// createClaimant creates a claim, and a pod for the node of the same name that has it.
func createClaimant(t *testing.T, api kubernetes.Interface, run, name, devices string) {
	t.Helper()
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	claim.Spec.Devices = *object.Parse[resourceapi.DeviceClaim](t, strings.ReplaceAll(devices, "deviceClassName: ", "deviceClassName: "+run+"-"))
	if _, err := api.ResourceV1().ResourceClaims(namespace).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := object.Parse[corev1.Pod](t, strings.ReplaceAll(`
metadata: {name: NAME}
spec:
  nodeSelector: {kubernetes.io/hostname: NAME}
  tolerations: [{operator: Exists}]
  resourceClaims: [{name: devices, resourceClaimName: NAME}]
  containers: [{name: main, image: none, resources: {claims: [{name: devices}]}}]`, "NAME", name))
	if _, err := api.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// allocatedTo is what became of a pod and its claim, without the names of driver and pool.
func allocatedTo(pod *corev1.Pod, claim *resourceapi.ResourceClaim) string {
	switch {
	case scheduled(pod).Reason == corev1.PodReasonSchedulerError:
		return gaveUp
	case pod.Spec.NodeName == "":
		return ""
	}
	return strings.ReplaceAll(devices(claim), "="+driver.Name+"/"+pod.Spec.NodeName+"/", "=")
}
