package apiserver

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

const over = "Normal NUMADriverReady Zones of this node are published"

// noDevices waits until nothing of ours is published for the node, of which
// another driver publishes a number of devices.
func noDevices(t *testing.T, admin kubernetes.Interface, node string, ofOthers int) {
	t.Helper()
	count := -1
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if count = len(nodeDevices(t, admin, node)); count == ofOthers {
			return
		}
	}
	t.Errorf("%d devices are published, want %d", count, ofOthers)
}

// mustAnswer waits for an answer of /readyz and returns it without its newline.
func mustAnswer(t *testing.T, plugin daemon, status int, text string) string {
	t.Helper()
	answer, ok := readyz(plugin, patience, status, text)
	if !ok {
		t.Fatalf("readyz = %q, want %d with %q", answer, status, text)
	}
	return strings.TrimSpace(answer)
}

// startReady installs the chart, starts the plugin of a node with nothing but the
// rights of the chart's service account, and waits until it is ready.
func startReady(t *testing.T, admin kubernetes.Interface, node, kubeletRoot string) daemon {
	t.Helper()
	installChart(t)
	plugin := startPlugin(t, admin, asDaemon(t, node), node, kubeletRoot)
	mustAnswer(t, plugin, http.StatusOK, "ok")
	return plugin
}

// sameEvents waits for the events that kubectl describe node shows of us, each as
// its type, reason and note. They come after the answer of /readyz.
func sameEvents(t *testing.T, admin kubernetes.Interface, node string, want ...string) {
	t.Helper()
	slices.Sort(want) // the time of an event has seconds only
	var diff string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		list, err := admin.CoreV1().Events("").List(t.Context(), metav1.ListOptions{
			FieldSelector: "involvedObject.kind=Node,involvedObject.uid=" + node + ",reportingComponent=" + driver.Name,
		})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, event := range list.Items {
			got = append(got, event.Type+" "+event.Reason+" "+event.Message)
		}
		slices.Sort(got)
		if diff = cmp.Diff(want, got); diff == "" {
			return
		}
	}
	t.Errorf("events of node %s (-want +got):\n%s", node, diff)
}

func TestStaticManagerEmptiesThePool(t *testing.T) {
	admin := clientFor(t, "APISERVER_KUBECONFIG")
	root, node := t.TempDir(), "static-manager"
	plugin := startReady(t, admin, node, root)

	state := filepath.Join(root, "memory_manager_state")
	files.Write(t, state, `{"policyName":"Static","machineState":{},"checksum":1}`)
	keep(t, root, testBoot)
	reason := mustAnswer(t, plugin, http.StatusServiceUnavailable, `kubelet's memory manager policy is "Static"`)
	noDevices(t, admin, node, 0)
	sameEvents(t, admin, node, "Warning NUMADriverNotReady "+reason)

	if err := os.Remove(state); err != nil {
		t.Fatal(err)
	}
	keep(t, root, testBoot)
	mustAnswer(t, plugin, http.StatusOK, "ok")
	sameZones(t, admin, node)
	sameEvents(t, admin, node, "Warning NUMADriverNotReady "+reason, over)
}

// TestAnotherCPUDriverEmptiesThePool has that driver come after ours. Its slices then go
// away as when the kubelet starts, and nothing comes back.
func TestAnotherCPUDriverEmptiesThePool(t *testing.T) {
	admin := clientFor(t, "APISERVER_KUBECONFIG")
	node := "two-drivers"
	plugin := startReady(t, admin, node, t.TempDir())

	slice := &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "two-drivers-other"},
		Spec: resourceapi.ResourceSliceSpec{
			Driver: "dra.cpu", NodeName: &node, Pool: resourceapi.ResourcePool{Name: node, ResourceSliceCount: 1},
			Devices: []resourceapi.Device{{
				Name:     "socket-0",
				Capacity: map[resourceapi.QualifiedName]resourceapi.DeviceCapacity{"dra.cpu/cpu": {Value: resource.MustParse("8")}},
			}},
		},
	}
	if _, err := admin.ResourceV1().ResourceSlices().Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	mustAnswer(t, plugin, http.StatusServiceUnavailable, `driver "dra.cpu" publishes CPUs of this node`)
	noDevices(t, admin, node, 1)

	if err := admin.ResourceV1().ResourceSlices().Delete(t.Context(), slice.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	mustAnswer(t, plugin, http.StatusServiceUnavailable, `driver "dra.cpu" published CPUs of this node and may only be restarting`)
	noDevices(t, admin, node, 0)
}

func sameZones(t *testing.T, admin kubernetes.Interface, node string) {
	t.Helper()
	want := driver.Devices(rigMachine(), driver.Config{Exclusivity: driver.ExclusivityKernel}, nil)
	if diff := cmp.Diff(want, nodeDevices(t, admin, node)); diff != "" {
		t.Errorf("devices (-sent +kept):\n%s", diff)
	}
}

// TestClaimsOnRecordAreLookedUp asks as the daemon does when it recovers.
func TestClaimsOnRecordAreLookedUp(t *testing.T) {
	admin := clientFor(t, "APISERVER_KUBECONFIG")
	installChart(t)
	claim := create(t, admin.ResourceV1().ResourceClaims("default"), &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "on-record"},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{
			{Name: "zone", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "zone.dra.numa"}},
		}}},
	})
	answers, err := kubeletplugin.ReadClaims(t.Context(), asDaemon(t, "any"), []ledger.Grant{
		{Namespace: "default", Name: "on-record", UID: claim.UID}, {Namespace: "default", Name: "gone", UID: "uid-2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if answer := answers[claim.UID]; answer == nil || answer.UID != claim.UID {
		t.Errorf("claim on record: %v", answer)
	}
	if answer, asked := answers["uid-2"]; !asked || answer != nil {
		t.Errorf("claim that is gone: %v, %t", answer, asked)
	}
}
