package kubeletplugin

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
)

const (
	// unseenLasts is how long no hook must have pinned anything for a claim before its
	// pods are read. The time doubles, up to lastUnseen, while their containers do not
	// run: images take long to arrive, and containers wait after they failed.
	unseenLasts = 30 * time.Second
	lastUnseen  = 8 * time.Minute
)

// whyNotPinned is what is known of a container that no hook has pinned.
const whyNotPinned = "the container runtime has not run the driver's hook, or pinning is stopped on the node"

// unpinned finds claims whose containers run although no hook has pinned them: the
// container runtime ignores CDI devices, or the hooks of the OCI specification. Nothing
// but the API server says that such containers run.
type unpinned struct {
	client kubernetes.Interface
	node   string
	now    func() time.Time
	tell   func(grant ledger.Grant, container string, at time.Time)
	queue  workqueue.TypedRateLimitingInterface[types.UID]

	mu     sync.Mutex            // also of each unseen
	unseen map[types.UID]*unseen // by claim: no hook has pinned anything, or no longer
	pinned map[types.UID]bool    // the claims that had records at the last look
}

type unseen struct {
	grant ledger.Grant
	since time.Time
	wait  time.Duration // from since to the next look at the pods
	found bool          // a container runs
	// ended is when the claim was first seen without records, if it had some before.
	// Containers that started earlier were pinned, and have ended. The kubelet may not have
	// reported that yet.
	ended time.Time
}

func newUnpinned(client kubernetes.Interface, nodeName string, tell func(ledger.Grant, string, time.Time)) *unpinned {
	return &unpinned{client: client, node: nodeName, now: time.Now, tell: tell, queue: newQueue[types.UID](), unseen: make(map[types.UID]*unseen)}
}

// resume takes what the daemon of before has found.
func (u *unpinned) resume(told partitionStates) {
	for claimUID, states := range told {
		if slices.ContainsFunc(states, func(state cgroupState) bool { return state.fault == deviceclasses.FaultNotPinned }) {
			u.unseen[claimUID] = &unseen{since: u.now(), wait: unseenLasts, found: true}
		}
	}
}

// observe takes all grants, and the claims for which cgroups are recorded. It returns the
// claims with a container that is not pinned.
func (u *unpinned) observe(grants []ledger.Grant, recorded partitionStates) (found []types.UID) {
	now := u.now()
	u.mu.Lock()
	defer u.mu.Unlock()
	known, pinned := u.unseen, u.pinned
	u.unseen, u.pinned = make(map[types.UID]*unseen), make(map[types.UID]bool)
	for _, grant := range grants {
		if len(recorded[grant.UID]) > 0 {
			u.pinned[grant.UID] = true
			continue
		}
		if grant.Unprepared || !slices.ContainsFunc(grant.Shares, ledger.Share.Pinned) {
			continue
		}
		claim := known[grant.UID]
		if claim == nil {
			claim = &unseen{since: now, wait: unseenLasts}
			if pinned[grant.UID] {
				claim.ended = now
			}
		}
		claim.grant, u.unseen[grant.UID] = grant, claim
		if claim.found {
			found = append(found, grant.UID)
		} else if now.Sub(claim.since) >= claim.wait {
			claim.wait *= 2
			if claim.wait > lastUnseen {
				claim.since, claim.wait = now, lastUnseen
			}
			u.queue.Add(grant.UID)
		}
	}
	return found
}

// run looks at the pods of claims until ctx ends.
func (u *unpinned) run(ctx context.Context) {
	work(ctx, u.queue, func(ctx context.Context, claimUID types.UID) (repeat bool) {
		if err := u.look(ctx, claimUID); err != nil {
			klog.FromContext(ctx).Error(err, "Looking whether the containers of a claim are pinned failed, trying again later", "claimUID", claimUID)
		}
		return false
	})
}

func (u *unpinned) look(ctx context.Context, claimUID types.UID) error {
	u.mu.Lock()
	claim := u.unseen[claimUID]
	if claim == nil {
		u.mu.Unlock()
		return nil // pinned or released meanwhile
	}
	grant, ended, now := claim.grant, claim.ended, u.now()
	u.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	object, err := claimWith(ctx, u.client, types.NamespacedName{Namespace: grant.Namespace, Name: grant.Name}, claimUID)
	if err != nil || object == nil || !driver.AllocatedOn(object, u.node) { // its pods may be on another node
		return err
	}
	pods, err := readPods(ctx, u.client, object)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		for _, container := range grant.PinnedUsers(pod) {
			started, runs := runningSince(pod, container)
			if !runs || !started.Before(now.Add(-unseenLasts/2)) || started.Before(ended.Truncate(time.Second)) {
				continue
			}
			u.mu.Lock()
			claim.found = true
			u.mu.Unlock()
			u.tell(grant, container, now)
			return nil
		}
	}
	return nil
}

// runningSince returns when a container of the pod started, to the second, if it runs.
func runningSince(pod *corev1.Pod, container string) (started time.Time, runs bool) {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if status.Name == container && status.State.Running != nil {
			return status.State.Running.StartedAt.Time, true
		}
	}
	return time.Time{}, false
}
