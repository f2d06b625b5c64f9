package kubeletplugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	helper "k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
)

// claimServer answers the kubelet. It may be called concurrently.
type claimServer struct {
	*Plugin
	client kubernetes.Interface
	guards *guards
	fatal  func(error)

	releases *releases
}

var _ helper.DRAPlugin = (*claimServer)(nil)

// PrepareResourceClaims prepares each claim on its own: a claim that cannot be prepared
// does not hold up other claims. While a guard reports a problem, no claim gets
// anything that it does not have already.
func (s *claimServer) PrepareResourceClaims(ctx context.Context, claims []*resourceapi.ResourceClaim) (map[types.UID]helper.PrepareResult, error) {
	if len(claims) == 0 {
		return nil, nil // the daemon asks itself whether it is alive; see Alive
	}
	results := make(map[types.UID]helper.PrepareResult, len(claims))
	for _, claim := range claims {
		began := time.Now()
		grant, prepared, err := s.prepare(ctx, claim)
		took := s.counters.prepare.add(began, err)
		logger := klog.LoggerWithValues(klog.FromContext(ctx), "claim", klog.KObj(claim), "claimUID", claim.UID, "pods", podNames(claim), "duration", took)
		if err != nil {
			// The kubelet puts the error into its own log and into events of the pod, which
			// are gone after an hour.
			logger.Error(err, "Preparing a claim failed")
			err = fmt.Errorf("prepare claim %s/%s: %w", claim.Namespace, claim.Name, err)
			results[claim.UID] = helper.PrepareResult{Err: err}
			continue
		}
		results[claim.UID] = helper.PrepareResult{Devices: kubeletDevices(prepared)}
		if len(grant.Shares) > 0 {
			s.statuses.set(claim, grant)
		}
		logger.Info("Prepared claim")
	}
	s.statuses.share(s.driver.List())
	s.RefreshSharedPool(ctx)
	return results, nil
}

func (s *claimServer) prepare(ctx context.Context, claim *resourceapi.ResourceClaim) (ledger.Grant, []driver.PreparedDevice, error) {
	if !s.driver.Holds(claim) {
		if err := s.guards.check(); err != nil {
			return ledger.Grant{}, nil, err
		}
	}
	pods, err := readStarting(ctx, s.client, claim)
	if err != nil {
		return ledger.Grant{}, nil, err
	}
	var grant ledger.Grant
	var prepared []driver.PreparedDevice
	again := false
	err = withPatience(ctx, func() (err error) {
		if again {
			if _, held := s.driver.Grant(claim.UID); !held {
				return errReleased
			}
		}
		again = true
		grant, prepared, err = s.driver.Prepare(claim, pods)
		return err
	})
	if err != nil {
		s.leftovers.want() // whatever the error says: what the claim lacks may be in a grant whose claim is gone
	}
	return grant, prepared, err
}

// errReleased says that a claim was unprepared while it waited for the kernel.
var errReleased = errors.New("the claim was unprepared meanwhile")

// UnprepareResourceClaims releases each claim on its own.
func (s *claimServer) UnprepareResourceClaims(ctx context.Context, claims []helper.NamespacedObject) (map[types.UID]error, error) {
	results := make(map[types.UID]error, len(claims))
	ended := time.Now().Add(containerPatience)
	for _, claim := range claims {
		began := time.Now()
		err := untilEnded(ctx, ended, func() error { return s.driver.Unprepare(claim.UID) })
		if s.releases.giveUp(claim.UID, err) {
			klog.FromContext(ctx).Error(err, "Abandoning a claim: what it holds stays withheld until its containers have ended and the host is restored", "claim", claim.NamespacedName)
			err = s.driver.Abandon(claim.UID)
		}
		took := s.counters.unprepare.add(began, err)
		logger := klog.LoggerWithValues(klog.FromContext(ctx), "claim", claim.NamespacedName, "claimUID", claim.UID, "duration", took)
		if err != nil {
			logger.Error(err, "Unpreparing a claim failed")
			err = fmt.Errorf("unprepare claim %s: %w", claim.NamespacedName, err)
		} else {
			s.statuses.forget(claim.UID)
			logger.Info("Unprepared claim")
		}
		results[claim.UID] = err
	}
	s.RefreshSharedPool(ctx)
	return results, nil
}

// HandleError receives errors of the helper's background work. Errors of publishing are
// recoverable and only logged: the publisher reads the slices back, and tries again.
// A server that is stopped before it serves is no error: only [Plugin.Stop] stops one.
// All other errors are fatal.
func (s *claimServer) HandleError(ctx context.Context, err error, msg string) {
	if errors.Is(err, grpc.ErrServerStopped) {
		return
	}
	if errors.Is(err, helper.ErrRecoverable) {
		klog.FromContext(ctx).Error(err, msg)
		return
	}
	s.fatal(fmt.Errorf("%s: %w", msg, err))
}

// WatchHealthStatus reports the health of the devices to the kubelet until ctx ends.
// There may be several watchers.
func (s *claimServer) WatchHealthStatus(ctx context.Context, reports chan<- helper.DeviceHealthReport) error {
	return s.health.watch(ctx, reports)
}
