// Package templates makes the ResourceClaimTemplates that translated pods name. The webhook
// only writes their names into pods, because a review may change nothing else. This program
// makes each from the fields of a stored pod, never from an annotation, and deletes it when
// no pod has named it for an hour. It is a program of its own, because it may write what all
// namespaces hold: a policy of the chart bounds it to names, labels and namespaces.
package templates

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
)

// Times of the Lease. A replica that is stopped releases it. If a node fails, another replica
// takes over after leaseDuration: only the first pod of a shape waits for that.
const (
	leaseDuration = 30 * time.Second
	renewDeadline = 20 * time.Second
	renewPeriod   = 5 * time.Second
)

// Options are the settings of Run.
type Options struct {
	Client kubernetes.Interface
	// Namespace and Lease name the Lease of the replica that works. Identity is what this
	// one writes there.
	Namespace, Lease, Identity string
	// Translate is how the webhook translates pods. Of its Twins, only those are here that
	// an administrator has listed.
	Translate translate.Options
}

// Run makes and deletes templates until ctx ends, whenever this replica holds the Lease.
func Run(ctx context.Context, options Options) error {
	if err := options.Translate.Check(); err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := lead(ctx, options); err != nil {
			return err
		}
	}
	return nil
}

// lead waits for the Lease and works while it is held. Each time begins without knowledge:
// another replica may have worked meanwhile. The Lease is released when all work has ended.
func lead(ctx context.Context, options Options) error {
	started := make(chan context.Context, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: options.Namespace, Name: options.Lease}, Client: options.Client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: options.Identity},
		},
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: renewPeriod, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) { started <- leading }, OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("elect a leader: %w", err)
	}
	electing, release := context.WithCancel(context.WithoutCancel(ctx))
	released := make(chan struct{})
	go func() {
		defer close(released)
		elector.Run(electing)
	}()
	defer func() {
		release()
		<-released
	}()
	select {
	case <-ctx.Done():
		return nil
	case leading := <-started:
		working, stop := context.WithCancel(ctx)
		defer stop()
		defer context.AfterFunc(leading, stop)()
		return work(working, options)
	}
}
