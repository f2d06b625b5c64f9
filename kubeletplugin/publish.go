package kubeletplugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/resourceslice"
	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/internal/keeperfile"
)

const (
	// firstRetry is short because the kubelet deletes all slices of its node
	// when it starts, and the helper alone notices only after 30 seconds.
	firstRetry = 250 * time.Millisecond
	lastRetry  = 30 * time.Second

	// rehearsalHolds is how long the API server is expected to store the same slices in the
	// same way. It is longer than the helper needs to write them, and shorter than the API
	// server needs to start again with other feature gates. An API server whose answer took
	// long is overloaded, and so is one that the helper asks: the answer then holds
	// rehearsalTimes as long as it took.
	rehearsalHolds = 5 * time.Second
	rehearsalTimes = 20
)

// errSlicesWait says that the devices change so often that the newest state is not
// published yet. Slices that are as they were published last need no wait.
var errSlicesWait = errors.New("the devices change too often")

// publisher keeps the ResourceSlices of the node as the driver wants them, and without
// devices while a guard reports a problem.
type publisher struct {
	client    kubernetes.Interface
	nodeName  string
	publish   func(context.Context, resourceslice.DriverResources) error
	slices    *nodeSlices
	guards    *guards
	pace      pace                          // of new states, unless they only take something back
	orderPace pace                          // of new orders of the same devices
	reorder   *time.Timer                   // looks again for an order that had to wait
	last      []resourceapi.Device          // that were published last
	withdrew  time.Time                     // when something was last taken back beside the pace
	passed    resourceslice.DriverResources // the last that rehearse found to be stored as they are
	passedTo  time.Time                     // when that is over
	standing  error                         // the last answer of the guards
	begun     bool                          // the helper has published: it keeps the UID of the Node of then
	owner     types.UID                     // of the slices that it stored since then: that of their Node
	events    events
	readiness *Readiness

	fatal     func(error)   // as in Options
	rehearsed func() error  // as in Options
	whyPaused func() string // WhyPaused; nil: publishing is never paused
	noLists   func()        // is told that the API server takes no lists any more
	mode      *modeNews     // nil: no events about the mode

	withoutConflicts withoutConflicts
	suspects         func(all []*resourceapi.ResourceSlice) []driver.Suspect // Driver.Suspects; nil: no events about them

	mu      sync.Mutex
	devices []resourceapi.Device // must not be changed
	wrong   map[string]string    // by fault of the Node, what other goroutines say of it
	renewed chan struct{}        // has room for one: devices or what is wrong was set
	look    chan struct{}        // has room for one: the guards are to look

	running sync.WaitGroup
}

// withoutConflicts is Driver.WithoutConflicts.
type withoutConflicts = func(devices []resourceapi.Device, others map[string]string) ([]resourceapi.Device, []driver.Conflict)

func newPublisher(client kubernetes.Interface, nodeName string, readiness *Readiness, guards *guards, eventPace pace, withoutConflicts withoutConflicts,
	publish func(context.Context, resourceslice.DriverResources) error,
) *publisher {
	readiness.NotReady(reasonOf(errNotListed), errNotListed.Error())
	p := &publisher{
		client:    client,
		nodeName:  nodeName,
		publish:   publish,
		slices:    guards.slices,
		guards:    guards,
		events:    events{client: client, nodeName: nodeName, pace: eventPace, told: make(map[string]string)},
		wrong:     make(map[string]string),
		pace:      slicePace(),
		orderPace: orderPace(),
		readiness: readiness,
		renewed:   make(chan struct{}, 1),
		look:      make(chan struct{}, 1),

		withoutConflicts: withoutConflicts,
	}
	p.reorder = time.AfterFunc(orderPeriod, p.renew)
	p.reorder.Stop()
	return p
}

// set takes the devices to publish from now on.
func (p *publisher) set(devices []resourceapi.Device) {
	p.mu.Lock()
	p.devices = devices
	p.mu.Unlock()
	p.renew()
}

func (p *publisher) renew() { signal(p.renewed) }

// lookAtGuards has the guards look again, and looks whether publishing is paused.
func (p *publisher) lookAtGuards() {
	p.lookAtPause()
	signal(p.look)
}

// signal sends to a channel that has room for one, unless something is in it.
func signal(channel chan<- struct{}) {
	select {
	case channel <- struct{}{}:
	default:
	}
}

func (p *publisher) current(ctx context.Context) []resourceapi.Device {
	p.mu.Lock()
	devices := p.devices
	p.mu.Unlock()
	return p.leaveOut(ctx, devices)
}

func (p *publisher) start(ctx context.Context) {
	p.running.Go(func() { p.slices.watch(ctx) })
	p.running.Go(func() { p.run(ctx) })
}

func (p *publisher) run(ctx context.Context) {
	// Before the first list, all slices would seem to be missing.
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

// pause waits until the stored slices, the wanted devices or the answer of the guards
// have changed, or until the wait is over. Changed is false if nothing has changed.
func (p *publisher) pause(ctx context.Context, wait time.Duration) (changed bool) {
	over := time.After(wait)
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
		case <-p.look:
			if !sameText(p.guards.check(), p.standing) {
				return true
			}
		}
	}
}

