package kubeletplugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
)

// claimStatuses writes to each ResourceClaim what was prepared for it, and whether that
// still holds. It writes in the background after Prepare, so that no container waits
// for the API server. It derives the status from the grant and from the current state
// of the kernel. So after a restart it arrives at the same status.
type claimStatuses struct {
	client kubernetes.Interface
	node   driver.Exclusivity
	pool   string
	now    func() time.Time
	queue  workqueue.TypedRateLimitingInterface[types.UID]

	mu         sync.Mutex
	others     sharedPoolState
	partitions partitionStates
	claims     map[types.UID]*claimStatus
}

// claimStatus is the status of one claim that has a grant.
type claimStatus struct {
	grant ledger.Grant
	pace  pace // of writes

	seen   *resourceapi.ResourceClaim // as the API server last had it; nil if that is not known
	unsure bool                       // a write has no answer yet, or got none, so the API server may have more than seen
}

const (
	statusWait = 10 * time.Second // of a claim whose status was written too often, at least

	// While the API server is overloaded or away, the statuses of the node wait, each time
	// longer: see failing. The waits of many nodes differ: lastPause is the longest of them.
	firstPause = time.Second
	lastPause  = time.Minute
)

func newClaimStatuses(client kubernetes.Interface, config driver.Config) *claimStatuses {
	return &claimStatuses{
		client: client, node: config.Exclusivity, pool: config.NodeName, now: time.Now,
		queue:  newQueue[types.UID](),
		claims: make(map[types.UID]*claimStatus),
	}
}

// set takes what a claim was given. The claim is as the API server has it, or nil if
// that is not known. If it already has the right status, set causes no request.
func (s *claimStatuses) set(claim *resourceapi.ResourceClaim, grant ledger.Grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := &claimStatus{grant: grant, seen: claim}
	if before := s.claims[grant.UID]; before != nil {
		status.unsure, status.pace = before.unsure, before.pace
	} else {
		status.pace = statusPace()
	}
	s.claims[grant.UID] = status
	s.check(grant.UID, status)
}

// share takes all grants, because what one has changes without Prepare, or when another claim
// is prepared.
func (s *claimStatuses) share(grants ledger.List) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, grant := range grants {
		if status := s.claims[grant.UID]; status != nil && !slices.EqualFunc(status.grant.Shares, grant.Shares, ledger.Share.Equal) {
			status.grant = grant.Grant
			s.check(grant.UID, status)
		}
	}
}

// recover takes the grants that existed before this daemon, and the answers of the API
// server about their claims, which may be incomplete. If claims is nil, recover does
// nothing.
func (s *claimStatuses) recover(claims map[types.UID]*resourceapi.ResourceClaim, grants []ledger.Grant) {
	if claims == nil {
		return
	}
	for _, grant := range grants {
		if grant.Unprepared {
			continue
		}
		s.mu.Lock()
		_, prepared := s.claims[grant.UID] // this daemon has prepared it again
		s.mu.Unlock()
		if claim := claims[grant.UID]; !prepared && (claim == nil || claim.UID == grant.UID) {
			s.set(claim, grant)
		}
	}
}

// observe takes the current state of the partitions, and whether the container runtime
// keeps other containers off the CPUs of claims.
func (s *claimStatuses) observe(partitions partitionStates, others sharedPoolState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, turned := s.partitions, others != s.others
	s.partitions, s.others = partitions, others
	for uid, status := range s.claims {
		if turned || !slices.Equal(before[uid], partitions[uid]) {
			s.check(uid, status)
		}
	}
}

// forget drops a claim that no longer holds anything. It writes nothing: the API server
// clears the status together with the allocation.
func (s *claimStatuses) forget(claimUID types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.claims, claimUID)
}

// forgetReleased forgets the claims that hold nothing any more, also if nobody has unprepared
// them, and returns them. A claim has its grant before it has a status.
func (s *claimStatuses) forgetReleased(held func(types.UID) bool) (released []types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for claimUID := range s.claims {
		if !held(claimUID) {
			delete(s.claims, claimUID)
			released = append(released, claimUID)
		}
	}
	return released
}

// check queues a write if one is needed. The caller holds the lock.
func (s *claimStatuses) check(claimUID types.UID, status *claimStatus) {
	if !s.isRight(status) {
		s.queue.Add(claimUID)
	}
}

// isRight reports whether the claim is known to have the status that it should have. The
// caller holds the lock.
func (s *claimStatuses) isRight(status *claimStatus) bool {
	return status.seen != nil && !status.unsure && hasStatuses(status.seen.Status.Devices, s.devices(status))
}

