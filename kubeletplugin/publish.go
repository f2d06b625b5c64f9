package kubeletplugin

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
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
)

// publisher keeps the ResourceSlices of the node as the driver wants them.
type publisher struct {
	client    kubernetes.Interface
	nodeName  string
	resources resourceslice.DriverResources
	wanted    []*resourceapi.ResourceSlice
	publish   func(context.Context, resourceslice.DriverResources) error
	readiness readiness

	informer cache.SharedIndexInformer
	changed  chan struct{} // holds one: slices were changed since the last look
	cancel   context.CancelFunc
	running  sync.WaitGroup
}

func newPublisher(options Options, publish func(context.Context, resourceslice.DriverResources) error) *publisher {
	p := &publisher{
		client:    options.Client,
		nodeName:  options.NodeName,
		resources: options.Resources,
		wanted:    wantedSlices(options.NodeName, options.Resources),
		publish:   publish,
		changed:   make(chan struct{}, 1),
	}
	p.readiness.set("ResourceSlices are not yet published")
	own := fields.Set{
		resourceapi.ResourceSliceSelectorNodeName: options.NodeName,
		resourceapi.ResourceSliceSelectorDriver:   driver.Name,
	}
	factory := informers.NewSharedInformerFactoryWithOptions(options.Client, 0,
		informers.WithTweakListOptions(func(list *metav1.ListOptions) { list.FieldSelector = own.String() }))
	p.informer = factory.Resource().V1().ResourceSlices().Informer()
	return p
}

func (p *publisher) start(ctx context.Context) {
	ctx, p.cancel = context.WithCancel(ctx)
	notice := func(any) {
		select {
		case p.changed <- struct{}{}:
		default:
		}
	}
	// Adding a handler fails only after the informer was stopped.
	_, _ = p.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: notice, UpdateFunc: func(_, now any) { notice(now) }, DeleteFunc: notice,
	})
	p.running.Go(func() { p.informer.RunWithContext(ctx) })
	p.running.Go(func() { p.run(ctx) })
}

func (p *publisher) run(ctx context.Context) {
	retry := firstRetry
	for {
		wait := retry
		if p.reconcile(ctx) {
			retry, wait = firstRetry, lastRetry
		}
		select {
		case <-ctx.Done():
			return
		case <-p.changed:
		case <-time.After(wait):
			retry = min(2*retry, lastRetry)
		}
	}
}

// reconcile compares, and publishes again what is not as it should be.
func (p *publisher) reconcile(ctx context.Context) (ready bool) {
	problem := compareSlices(p.nodeName, p.wanted, p.stored())
	if problem != nil {
		if err := p.republish(ctx); err != nil {
			problem = err
		}
	}
	p.report(ctx, problem)
	return problem == nil
}

// republish asks the API server first what it would store: slices of which it
// drops a field let the scheduler give a whole zone to every claim, so they are
// withdrawn instead. All of it may be repeated at any time.
func (p *publisher) republish(ctx context.Context) error {
	problem := p.rehearse(ctx)
	resources := p.resources
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
func (p *publisher) rehearse(ctx context.Context) error {
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	for _, slice := range p.wanted {
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

// stored is what the API server last said it has for this node.
func (p *publisher) stored() []*resourceapi.ResourceSlice {
	var own []*resourceapi.ResourceSlice
	for _, object := range p.informer.GetStore().List() {
		slice, ok := object.(*resourceapi.ResourceSlice)
		if ok && slice.Spec.Driver == driver.Name && slice.Spec.Pool.Name == p.nodeName {
			own = append(own, slice)
		}
	}
	return own
}

func (p *publisher) report(ctx context.Context, problem error) {
	if ctx.Err() != nil {
		return // stopping: the problem is ours, not the cluster's
	}
	logger := klog.FromContext(ctx)
	switch {
	case problem == nil && p.readiness.set(""):
		logger.Info("Ready: ResourceSlices are published and read back", "pool", p.nodeName)
	case problem != nil && p.readiness.set(problem.Error()):
		logger.Info("Not ready", "pool", p.nodeName, "reason", problem.Error())
	}
}
