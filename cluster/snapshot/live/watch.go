package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// Watcher is a copy of a cluster that is kept up to date. It is a snapshot.Source.
type Watcher struct {
	factory     informers.SharedInformerFactory
	informers   []cache.SharedIndexInformer
	ruleVersion string
	changes     chan struct{}
	failures    chan error
}

// Watch starts to copy the cluster, and returns when the copy is complete. The watches
// end when ctx ends; Stop waits for them. The user needs the verbs list and watch on
// every kind of a snapshot, in all namespaces.
func (s Source) Watch(ctx context.Context) (*Watcher, error) {
	w := &Watcher{factory: informers.NewSharedInformerFactoryWithOptions(s.Client, 0, informers.WithTransform(complete)), changes: make(chan struct{}, 1), failures: make(chan error, 1)}
	core, resources := w.factory.Core().V1(), w.factory.Resource().V1()
	w.informers = []cache.SharedIndexInformer{
		core.Nodes().Informer(), resources.DeviceClasses().Informer(), resources.ResourceSlices().Informer(),
		resources.ResourceClaims().Informer(), resources.ResourceClaimTemplates().Informer(), core.Pods().Informer(),
	}
	if _, err := s.taintRules(&w.ruleVersion)(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		return nil, fmt.Errorf("list DeviceTaintRules: %w", err)
	}
	for _, v := range s.ruleVersions() {
		if v.name == w.ruleVersion {
			w.informers = append(w.informers, v.informer(w.factory))
		}
	}
	changed := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { w.change() }, UpdateFunc: func(any, any) { w.change() }, DeleteFunc: func(any) { w.change() },
	}
	for _, informer := range w.informers {
		if _, err := informer.AddEventHandler(changed); err != nil {
			return nil, err
		}
		if err := informer.SetWatchErrorHandlerWithContext(w.fail); err != nil {
			return nil, err
		}
	}
	w.factory.StartWithContext(ctx)
	for _, synced := range w.factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			w.Stop()
			return nil, ctx.Err()
		}
	}
	return w, nil
}

// change signals a change, unless a signal is already waiting.
func (w *Watcher) change() {
	select {
	case w.changes <- struct{}{}:
	default:
	}
}

// fail reports that the copy may be out of date, unless a report is already waiting. It
// is not a failure if a watch ends, or is too old to continue: it starts again by itself. Nor
// is the end of a request that was under way when ctx ended.
func (w *Watcher) fail(ctx context.Context, reflector *cache.Reflector, err error) {
	if ctx.Err() != nil {
		return
	}
	cache.DefaultWatchErrorHandler(ctx, reflector, err)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return
	}
	select {
	case w.failures <- err:
	default:
	}
}

// Failures delivers an error when the copy may be out of date. The watch tries again by
// itself.
func (w *Watcher) Failures() <-chan error { return w.failures }

// Changes delivers a value after one or more changes.
func (w *Watcher) Changes() <-chan struct{} { return w.changes }

// Stop waits until the watches have ended. They end after ctx.
func (w *Watcher) Stop() { w.factory.Shutdown() }

// Snapshot returns the copy as it is now. Its objects must not be changed.
func (w *Watcher) Snapshot(context.Context) (*snapshot.Snapshot, error) {
	objects := &snapshot.Snapshot{RuleVersion: w.ruleVersion}
	for _, informer := range w.informers {
		store := informer.GetStore()
		keys := store.ListKeys()
		slices.Sort(keys)
		for _, key := range keys {
			item, there, err := store.GetByKey(key)
			if err != nil || !there {
				continue // deleted in the meantime
			}
			object, err := meta.Accessor(item)
			if err == nil {
				err = objects.Add(object, "the cluster")
			}
			if err != nil {
				return nil, fmt.Errorf("copy %s: %w", key, err)
			}
		}
	}
	slices.SortStableFunc(objects.Pods, inTurn)
	return objects, nil
}

// complete sets defaults in an object as a snapshot does. It runs once per object,
// before the object is shared.
func complete(item any) (any, error) {
	object, err := meta.Accessor(item)
	if err != nil {
		return item, nil // a tombstone: the object was deleted
	}
	object.SetManagedFields(nil)
	return item, (&snapshot.Snapshot{}).Add(object, "the cluster")
}
