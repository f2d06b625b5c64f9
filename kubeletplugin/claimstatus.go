package kubeletplugin

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	resourceapply "k8s.io/client-go/applyconfigurations/resource/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

// Conditions of a device in a claim's status.
const (
	conditionReady     = "Ready"     // prepared: containers may start
	conditionExclusive = "Exclusive" // the kernel keeps all other tasks off its CPUs while a container runs
)

// shareData is what a claim's status says of each share beside its conditions.
type shareData struct {
	CPUs      string `json:"cpus"` // kernel list form; "" for a share of memory only
	Mems      string `json:"mems"` // NUMA nodes, in the same form
	Partition string `json:"partition,omitempty"`
	Why       string `json:"why,omitempty"` // these CPUs
}

// claimStatuses writes to claims what was prepared for them. The writes follow
// Prepare: a container does not wait for the API server. What is wanted is
// derived from the grant, so after a restart the kubelet's next call repeats it.
type claimStatuses struct {
	client      kubernetes.Interface
	exclusivity driver.Exclusivity // of the node
	now         func() time.Time
	queue       workqueue.TypedRateLimitingInterface[types.UID]

	mu     sync.Mutex
	wanted map[types.UID]*resourceapply.ResourceClaimApplyConfiguration
}

func newClaimStatuses(client kubernetes.Interface, exclusivity driver.Exclusivity) *claimStatuses {
	limit := workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](firstRetry, lastRetry)
	return &claimStatuses{
		client: client, exclusivity: exclusivity, now: time.Now,
		queue:  workqueue.NewTypedRateLimitingQueue(limit),
		wanted: make(map[types.UID]*resourceapply.ResourceClaimApplyConfiguration),
	}
}

// set asks for the status of a prepared claim; one that has it already costs no
// request.
func (s *claimStatuses) set(claim *resourceapi.ResourceClaim, prepared []driver.PreparedDevice) {
	devices := s.devices(claim, prepared)
	if len(devices) == 0 || hasStatuses(claim, devices) {
		return
	}
	status := resourceapply.ResourceClaimStatus()
	for _, device := range devices {
		status.WithDevices(applyDevice(device))
	}
	s.mu.Lock()
	s.wanted[claim.UID] = resourceapply.ResourceClaim(claim.Name, claim.Namespace).WithUID(claim.UID).WithStatus(status)
	s.mu.Unlock()
	s.queue.Add(claim.UID)
}

// forget is for a claim that holds nothing any more: the API server clears the
// status with the allocation.
func (s *claimStatuses) forget(claimUID types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.wanted, claimUID)
}

// run writes until ctx ends.
func (s *claimStatuses) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, s.queue.ShutDown)
	defer stop()
	for {
		claimUID, shutdown := s.queue.Get()
		if shutdown {
			return
		}
		s.write(ctx, claimUID)
		s.queue.Done(claimUID)
	}
}

func (s *claimStatuses) write(ctx context.Context, claimUID types.UID) {
	s.mu.Lock()
	wanted := s.wanted[claimUID]
	s.mu.Unlock()
	if wanted == nil {
		s.queue.Forget(claimUID)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, claimTimeout) // Stop waits for it
	defer cancel()
	_, err := s.client.ResourceV1().ResourceClaims(*wanted.Namespace).ApplyStatus(ctx, wanted,
		metav1.ApplyOptions{FieldManager: driver.Name, Force: true})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // gone, or another claim of that name
		klog.FromContext(ctx).Error(err, "Claim status is not written yet", "claim", klog.KRef(*wanted.Namespace, *wanted.Name), "claimUID", claimUID)
		s.queue.AddRateLimited(claimUID)
		return
	}
	s.queue.Forget(claimUID)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.wanted[claimUID] == wanted { // not asked for anew meanwhile
		delete(s.wanted, claimUID)
	}
}

// devices is the status that the claim should have; admin access has none.
func (s *claimStatuses) devices(claim *resourceapi.ResourceClaim, prepared []driver.PreparedDevice) []resourceapi.AllocatedDeviceStatus {
	var devices []resourceapi.AllocatedDeviceStatus
	for _, p := range prepared {
		if p.Share == nil {
			continue
		}
		data, err := json.Marshal(shareData{
			CPUs: p.Share.CPUs.String(), Mems: p.Share.Mems().String(), Partition: p.Share.Partition(), Why: p.Share.Why,
		})
		if err != nil {
			panic(err) // four strings
		}
		device := resourceapi.AllocatedDeviceStatus{
			Driver: driver.Name, Pool: p.Pool, Device: p.Device,
			ShareID: (*string)(p.ShareID), Data: &runtime.RawExtension{Raw: data},
		}
		if now := findStatus(claim, device); now != nil {
			device.Conditions = slices.Clone(now.Conditions) // the time of a condition is when it last changed
		}
		for _, condition := range conditions(p.Share, s.exclusivity) {
			condition.LastTransitionTime = metav1.NewTime(s.now())
			meta.SetStatusCondition(&device.Conditions, condition)
		}
		devices = append(devices, device)
	}
	return devices
}

func conditions(share *driver.Share, exclusivity driver.Exclusivity) []metav1.Condition {
	exclusive := metav1.Condition{
		Type: conditionExclusive, Status: metav1.ConditionTrue, Reason: "KernelPartition",
		Message: "the kernel keeps all other tasks off the CPUs while a container of the claim runs",
	}
	switch {
	case share.CPUs.IsEmpty():
		exclusive.Status, exclusive.Reason, exclusive.Message = metav1.ConditionFalse, "NoCPUs", "the claim has no CPUs of this device"
	case exclusivity != driver.ExclusivityKernel:
		exclusive.Status, exclusive.Reason = metav1.ConditionFalse, "NotSupported"
		exclusive.Message = "the node's kernel was not found to have remote cpuset partitions (Linux 6.11 or newer has)"
	}
	return []metav1.Condition{
		{Type: conditionReady, Status: metav1.ConditionTrue, Reason: "Prepared", Message: "containers of the claim may start"},
		exclusive,
	}
}

// hasStatuses reports whether the claim says all of that already.
func hasStatuses(claim *resourceapi.ResourceClaim, devices []resourceapi.AllocatedDeviceStatus) bool {
	for _, device := range devices {
		if now := findStatus(claim, device); now == nil || !apiequality.Semantic.DeepEqual(*now, device) {
			return false
		}
	}
	return true
}

func findStatus(claim *resourceapi.ResourceClaim, device resourceapi.AllocatedDeviceStatus) *resourceapi.AllocatedDeviceStatus {
	for i, now := range claim.Status.Devices {
		if now.Driver == device.Driver && now.Pool == device.Pool && now.Device == device.Device && ptr.Equal(now.ShareID, device.ShareID) {
			return &claim.Status.Devices[i]
		}
	}
	return nil
}

func applyDevice(device resourceapi.AllocatedDeviceStatus) *resourceapply.AllocatedDeviceStatusApplyConfiguration {
	apply := resourceapply.AllocatedDeviceStatus().
		WithDriver(device.Driver).WithPool(device.Pool).WithDevice(device.Device).WithData(*device.Data)
	apply.ShareID = device.ShareID
	for _, c := range device.Conditions {
		apply.WithConditions(metaapply.Condition().WithType(c.Type).WithStatus(c.Status).WithReason(c.Reason).
			WithMessage(c.Message).WithLastTransitionTime(c.LastTransitionTime))
	}
	return apply
}
