// Package kept watches objects that tenants write. It keeps of each only what its user needs,
// and drops the rest as the object arrives: a tenant can make so many objects of a megabyte
// that the memory of a program does not hold them at the same time.
package kept

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// objectsOfPage is how many objects are read at a time from an API server that does not
// stream them.
const objectsOfPage = 16

// API lists and watches the objects of one kind.
type API[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// NewInformer watches the objects that match the field selector. keep returns what is kept of
// an object, or nil.
func NewInformer[L runtime.Object](client kubernetes.Interface, api API[L], example runtime.Object, fields string, keep func(runtime.Object) runtime.Object, indexers cache.Indexers) cache.SharedIndexInformer {
	both := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
			return list(ctx, api, fields, keep)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = fields
			events, err := api.Watch(ctx, options)
			if err != nil {
				return nil, err
			}
			return filter(events, keep), nil
		},
	}
	return cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(both, client), example, 0, indexers)
}

// list reads all pages. It asks for the state as it is now: of an older one, the API server
// returns all objects in one page.
func list[L runtime.Object](ctx context.Context, api API[L], fields string, keep func(runtime.Object) runtime.Object) (runtime.Object, error) {
	var objects []runtime.Object
	options := metav1.ListOptions{FieldSelector: fields, Limit: objectsOfPage}
	for {
		page, err := api.List(ctx, options)
		if err != nil {
			return nil, err
		}
		err = meta.EachListItem(page, func(object runtime.Object) error {
			if part := keep(object); part != nil {
				objects = append(objects, part)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		of, err := meta.ListAccessor(page)
		if err != nil {
			return nil, err
		}
		if options.Continue = of.GetContinue(); options.Continue == "" {
			return page, meta.SetList(page, objects)
		}
	}
}

// filter passes events of the objects that keep returns, as keep returns them, and all
// bookmarks and errors.
func filter(from watch.Interface, keep func(runtime.Object) runtime.Object) watch.Interface {
	events := make(chan watch.Event)
	proxy := watch.NewProxyWatcher(events)
	go func() {
		defer close(events)
		defer from.Stop()
		for {
			select {
			case <-proxy.StopChan():
				return
			case event, more := <-from.ResultChan():
				if !more {
					return
				}
				if event.Type != watch.Bookmark && event.Type != watch.Error {
					if event.Object = keep(event.Object); event.Object == nil {
						continue
					}
				}
				select {
				case events <- event:
				case <-proxy.StopChan():
					return
				}
			}
		}
	}()
	return proxy
}