// sameText reports whether two errors read the same.
func sameText(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

// reconcile compares the stored slices with the wanted ones, and publishes again if
// they differ. While a guard reports a problem, it withdraws the devices instead. While
// a guard does not know yet, or publishing is paused, the slices stay as they are.
func (p *publisher) reconcile(ctx context.Context) (ready bool) {
	paused := p.lookAtPause()
	p.tellWrong(ctx)
	p.tellSuspects(ctx)
	if p.mode != nil {
		p.mode.tell(ctx, &p.events)
	}
	p.seeOwner()
	p.standing = p.guards.check()
	problem := p.standing
	switch {
	case problem == nil && paused:
		problem = p.rehearsal()
	case problem == nil:
		if problem = p.correct(ctx); problem == nil {
			problem = p.rehearsal()
		}
	case !paused && !errors.Is(problem, keeperfile.ErrUnknown):
		p.withdraw(ctx)
	}
	if !errors.Is(problem, errSlicesWait) { // the node is as ready as with the slices of before
		p.report(ctx, problem, paused)
	}
	return problem == nil
}

// rehearsal returns why the daemon could not prepare a made-up claim. The slices stay: what
// claims hold is not lost, and the kubelet repeats what fails.
func (p *publisher) rehearsal() error {
	if p.rehearsed == nil {
		return nil
	}
	if err := p.rehearsed(); err != nil {
		return guardError{ReasonRehearsal, err.Error()}
	}
	return nil
}

// correct publishes the slices again if they are not as they should be. It returns how
// they differed, or why they cannot be corrected.
func (p *publisher) correct(ctx context.Context) error {
	wanted := p.current(ctx)
	p.last = p.next(wanted)
	resources := driver.Resources(p.nodeName, p.last)
	problem := p.differs(resources)
	if problem != nil {
		if err := p.republish(ctx, resources); err != nil {
			return err
		}
	}
	if !driver.SameDevices(p.last, wanted) {
		return errSlicesWait
	}
	if dropped := (*droppedError)(nil); errors.As(problem, &dropped) {
		return fmt.Errorf("pool %s still has its old ResourceSlices", p.nodeName) // the dry run dropped nothing: the stored slices are older
	}
	return problem
}

// differs returns how the stored slices differ from the wanted ones, or nil.
func (p *publisher) differs(wanted resourceslice.DriverResources) error {
	return compareSlices(p.nodeName, wantedSlices(p.nodeName, wanted), p.slices.own())
}

// withdraw removes the devices from the pool, if it has any. Prepared claims keep what
// they hold.
func (p *publisher) withdraw(ctx context.Context) {
	none := driver.Resources(p.nodeName, nil)
	if p.differs(none) == nil {
		return
	}
	if err := p.send(ctx, none); err != nil {
		klog.FromContext(ctx).Error(err, "Withdrawing ResourceSlices failed, trying again", "pool", p.nodeName)
	}
}

// republish first asks the API server, with a dry run, what it would store. If the API
// server dropped a field, the scheduler could give a whole zone to every claim. So the
// pool then gets no devices. It is safe to call republish again at any time.
func (p *publisher) republish(ctx context.Context, resources resourceslice.DriverResources) error {
	problem := p.rehearse(ctx, resources)
	if dropped := (*droppedError)(nil); errors.As(problem, &dropped) {
		resources = driver.Resources(p.nodeName, nil)
	} else if problem != nil {
		return problem
	}
	if err := p.send(ctx, resources); err != nil {
		return fmt.Errorf("publish ResourceSlices: %w", err)
	}
	return problem
}

// rehearse sends a dry-run create of each slice, and compares the answer with the slice. It
// does not repeat that while the helper writes these slices, unless the stored ones show that
// fields are dropped by now.
func (p *publisher) rehearse(ctx context.Context, resources resourceslice.DriverResources) error {
	begin, dropped := time.Now(), (*droppedError)(nil)
	if begin.Before(p.passedTo) && equality.Semantic.DeepEqual(resources.Pools, p.passed.Pools) && !errors.As(p.differs(resources), &dropped) {
		return nil
	}
	p.passedTo = time.Time{}
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	for _, slice := range wantedSlices(p.nodeName, resources) {
		answer, err := p.client.ResourceV1().ResourceSlices().Create(ctx, slice.DeepCopy(), dryRun)
		if apierrors.IsInvalid(err) && slices.ContainsFunc(slice.Spec.Devices, driver.HasList) {
			p.noLists() // their gate is off since the daemon asked; the next devices have none
		}
		if err != nil {
			return fmt.Errorf("create ResourceSlice (dry run): %w", err)
		}
		if err := compareSlice(p.nodeName, slice, answer); err != nil {
			return err
		}
	}
	now := time.Now()
	p.passed, p.passedTo = resources, now.Add(max(rehearsalHolds, rehearsalTimes*now.Sub(begin)))
	return nil
}

func (p *publisher) report(ctx context.Context, problem error, paused bool) {
	if ctx.Err() != nil {
		return // stopping: the problem is not the cluster's
	}
	logger := klog.FromContext(ctx)
	ready := "Ready: ResourceSlices are published and read back"
	if paused {
		ready = "Ready: ResourceSlices stay as they are, because publishing is paused"
	}
	switch {
	case problem == nil && p.readiness.change(Problem{}, ""):
		logger.Info(ready, "pool", p.nodeName)
	case problem != nil && p.readiness.change(Problem{reasonOf(problem), problem.Error()}, ""):
		logger.Info("Not ready", "pool", p.nodeName, "reason", problem.Error())
	}
	if problem != nil || !paused { // the event that the node is ready says that its zones are published
		p.events.problem(ctx, problem)
	}
}
