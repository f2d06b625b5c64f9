package apiserver

import (
	"context"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	draapi "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

// reservedClaim is a claim with two CPUs of zone 1 that a pod is to use, as the
// scheduler leaves it, until the test ends.
func reservedClaim(t *testing.T, admin kubernetes.Interface, node string) *resourceapi.ResourceClaim {
	t.Helper()
	pods, claims := admin.CoreV1().Pods("default"), admin.ResourceV1().ResourceClaims("default")
	pod, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken:  new(false),
			TerminationGracePeriodSeconds: new(int64(0)),
			Containers: []corev1.Container{{
				Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "zone"}}},
			}},
			ResourceClaims: []corev1.PodResourceClaim{{Name: "zone", ResourceClaimName: &node}},
			NodeSelector:   map[string]string{"no": "where"},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	claim, err := claims.Create(t.Context(), &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: node},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{
			{Name: "zone", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "zone.dra.numa"}},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		//nolint:usetesting // the test's own context has ended by now
		ctx := context.Background()
		if err := pods.Delete(ctx, pod.Name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete pod: %v", err)
		}
		if err := claims.Delete(ctx, claim.Name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete claim: %v", err)
		}
	})
	claim.Status.Allocation = &resourceapi.AllocationResult{
		Devices: resourceapi.DeviceAllocationResult{Results: []resourceapi.DeviceRequestAllocationResult{{
			Request: "zone", Driver: driver.Name, Pool: node, Device: "numa-1",
			ShareID:          &claim.UID,
			ConsumedCapacity: map[resourceapi.QualifiedName]resource.Quantity{"cpu": resource.MustParse("2")},
		}}},
		// Whose daemon may write the status.
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		}}},
	}
	claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: pod.UID}}
	if claim, err = claims.UpdateStatus(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return claim
}

// prepare asks as the kubelet does.
func (d daemon) prepare(t *testing.T, claim *resourceapi.ResourceClaim) {
	t.Helper()
	connection, err := grpc.NewClient("unix:"+filepath.Join(d.dir, "dra.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	answer, err := draapi.NewDRAPluginClient(connection).NodePrepareResources(t.Context(), &draapi.NodePrepareResourcesRequest{
		Claims: []*draapi.Claim{{Namespace: claim.Namespace, Name: claim.Name, Uid: string(claim.UID)}},
	})
	if err != nil || answer.GetClaims()[string(claim.UID)].GetError() != "" {
		t.Fatalf("prepare: %v, %v", answer, err)
	}
}

// within waits until the function finds nothing wrong. How long that took is printed
// if it is more than promised, and an error only after the patience for a slow host.
func within(t *testing.T, promised time.Duration, wrong func() string) {
	t.Helper()
	var last string
	begin := time.Now()
	for deadline := begin.Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if last = wrong(); last == "" {
			if took := time.Since(begin); took > promised {
				t.Logf("took %s, promised are %s", took.Round(time.Millisecond), promised)
			}
			return
		}
	}
	t.Errorf("after %s %s", patience, last)
}

func TestLostPartitionIsToldEverywhere(t *testing.T) {
	admin := clientFor(t, "APISERVER_KUBECONFIG")
	node := "lost-partition"
	plugin := startReady(t, admin, node, t.TempDir())
	claim := reservedClaim(t, admin, node)
	plugin.prepare(t, claim)
	grant, _ := plugin.core.Grant(claim.UID)
	given := pin.Pinning{CPUs: grant.Shares[0].CPUs(), Mems: grant.Shares[0].Mems()}
	cgroup := pin.Live{Cgroup: "pod/c", Claims: []pin.Claim{{ClaimRef: pin.ClaimRef{UID: string(claim.UID), Name: "default/" + node}, Pinning: given}}}
	look := func(fault string, downgraded bool) {
		cgroup.Fault, cgroup.Downgraded = fault, downgraded
		plugin.Observe([]pin.Live{cgroup})
	}
	lost := "Warning NUMAExclusivityLost Other tasks may run on CPUs " + given.CPUs.String() + " of claim lost-partition: root invalid (x)"
	restored := "Normal NUMAExclusivityRestored CPUs " + given.CPUs.String() + " of claim lost-partition are exclusive again. For at most 2s they were not: root invalid (x)"

	look("", false)
	wantTold(t, admin, claim, "True KernelPartition", "")
	look("root invalid (x)", false)
	wantTold(t, admin, claim, "True KernelPartition", "") // the keeper may yet repair it
	time.Sleep(time.Second)
	look("root invalid (x)", false)
	wantTold(t, admin, claim, "False PartitionInvalid", "numa-1 partition-invalid", lost)
	mustAnswer(t, plugin, http.StatusOK, "ok")
	sameEvents(t, admin, node) // the node is as ready as before
	look("", false)
	wantTold(t, admin, claim, "True KernelPartition", "", lost, restored)
	look("", true) // another pod has come
	wantTold(t, admin, claim, "False Shared", "", lost, restored)
}

// lastedAnySeconds is how long the node says that something lasted: a second or two, and more
// on a busy machine.
var lastedAnySeconds = regexp.MustCompile(`For at most \d+s`)

// wantTold waits for the claim's condition, the taints of the node's devices and
// the events of the claim's pod.
func wantTold(t *testing.T, admin kubernetes.Interface, claim *resourceapi.ResourceClaim, condition, taints string, events ...string) {
	t.Helper()
	within(t, 10*time.Second, func() string {
		now, err := admin.ResourceV1().ResourceClaims("default").Get(t.Context(), claim.Name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		var got string
		for _, device := range now.Status.Devices {
			for _, c := range device.Conditions {
				if c.Type == "Exclusive" {
					got += string(c.Status) + " " + c.Reason
				}
			}
		}
		if got != condition {
			return "the claim is " + got + ", want " + condition
		}
		got = ""
		for _, device := range nodeDevices(t, admin, claim.Name) {
			for _, taint := range device.Taints {
				got += device.Name + " " + taint.Value
			}
		}
		if got != taints {
			return "the taints are " + got + ", want " + taints
		}
		list, err := admin.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{
			FieldSelector: "involvedObject.kind=Pod,involvedObject.uid=" + string(claim.Status.ReservedFor[0].UID) + ",reportingComponent=" + driver.Name,
		})
		if err != nil {
			return err.Error()
		}
		var all []string
		for _, event := range list.Items {
			all = append(all, lastedAnySeconds.ReplaceAllString(event.Type+" "+event.Reason+" "+event.Message, "For at most 2s"))
		}
		slices.Sort(all)
		if want := slices.Sorted(slices.Values(events)); !slices.Equal(all, want) {
			return "the events are " + join(all) + ", want " + join(want)
		}
		return ""
	})
}
