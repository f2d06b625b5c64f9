package kubeletplugin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

const (
	// firstRetry is short because the kubelet deletes all slices of its node
	// when it starts, and the helper alone notices only after 30 seconds.
	firstRetry = 250 * time.Millisecond
	lastRetry  = 30 * time.Second
	// guardInterval is how often the kubelet's state files are read, which
	// change when it restarts.
	guardInterval = 2 * time.Second
)

// publisher keeps the ResourceSlices of the node as the driver wants them, and
// free of devices while a guard stands.
type publisher struct {
	client    kubernetes.Interface
	nodeName  string
	publish   func(context.Context, resourceslice.DriverResources) error
	slices    *nodeSlices
	guards    *guards
	standing  error // what the guards said when last looked at
	events    events
	readiness *Readiness

	withoutConflicts withoutConflicts
	others           otherSlices
	leftOut          string // what was last said of them

	mu      sync.Mutex
	devices []resourceapi.Device // must not be changed
	renewed chan struct{}        // holds one: devices were set anew

	running sync.WaitGroup
}

// withoutConflicts is the driver's.
type withoutConflicts = func([]resourceapi.Device, []*resourceapi.ResourceSlice) ([]resourceapi.Device, []driver.Conflict)

func newPublisher(client kubernetes.Interface, nodeName string, readiness *Readiness, guards *guards, withoutConflicts withoutConflicts,
	publish func(context.Context, resourceslice.DriverResources) error,
) *publisher {
	readiness.NotReady(errNotListed.Error())
	return &publisher{
		client:    client,
		nodeName:  nodeName,
		publish:   publish,
		slices:    guards.slices,
		guards:    guards,
		events:    events{client: client, nodeName: nodeName},
		readiness: readiness,
		others:    otherSlices{},
		renewed:   make(chan struct{}, 1),

		withoutConflicts: withoutConflicts,
	}
}

// set says what to publish from now on.
func (p *publisher) set(devices []resourceapi.Device) {
	p.mu.Lock()
	p.devices = devices
	p.mu.Unlock()
	select {
	case p.renewed <- struct{}{}:
	default:
	}
}

func (p *publisher) current(ctx context.Context) resourceslice.DriverResources {
	p.mu.Lock()
	devices := p.devices
	p.mu.Unlock()
	return driver.Resources(p.nodeName, p.leaveOut(ctx, devices))
}

func (p *publisher) start(ctx context.Context) {
	p.running.Go(func() { p.slices.watch(ctx) })
	p.running.Go(func() { p.run(ctx) })
}

func (p *publisher) run(ctx context.Context) {
	// Before that, slices that are as they should be would seem to be missing.
	if !cache.WaitForCacheSync(ctx.Done(), p.slices.listed) {
		return
	}
	retry := firstRetry
	for ctx.Err() == nil {
		wait := retry
		if p.reconcile(ctx) {
			retry, wait = firstRetry, lastRetry
		}
		if !p.pause(ctx, wait) {
			retry = min(2*retry, lastRetry)
		}
	}
}

// pause waits until slices changed, or what they should be, a guard rose or fell,
// or the wait is over.
func (p *publisher) pause(ctx context.Context, wait time.Duration) (changed bool) {
	over := time.After(wait)
	look := time.NewTicker(guardInterval)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-p.slices.changed:
			return true
		case <-p.renewed:
			return true
		case <-over:
			return false
		case <-look.C:
			if !sameText(p.guards.check(), p.standing) {
				return true
			}
		}
	}
}

// sameText compares errors as those who read them do.
func sameText(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

// reconcile compares, and publishes again what is not as it should be.
func (p *publisher) reconcile(ctx context.Context) (ready bool) {
	p.standing = p.guards.check()
	problem := p.standing
	if problem == nil {
		problem = p.correct(ctx)
	} else {
		p.withdraw(ctx)
	}
	p.report(ctx, problem)
	return problem == nil
}

// correct returns how the slices were not as they should be, or why that cannot
// be changed.
func (p *publisher) correct(ctx context.Context) error {
	resources := p.current(ctx)
	problem := p.differs(resources)
	if problem == nil {
		return nil
	}
	if err := p.republish(ctx, resources); err != nil {
		return err
	}
	if dropped := (*droppedError)(nil); errors.As(problem, &dropped) {
		return fmt.Errorf("pool %s has not yet what is new", p.nodeName) // nothing was dropped: it is of before
	}
	return problem
}

// differs says how the slices are not as they should be.
func (p *publisher) differs(wanted resourceslice.DriverResources) error {
	return compareSlices(p.nodeName, wantedSlices(p.nodeName, wanted), p.slices.own())
}

// withdraw leaves the pool without devices, if it is not yet so. Claims that
// are prepared keep what they hold.
func (p *publisher) withdraw(ctx context.Context) {
	none := driver.Resources(p.nodeName, nil)
	if p.differs(none) == nil {
		return
	}
	if err := p.publish(ctx, none); err != nil {
		klog.FromContext(ctx).Error(err, "Withdraw ResourceSlices", "pool", p.nodeName)
	}
}

// republish asks the API server first what it would store: slices of which it
// drops a field let the scheduler give a whole zone to every claim, so they are
// withdrawn instead. All of it may be repeated at any time.
func (p *publisher) republish(ctx context.Context, resources resourceslice.DriverResources) error {
	problem := p.rehearse(ctx, resources)
	if dropped := (*droppedError)(nil); errors.As(problem, &dropped) {
		resources = driver.Resources(p.nodeName, nil)
	} else if problem != nil {
		return problem
	}
	if err := p.publish(ctx, resources); err != nil {
		return fmt.Errorf("publish ResourceSlices: %w", err)
	}
	return problem
}

// rehearse has the API server answer as if the slices were created.
func (p *publisher) rehearse(ctx context.Context, resources resourceslice.DriverResources) error {
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	for _, slice := range wantedSlices(p.nodeName, resources) {
		answer, err := p.client.ResourceV1().ResourceSlices().Create(ctx, slice.DeepCopy(), dryRun)
		if err != nil {
			return fmt.Errorf("rehearse publishing ResourceSlices: %w", err)
		}
		if err := compareSlice(p.nodeName, slice, answer); err != nil {
			return err
		}
	}
	return nil
}

func (p *publisher) report(ctx context.Context, problem error) {
	if ctx.Err() != nil {
		return // stopping: the problem is ours, not the cluster's
	}
	logger := klog.FromContext(ctx)
	switch {
	case problem == nil && p.readiness.change("", ""):
		logger.Info("Ready: ResourceSlices are published and read back", "pool", p.nodeName)
	case problem != nil && p.readiness.change(problem.Error(), ""):
		logger.Info("Not ready", "pool", p.nodeName, "reason", problem.Error())
	}
	if err := p.events.tell(ctx, problem); err != nil {
		logger.Error(err, "Put event on the node", "node", p.nodeName)
	}
}
