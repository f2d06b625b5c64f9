package kubeletplugin

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

// hostPatience is how long a call of the kubelet waits for the kernel to bind or release
// a PCI function.
const hostPatience = 20 * time.Second

// releasePatience is how long a claim may fail to be released because a PCI function does
// not get its kernel driver back, or because CPUs are offline. Then the claim is abandoned,
// so that its pod can end.
const releasePatience = 2 * time.Minute

// containerPatience is how long a call of the kubelet waits for containers that are ending.
// The kubelet waits for them itself, except for those of a pod that was deleted by force.
const containerPatience = 2 * time.Second

// containerPause is how long it waits between two looks.
const containerPause = 100 * time.Millisecond

// releases knows since when claims fail to be released.
type releases struct {
	now func() time.Time

	mu      sync.Mutex
	failing map[types.UID]time.Time
}

func newReleases() *releases {
	return &releases{now: time.Now, failing: make(map[types.UID]time.Time)}
}

// giveUp takes the result of a try to release a claim. It reports whether that has failed
// for too long: untilEnded has waited for containers already.
func (r *releases) giveUp(claimUID types.UID, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	var inUse *driver.InUseError
	if errors.As(err, &inUse) {
		return true
	}
	var notRestored *driver.NotRestoredError
	if !errors.As(err, &notRestored) {
		delete(r.failing, claimUID)
		return false
	}
	since, before := r.failing[claimUID]
	if !before {
		since = r.now()
		r.failing[claimUID] = since
	}
	return r.now().Sub(since) >= releasePatience
}

// withPatience tries again when the kernel has finished what it was asked. Meanwhile the
// driver serves other claims.
func withPatience(ctx context.Context, try func() error) error {
	end := time.Now().Add(hostPatience)
	for {
		err := try()
		var busy *driver.BusyError
		if !errors.As(err, &busy) || ctx.Err() != nil || busy.Wait(time.Until(end)) != nil {
			return err
		}
	}
}

// untilEnded is withPatience. It also tries again while containers use the claim, until the
// time has come.
func untilEnded(ctx context.Context, end time.Time, try func() error) error {
	for {
		err := withPatience(ctx, try)
		var inUse *driver.InUseError
		if !errors.As(err, &inUse) || time.Until(end) < containerPause {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(containerPause):
		}
	}
}