// run writes the queued statuses until ctx ends.
func (s *claimStatuses) run(ctx context.Context) {
	failing := newFailing(s.queue)
	work(ctx, s.queue, func(ctx context.Context, claimUID types.UID) (repeat bool) {
		if failing.waits(claimUID) {
			return false
		}
		asked, err := s.write(ctx, claimUID)
		if err != nil && !apierrors.IsConflict(err) { // on a conflict, another client was faster
			klog.FromContext(ctx).Error(err, "Claim status update failed, trying again", "claimUID", claimUID)
		}
		switch {
		case !asked:
			failing.dropped(claimUID)
		case isOverloaded(err):
			select {
			case <-ctx.Done():
			case <-time.After(failing.failed(claimUID)):
			}
			return false
		default:
			failing.answered(claimUID)
		}
		return err != nil
	})
}

// statusPauses are from firstPause to lastPause. Half of each is chance.
func statusPauses() wait.Backoff {
	return wait.Backoff{Duration: firstPause, Factor: 2, Jitter: 1, Steps: math.MaxInt32, Cap: lastPause / 2}
}

// isOverloaded reports whether a request failed because of the API server, or on the way to
// it, whatever was asked. Other requests would fail, too, and keep it busy.
func isOverloaded(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return err != nil
	}
	code := answer.Status().Code
	return code == http.StatusTooManyRequests || code >= http.StatusInternalServerError
}

// write updates the status of the claim, and reads the claim first if it is not known.
// If another client has changed the claim meanwhile, or an earlier update without an answer
// has, the API server refuses the update, and the next try reads the claim. Server-side apply would need no claim. But the API
// server then writes the claim's opaque parameters in its own format, takes that for a
// change of the allocation, and rejects the request.
//
// asked is false if no request was needed, or none is allowed yet.
func (s *claimStatuses) write(ctx context.Context, claimUID types.UID) (asked bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, claimTimeout) // Stop waits for this write
	defer cancel()
	s.mu.Lock()
	status := s.claims[claimUID]
	if status == nil || s.isRight(status) { // what has changed may have changed back
		s.mu.Unlock()
		return false, nil
	}
	isKnown, pace, name := status.seen != nil, status.pace, types.NamespacedName{Namespace: status.grant.Namespace, Name: status.grant.Name}
	s.mu.Unlock()
	if !pace.TryAccept() {
		s.queue.AddAfter(claimUID, wait.Jitter(statusWait, 0.5)) // and then writes what is so by then
		return false, nil
	}
	if !isKnown {
		claim, err := claimWith(ctx, s.client, name, claimUID)
		if err != nil {
			return true, fmt.Errorf("read claim %s: %w", name, err)
		}
		if claim == nil {
			return true, nil
		}
		s.saw(claimUID, claim)
	}
	wanted := s.wanted(claimUID)
	if wanted == nil {
		return !isKnown, nil
	}
	claim, err := s.client.ResourceV1().ResourceClaims(name.Namespace).UpdateStatus(ctx, wanted, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if apierrors.IsConflict(err) {
		s.saw(claimUID, nil)
	}
	if err != nil {
		return true, fmt.Errorf("write status of claim %s: %w", name, err)
	}
	s.saw(claimUID, claim)
	return true, nil
}

// saw records what the API server has, or that it is not known.
func (s *claimStatuses) saw(claimUID types.UID, claim *resourceapi.ResourceClaim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if status := s.claims[claimUID]; status != nil {
		status.seen, status.unsure = claim, false
	}
}

// wanted returns the claim with the status to write. It returns nil if the claim already
// has that status, is not known, or was forgotten.
func (s *claimStatuses) wanted(claimUID types.UID) *resourceapi.ResourceClaim {
	s.mu.Lock()
	defer s.mu.Unlock()
	status := s.claims[claimUID]
	if status == nil || status.seen == nil || s.isRight(status) {
		return nil
	}
	status.unsure = true
	claim := *status.seen
	others := slices.DeleteFunc(slices.Clone(claim.Status.Devices), func(device resourceapi.AllocatedDeviceStatus) bool {
		return device.Driver == driver.Name && device.Pool == s.pool
	})
	claim.Status.Devices = append(others, s.devices(status)...)
	return &claim
}

