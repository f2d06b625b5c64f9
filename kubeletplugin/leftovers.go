package kubeletplugin

import (
	"context"
	"sync/atomic"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
)

// leftoverPause is how long leftovers waits after each look.
const leftoverPause = time.Minute

// leftovers looks for grants whose claims are gone, when a claim could not be prepared: such a
// grant may have what the scheduler counts as free. The kubelet has not unprepared these claims:
// it lost its state, for example.
type leftovers struct {
	client   kubernetes.Interface
	driver   *driver.Driver
	recorded atomic.Pointer[partitionStates] // as of the last Observe
	wanted   chan struct{}                   // has room for one
}

func newLeftovers(client kubernetes.Interface, d *driver.Driver) *leftovers {
	return &leftovers{client: client, driver: d, wanted: make(chan struct{}, 1)}
}

// want asks for a look.
func (l *leftovers) want() { signal(l.wanted) }

// run looks when it is wanted, until ctx ends.
func (l *leftovers) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wanted:
		}
		if err := l.look(ctx); err != nil {
			klog.FromContext(ctx).Error(err, "Looking for grants whose claims are gone failed")
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(leftoverPause):
		}
	}
}

// look asks the API server about the claims whose containers have ended.
func (l *leftovers) look(ctx context.Context) error {
	recorded := l.recorded.Load()
	if recorded == nil {
		return nil // nobody has looked at the cgroups yet
	}
	since := l.driver.Prepares()
	var idle []ledger.Grant
	for _, grant := range l.driver.Grants() {
		if len((*recorded)[grant.UID]) == 0 {
			idle = append(idle, grant)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	claims, err := ReadClaims(ctx, l.client, idle)
	l.driver.Reconsider(claims, since)
	return err
}
