package webhook

import (
	"context"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	resourcelisters "k8s.io/client-go/listers/resource/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/accounting"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/probe"
	"github.com/dra-driver-numa/dra-driver-numa/webhook/kept"
)

// getTimeout is for a request to the API server, which itself waits for the answer of the
// webhook.
const getTimeout = time.Second

// lookups watches classes, templates and this driver's slices.
type lookups struct {
	client    kubernetes.Interface
	classes   resourcelisters.DeviceClassLister
	templates resourcelisters.ResourceClaimTemplateLister
	slices    resourcelisters.ResourceSliceLister
	selectors *probe.Selectors
	pages     chan struct{} // has room for the pages of pods that are read at a time
	objects   chan struct{} // and for the objects that are read at a time
	openPods  func(ctx context.Context, namespace string, options metav1.ListOptions) (io.ReadCloser, error)
	enforced  bool     // must not change
	creators  []string // must not change: see Options.ClaimControllers

	translation *Translation // must not change

	stale  atomic.Bool // the slices have changed since addUp
	mu     sync.Mutex
	steps  accounting.Steps // must not be changed
	counts bool             // the scheduler counts claims
}

// startLookups returns when all lists are complete. The watches end when ctx ends; stop
// waits for that.
func startLookups(ctx context.Context, client kubernetes.Interface) (l *lookups, stop func(), err error) {
	factory := informers.NewSharedInformerFactory(client, 0)
	ours := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(options *metav1.ListOptions) {
		options.FieldSelector = resourceapi.ResourceSliceSelectorDriver + "=" + deviceclasses.DriverName
	}))
	published := ours.Resource().V1().ResourceSlices()
	factory.InformerFor(&resourceapi.ResourceClaimTemplate{}, func(client kubernetes.Interface, _ time.Duration) cache.SharedIndexInformer {
		return kept.NewInformer(client, client.ResourceV1().ResourceClaimTemplates(metav1.NamespaceAll), &resourceapi.ResourceClaimTemplate{}, "", keptTemplate, cache.Indexers{})
	})
	l = &lookups{
		client:    client,
		classes:   factory.Resource().V1().DeviceClasses().Lister(),
		templates: factory.Resource().V1().ResourceClaimTemplates().Lister(),
		slices:    published.Lister(),
		selectors: probe.New(),
		pages:     make(chan struct{}, 1),
		objects:   make(chan struct{}, lookupsAtOnce),
		openPods:  openPods(client),
	}
	l.stale.Store(true)
	_, err = published.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { l.stale.Store(true) },
		UpdateFunc: func(any, any) { l.stale.Store(true) },
		DeleteFunc: func(any) { l.stale.Store(true) },
	})
	if err != nil {
		return nil, nil, err
	}
	for _, one := range []informers.SharedInformerFactory{factory, ours} {
		one.Start(ctx.Done())
		one.WaitForCacheSync(ctx.Done())
	}
	return l, func() { factory.Shutdown(); ours.Shutdown() }, ctx.Err()
}

// reviewLookups looks up objects of the cluster for one review, until its context ends.
// It asks the API server for objects that the watches do not have yet. It always asks for
// claims, which are many and rarely needed.
type reviewLookups struct {
	*lookups
	ctx       context.Context
	selectors *probe.Selectors
	left      *int // how many more objects the API server is asked for
}

// during returns lookups for a review.
func (l *lookups) during(ctx context.Context) Known {
	return reviewLookups{l, ctx, l.selectors.Within(ctx, reviewSelectors), new(mostLookups)}
}

// DeviceClass implements accounting.Known.
func (r reviewLookups) DeviceClass(name string) *resourceapi.DeviceClass {
	if class, err := r.classes.Get(name); err == nil {
		return class
	}
	return found(r, r.client.ResourceV1().DeviceClasses().Get, "DeviceClass", "", name)
}

// ResourceClaim implements accounting.Known.
func (r reviewLookups) ResourceClaim(namespace, name string) *resourceapi.ResourceClaim {
	return found(r, r.client.ResourceV1().ResourceClaims(namespace).Get, "ResourceClaim", namespace, name)
}

// ResourceClaimTemplate implements accounting.Known.
func (r reviewLookups) ResourceClaimTemplate(namespace, name string) *resourceapi.ResourceClaimTemplate {
	if template, err := r.templates.ResourceClaimTemplates(namespace).Get(name); err == nil && len(template.Spec.Spec.Devices.Requests) > 0 {
		return template
	}
	return found(r, r.client.ResourceV1().ResourceClaimTemplates(namespace).Get, "ResourceClaimTemplate", namespace, name)
}

// mostTemplateBytes is how much of a template is kept, in the encoding of protobuf: more
// than most have. A tenant can make templates of a megabyte.
const mostTemplateBytes = 2 << 10

// keptTemplate returns what is kept of a template: the requests, which is all that anybody
// here reads. Of a large one, it keeps none, and the API server is asked for it each time.
func keptTemplate(object runtime.Object) runtime.Object {
	template, is := object.(*resourceapi.ResourceClaimTemplate)
	if !is {
		return object
	}
	part := &resourceapi.ResourceClaimTemplate{}
	part.Namespace, part.Name, part.ResourceVersion = template.Namespace, template.Name, template.ResourceVersion
	part.Spec.Spec.Devices.Requests = template.Spec.Spec.Devices.Requests
	if part.Size() > mostTemplateBytes {
		part.Spec.Spec.Devices.Requests = nil
	}
	return part
}

// found asks the API server. If the API server does not return the object, or was asked
// for too many, it is unknown. The reason is logged, unless the object does not exist or
// the review has ended.
func found[T any](r reviewLookups, get func(context.Context, string, metav1.GetOptions) (*T, error), kind, namespace, name string) *T {
	if *r.left == 0 {
		return nil
	}
	*r.left--
	ctx, cancel := context.WithTimeout(r.ctx, getTimeout)
	defer cancel()
	select {
	case r.objects <- struct{}{}:
		defer func() { <-r.objects }()
	case <-ctx.Done():
		return nil
	}
	object, err := get(ctx, name, metav1.GetOptions{})
	if err == nil {
		return object
	}
	if !apierrors.IsNotFound(err) && r.ctx.Err() == nil {
		klog.Background().Error(err, "Lookup failed", "kind", kind, "namespace", namespace, "name", name)
	}
	return nil
}

// Steps implements accounting.Known.
func (l *lookups) Steps() accounting.Steps {
	l.addUp()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.steps
}

// Selectors implements accounting.Known.
func (r reviewLookups) Selectors() *probe.Selectors { return r.selectors }

// ServerCounts implements Known.
func (l *lookups) ServerCounts() bool {
	l.addUp()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts
}

// Enforced implements Known.
func (l *lookups) Enforced() bool { return l.enforced }

// Translation implements Known. Its twins are those of the classes as they are now, too.
func (l *lookups) Translation() *Translation {
	if l.translation == nil {
		return nil
	}
	now := *l.translation
	if classes, err := l.classes.List(labels.Everything()); err == nil { // a lister of a local store has no errors
		now.Options = now.WithTwinsOf(classes)
	}
	return &now
}

// GeneratesClaims implements Known.
func (l *lookups) GeneratesClaims(user string) bool { return slices.Contains(l.creators, user) }

// addUp reads all slices, if one has changed.
func (l *lookups) addUp() {
	if !l.stale.Swap(false) {
		return
	}
	published, err := l.slices.List(labels.Everything())
	if err != nil {
		return // a lister of a local store has no errors
	}
	steps, counts := accounting.StepsOf(published), accounting.ServerCounts(published)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.steps, l.counts = steps, counts
}
