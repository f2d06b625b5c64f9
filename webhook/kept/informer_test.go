package kept

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

// pods are an API server with this many pods, which lists them in pages.
type pods struct {
	n       int
	changes *watch.FakeWatcher
	broken  string // the page that is not found
	most    *int   // in a page
}

func named(i int) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name, pod.Annotations = "ns", fmt.Sprint("pod-", i), map[string]string{"a": "b"}
	return pod
}

func (p pods) List(_ context.Context, options metav1.ListOptions) (*corev1.PodList, error) {
	if options.FieldSelector != "a=b" || options.ResourceVersion != "" || options.Continue != "" && options.Continue == p.broken {
		return nil, fmt.Errorf("list with %+v", options)
	}
	begin := 0
	if options.Continue != "" {
		if _, err := fmt.Sscan(options.Continue, &begin); err != nil {
			return nil, err
		}
	}
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	for i := begin; i < p.n; i++ {
		if options.Limit > 0 && len(list.Items) == int(options.Limit) {
			list.Continue = fmt.Sprint(i)
			break
		}
		list.Items = append(list.Items, *named(i))
	}
	*p.most = max(*p.most, len(list.Items))
	return list, nil
}

func (p pods) Watch(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	if options.FieldSelector != "a=b" {
		return nil, fmt.Errorf("watch with %+v", options)
	}
	if p.changes == nil {
		return nil, errors.New("no watch")
	}
	return p.changes, nil
}

// even keeps the names of each other pod.
func even(object runtime.Object) runtime.Object {
	pod := object.(*corev1.Pod)
	i := 0
	if _, err := fmt.Sscanf(pod.Name, "pod-%d", &i); err != nil || i%2 == 1 {
		return nil
	}
	part := &corev1.Pod{}
	part.Namespace, part.Name = pod.Namespace, pod.Name
	return part
}

func TestListsAreReadInPages(t *testing.T) {
	for _, n := range []int{0, 1, objectsOfPage, 3*objectsOfPage + 1} {
		api := pods{n: n, most: new(int)}
		got, err := list(t.Context(), api, "a=b", even)
		if err != nil {
			t.Fatal(err)
		}
		all := got.(*corev1.PodList)
		if len(all.Items) != (n+1)/2 || all.ResourceVersion != "7" || all.Continue != "" || *api.most > objectsOfPage {
			t.Errorf("%d pods: %d are kept, %d of a page, %+v", n, len(all.Items), *api.most, all.ListMeta)
		}
	}
	// A part of the list is no list.
	if _, err := list(t.Context(), pods{n: 3 * objectsOfPage, broken: fmt.Sprint(2 * objectsOfPage), most: new(int)}, "a=b", even); err == nil {
		t.Error("a page is missing")
	}
}

func TestInformerHasOnlyWhatIsKept(t *testing.T) {
	api := pods{n: 3, changes: watch.NewFake(), most: new(int)}
	informer := NewInformer(fake.NewClientset(), api, &corev1.Pod{}, "a=b", even, cache.Indexers{})
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		informer.RunWithContext(ctx)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	for i := 3; i < 7; i++ {
		api.changes.Add(named(i))
	}
	api.changes.Delete(named(2))
	api.changes.Delete(named(5))
	// A bookmark says how far the watch is, and names no pod.
	api.changes.Action(watch.Bookmark, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9"}})
	want := []string{"ns/pod-0", "ns/pod-4", "ns/pod-6"}
	var names []string
	err := wait.PollUntilContextTimeout(ctx, time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		names = informer.GetIndexer().ListKeys()
		slices.Sort(names)
		return slices.Equal(names, want) && informer.LastSyncResourceVersion() == "9", nil
	})
	if err != nil {
		t.Errorf("kept %q up to %s, want %q: %v", names, informer.LastSyncResourceVersion(), want, err)
	}
	for _, object := range informer.GetIndexer().List() {
		if pod := object.(*corev1.Pod); pod.Annotations != nil {
			t.Errorf("kept: %+v", pod)
		}
	}
}
