package kubeletplugin

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

const shareUID = types.UID("0b1c2d3e-0000-4000-8000-000000000001")

func statusClaim() *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "default", UID: "uid-c"}}
}

func preparedShare(cpus cpuset.Set) []driver.PreparedDevice {
	return []driver.PreparedDevice{
		{Request: "watch", Pool: node, Device: "numa-0"}, // admin access
		{Request: "main", Pool: node, Device: "numa-1", ShareID: new(shareUID), Share: &driver.Share{Zone: 1, CPUs: cpus, Why: "2 whole cores"}},
	}
}

func TestClaimStatusSaysWhatWasPrepared(t *testing.T) {
	api := fake.NewClientset(statusClaim())
	statuses := newClaimStatuses(api, driver.ExclusivityKernel)
	statuses.now = func() time.Time { return time.Unix(1000, 0) }
	go statuses.run(t.Context())
	statuses.set(statusClaim(), preparedShare(cpuset.New(4, 5, 6, 7)))
	claim := waitStatus(t, api)
	device := claim.Status.Devices[0]
	if device.Driver != driver.Name || device.Pool != node || device.Device != "numa-1" || *device.ShareID != string(shareUID) {
		t.Errorf("status is of device %s/%s/%s share %s", device.Driver, device.Pool, device.Device, *device.ShareID)
	}
	var data shareData
	if err := json.Unmarshal(device.Data.Raw, &data); err != nil || data != (shareData{"4-7", "1", "root", "2 whole cores"}) {
		t.Errorf("data %s, %v", device.Data.Raw, err)
	}
	for _, want := range []string{conditionReady, conditionExclusive} {
		if condition := findCondition(device, want); condition == nil || condition.Status != metav1.ConditionTrue {
			t.Errorf("condition %s is %+v", want, condition)
		}
	}

	// The kubelet repeats Prepare when it restarts: nothing is written then.
	writes := len(api.Actions())
	statuses.now = func() time.Time { return time.Unix(2000, 0) }
	statuses.set(claim, preparedShare(cpuset.New(4, 5, 6, 7)))
	if statuses.queue.Len() != 0 || len(statuses.wanted) != 0 || len(api.Actions()) != writes {
		t.Error("a claim that says so already is written again")
	}
}

func TestClaimStatusWithoutExclusivity(t *testing.T) {
	for name, row := range map[string]struct {
		exclusivity driver.Exclusivity
		cpus        cpuset.Set
		reason      string
	}{
		"no partitions": {driver.ExclusivityNone, cpuset.New(4), "NotSupported"},
		"memory only":   {driver.ExclusivityKernel, cpuset.Set{}, "NoCPUs"},
	} {
		t.Run(name, func(t *testing.T) {
			devices := newClaimStatuses(nil, row.exclusivity).devices(statusClaim(), preparedShare(row.cpus))
			condition := findCondition(devices[0], conditionExclusive)
			if condition == nil || condition.Status != metav1.ConditionFalse || condition.Reason != row.reason {
				t.Errorf("condition %+v, want False with reason %s", condition, row.reason)
			}
		})
	}
}

func TestClaimStatusIsRetriedAndForgotten(t *testing.T) {
	api := fake.NewClientset(statusClaim())
	failures := make(chan struct{}, 10)
	api.PrependReactor("patch", "resourceclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		if len(failures) == 2 {
			return false, nil, nil
		}
		failures <- struct{}{}
		return true, nil, context.DeadlineExceeded
	})
	statuses := newClaimStatuses(api, driver.ExclusivityKernel)
	go statuses.run(t.Context())
	statuses.set(statusClaim(), preparedShare(cpuset.New(4)))
	waitStatus(t, api)
	if len(failures) != 2 {
		t.Errorf("%d failures before the status was there, want 2", len(failures))
	}

	forgotten := newClaimStatuses(api, driver.ExclusivityKernel)
	forgotten.set(statusClaim(), preparedShare(cpuset.New(5)))
	forgotten.forget("uid-c")
	before := len(api.Actions())
	forgotten.write(t.Context(), "uid-c")
	if len(api.Actions()) != before {
		t.Error("the status of a claim that was unprepared is written")
	}
}

func waitStatus(t *testing.T, api *fake.Clientset) *resourceapi.ResourceClaim {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		claim, err := api.ResourceV1().ResourceClaims("default").Get(t.Context(), "c", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(claim.Status.Devices) == 1 {
			return claim
		}
	}
	t.Fatal("after 10 s the claim has no status of one device")
	return nil
}

func findCondition(device resourceapi.AllocatedDeviceStatus, kind string) *metav1.Condition {
	for i := range device.Conditions {
		if device.Conditions[i].Type == kind {
			return &device.Conditions[i]
		}
	}
	return nil
}
