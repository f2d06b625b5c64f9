package kubeletplugin

import (
	"context"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
)

// nodeSlices has the ResourceSlices of a node, of all drivers, as the API server last
// reported them. Slices that do not name their node in spec.nodeName are missing, for
// example those of some network devices.
type nodeSlices struct {
	nodeName string
	informer cache.SharedIndexInformer
	changed  chan struct{} // has room for one: something changed since the last look
}

func newNodeSlices(client kubernetes.Interface, nodeName string) *nodeSlices {
	local := fields.OneTermEqualSelector(resourceapi.ResourceSliceSelectorNodeName, nodeName).String()
	// Not from an informer factory, which has the informers of all APIs in it.
	informer := resourceinformers.NewFilteredResourceSliceInformer(client, 0, nil,
		func(list *metav1.ListOptions) { list.FieldSelector = local })
	return &nodeSlices{
		nodeName: nodeName,
		informer: informer,
		changed:  make(chan struct{}, 1),
	}
}

// watch runs the informer until ctx ends.
func (s *nodeSlices) watch(ctx context.Context) {
	notice := func(any) { signal(s.changed) }
	// Adding a handler fails only after the informer was stopped.
	_, _ = s.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: notice, UpdateFunc: func(_, now any) { notice(now) }, DeleteFunc: notice,
	})
	s.informer.RunWithContext(ctx)
}

// listed reports whether the API server has answered with the first list.
func (s *nodeSlices) listed() bool { return s.informer.HasSynced() }

// own returns the slices of this driver's pool. They must not be changed.
func (s *nodeSlices) own() (own []*resourceapi.ResourceSlice) {
	for _, slice := range s.all() {
		if slice.Spec.Driver == driver.Name && slice.Spec.Pool.Name == s.nodeName {
			own = append(own, slice)
		}
	}
	return own
}

// all returns the slices of all drivers, in no order. They must not be changed.
func (s *nodeSlices) all() (all []*resourceapi.ResourceSlice) {
	for _, object := range s.informer.GetStore().List() {
		if slice, ok := object.(*resourceapi.ResourceSlice); ok {
			all = append(all, slice)
		}
	}
	return all
}
