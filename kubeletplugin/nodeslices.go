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

// nodeSlices is what the API server last said of the ResourceSlices of a node,
// those of all drivers. A slice that names its node in another way than by
// spec.nodeName, as that of a network device may, is not among them.
type nodeSlices struct {
	nodeName string
	informer cache.SharedIndexInformer
	changed  chan struct{} // holds one: something changed since the last look
}

func newNodeSlices(client kubernetes.Interface, nodeName string) *nodeSlices {
	local := fields.OneTermEqualSelector(resourceapi.ResourceSliceSelectorNodeName, nodeName).String()
	// Not by a factory: that has the informers of all APIs in it.
	informer := resourceinformers.NewFilteredResourceSliceInformer(client, 0, nil,
		func(list *metav1.ListOptions) { list.FieldSelector = local })
	return &nodeSlices{
		nodeName: nodeName,
		informer: informer,
		changed:  make(chan struct{}, 1),
	}
}

// watch blocks until ctx ends.
func (s *nodeSlices) watch(ctx context.Context) {
	notice := func(any) {
		select {
		case s.changed <- struct{}{}:
		default:
		}
	}
	// Adding a handler fails only after the informer was stopped.
	_, _ = s.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: notice, UpdateFunc: func(_, now any) { notice(now) }, DeleteFunc: notice,
	})
	s.informer.RunWithContext(ctx)
}

// listed says whether the API server has answered at all.
func (s *nodeSlices) listed() bool { return s.informer.HasSynced() }

// own are the slices of this driver's pool. They must not be changed.
func (s *nodeSlices) own() (own []*resourceapi.ResourceSlice) {
	for _, slice := range s.all() {
		if slice.Spec.Driver == driver.Name && slice.Spec.Pool.Name == s.nodeName {
			own = append(own, slice)
		}
	}
	return own
}

// all are the slices of every driver, in no order. They must not be changed.
func (s *nodeSlices) all() (all []*resourceapi.ResourceSlice) {
	for _, object := range s.informer.GetStore().List() {
		if slice, ok := object.(*resourceapi.ResourceSlice); ok {
			all = append(all, slice)
		}
	}
	return all
}