// devices returns the status that the claim should have. Devices with admin access have
// none, and neither have those that are not allocated to the claim any more: the API server
// would refuse it. The caller holds the lock.
func (s *claimStatuses) devices(status *claimStatus) []resourceapi.AllocatedDeviceStatus {
	var devices, seen []resourceapi.AllocatedDeviceStatus
	if status.seen != nil {
		seen = status.seen.Status.Devices
	}
	for _, share := range status.grant.Shares {
		device := statusOf(share, s.pool)
		if status.seen != nil && !isAllocated(status.seen, device) {
			continue
		}
		device.Data = &runtime.RawExtension{Raw: encode(share.Status())}
		device.NetworkData = networkOf(share)
		if now := findStatus(seen, device); now != nil {
			device.Conditions = slices.Clone(now.Conditions) // a condition that does not change keeps its transition time
		}
		ready := metav1.Condition{Type: deviceclasses.ConditionReady, Status: metav1.ConditionTrue, Reason: "Prepared", Message: "containers that use the claim can start"}
		conditions := []metav1.Condition{ready}
		if share.Zone() != nil {
			conditions = append(conditions, exclusive(share, s.keeping(status.grant.UID, share)))
			if share.Zone().MemoryPolicy != "" {
				conditions = append(conditions, memoryPolicy(share, s.partitions.of(status.grant.UID, share)))
			}
		}
		if share.Cache() != nil {
			if cpus, found := cpusOf(status.grant, share); found {
				conditions = append(conditions, exclusiveWays(share, cpus, s.keeping(status.grant.UID, cpus)))
			}
		}
		for _, condition := range conditions {
			condition.LastTransitionTime = metav1.NewTime(s.now())
			meta.SetStatusCondition(&device.Conditions, condition)
		}
		devices = append(devices, device)
	}
	return devices
}

// statusOf returns the status of a share, without what it says.
func statusOf(share ledger.Share, pool string) resourceapi.AllocatedDeviceStatus {
	device := resourceapi.AllocatedDeviceStatus{Driver: driver.Name, Pool: pool, Device: share.Device}
	if share.ShareID != "" {
		device.ShareID = new(string(share.ShareID))
	}
	return device
}

func isAllocated(claim *resourceapi.ResourceClaim, device resourceapi.AllocatedDeviceStatus) bool {
	return claim.Status.Allocation != nil && slices.ContainsFunc(claim.Status.Allocation.Devices.Results,
		func(result resourceapi.DeviceRequestAllocationResult) bool {
			return result.Driver == device.Driver && result.Pool == device.Pool && result.Device == device.Device &&
				string(ptr.Deref(result.ShareID, "")) == ptr.Deref(device.ShareID, "")
		})
}

// keeping returns what keeps others off the CPUs of a share. The caller holds the lock.
func (s *claimStatuses) keeping(claimUID types.UID, share ledger.Share) keeping {
	return keeping{s.node, s.others, s.partitions.of(claimUID, share)}
}

// networkOf returns the first network interface of the share, by its name on the host.
// It returns nil for a share without one.
func networkOf(share ledger.Share) *resourceapi.NetworkDeviceData {
	interfaces := share.Interfaces()
	if len(interfaces) == 0 {
		return nil
	}
	return &resourceapi.NetworkDeviceData{InterfaceName: interfaces[0]}
}

func encode(data any) []byte {
	text, err := json.Marshal(data)
	if err != nil {
		panic(err) // impossible: statuses are plain strings and booleans
	}
	return text
}

// hasStatuses reports whether the statuses that a claim has include all of devices.
func hasStatuses(seen, devices []resourceapi.AllocatedDeviceStatus) bool {
	for _, device := range devices {
		now := findStatus(seen, device)
		if now == nil || !sameData(now.Data, device.Data) || !apiequality.Semantic.DeepEqual(now.NetworkData, device.NetworkData) || !apiequality.Semantic.DeepEqual(now.Conditions, device.Conditions) {
			return false
		}
	}
	return true
}

// sameData compares two JSON objects. The API server may have sorted the fields of one.
func sameData(a, b *runtime.RawExtension) bool {
	var dataA, dataB map[string]any
	return a != nil && json.Unmarshal(a.Raw, &dataA) == nil && json.Unmarshal(b.Raw, &dataB) == nil && apiequality.Semantic.DeepEqual(dataA, dataB)
}

func findStatus(seen []resourceapi.AllocatedDeviceStatus, device resourceapi.AllocatedDeviceStatus) *resourceapi.AllocatedDeviceStatus {
	for i, now := range seen {
		if now.Driver == device.Driver && now.Pool == device.Pool && now.Device == device.Device && ptr.Equal(now.ShareID, device.ShareID) {
			return &seen[i]
		}
	}
	return nil
}
