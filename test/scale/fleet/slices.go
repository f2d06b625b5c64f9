package fleet

import (
	"context"
	"errors"
	"sync"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

// slicesWatch knows when the slices of each node were last written, and last deleted, as
// another client sees it. Each node has one slice.
type slicesWatch struct {
	stop context.CancelFunc

	mu      sync.Mutex
	written map[string]time.Time // by node
	deleted map[string]time.Time
	asked   map[string]time.Time // when the deletion was asked for
}

// watchSlices returns once it knows the slices there are.
func watchSlices(ctx context.Context, client kubernetes.Interface) (*slicesWatch, error) {
	ctx, stop := context.WithCancel(ctx)
	w := &slicesWatch{stop: stop, written: make(map[string]time.Time), deleted: make(map[string]time.Time), asked: make(map[string]time.Time)}
	ours := func(list *metav1.ListOptions) {
		list.FieldSelector = resourceapi.ResourceSliceSelectorDriver + "=" + driver.Name
	}
	informer := resourceinformers.NewFilteredResourceSliceInformer(client, 0, nil, ours)
	note := func(times map[string]time.Time, object any) {
		if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = last.Obj
		}
		if slice, ok := object.(*resourceapi.ResourceSlice); ok && slice.Spec.NodeName != nil {
			w.mu.Lock()
			times[*slice.Spec.NodeName] = time.Now()
			w.mu.Unlock()
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(now any) { note(w.written, now) },
		UpdateFunc: func(_, now any) { note(w.written, now) },
		DeleteFunc: func(last any) { note(w.deleted, last) },
	})
	if err != nil {
		stop()
		return nil, err
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		stop()
		return nil, errors.New("the API server does not list ResourceSlices")
	}
	return w, nil
}

// times are when the slices of a node were last written and last deleted.
func (w *slicesWatch) times(node string) (written, deleted time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.written[node], w.deleted[node]
}

// ask notes that the slices of a node are deleted from now on.
func (w *slicesWatch) ask(node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[node] = time.Now()
}

// window is from when the last deletion was asked for until the slices were last written.
func (w *slicesWatch) window(node string) Window {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Window{w.asked[node], w.written[node]}
}
