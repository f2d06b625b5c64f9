package templates

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
)

// byTemplate is the index of pods by the template that they name.
const byTemplate = "template"

// mostPodBytes is how much of a pod is kept, in the encoding of protobuf: names, claims and
// amounts. A container needs about 200 bytes, and a tenant can make pods of a megabyte.
const mostPodBytes = 32 << 10

// unfinished selects the pods that may still need their claim.
const unfinished = "status.phase!=" + string(corev1.PodSucceeded) + ",status.phase!=" + string(corev1.PodFailed)

// newPods watches the pods that name a template of a translation. Which template a pod names
// never changes. Others are dropped as they arrive: the API server streams the list, so at no
// time all pods are in memory.
func newPods(client kubernetes.Interface) cache.SharedIndexInformer {
	api := client.CoreV1().Pods(metav1.NamespaceAll)
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		options.FieldSelector = unfinished
		pods, err := api.List(ctx, options)
		if err != nil {
			return nil, err
		}
		kept := &corev1.PodList{ListMeta: pods.ListMeta}
		for i := range pods.Items {
			if pod := keptPod(&pods.Items[i]); pod != nil {
				kept.Items = append(kept.Items, *pod.(*corev1.Pod))
			}
		}
		return kept, nil
	}
	stream := func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		options.FieldSelector = unfinished
		pods, err := api.Watch(ctx, options)
		return filter(pods, err, keptPod)
	}
	return newInformer(client, &corev1.Pod{}, list, stream, cache.Indexers{byTemplate: func(object any) ([]string, error) {
		pod := object.(*corev1.Pod)
		return []string{keyOf(pod.Namespace, translate.TemplateOf(pod))}, nil
	}})
}

// keptPod returns what is kept of a pod, or nil.
func keptPod(object runtime.Object) runtime.Object {
	pod, isPod := object.(*corev1.Pod)
	if !isPod {
		return object // an error or a bookmark
	}
	if translate.TemplateOf(pod) == "" {
		return nil
	}
	part := translate.Part(pod)
	part.ResourceVersion = pod.ResourceVersion
	if part.Size() > mostPodBytes {
		part.Annotations, part.Spec.InitContainers, part.Spec.Containers = nil, nil, nil
	}
	return part
}

// newTemplates watches the templates with the names of translations, also those that somebody
// else has made.
func newTemplates(client kubernetes.Interface) cache.SharedIndexInformer {
	api := client.ResourceV1().ResourceClaimTemplates(metav1.NamespaceAll)
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		templates, err := api.List(ctx, options)
		if err != nil {
			return nil, err
		}
		kept := &resourceapi.ResourceClaimTemplateList{ListMeta: templates.ListMeta}
		for _, template := range templates.Items {
			if translate.IsTemplateName(template.Name) {
				kept.Items = append(kept.Items, template)
			}
		}
		return kept, nil
	}
	stream := func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		templates, err := api.Watch(ctx, options)
		return filter(templates, err, func(object runtime.Object) runtime.Object {
			if template, is := object.(*resourceapi.ResourceClaimTemplate); is && !translate.IsTemplateName(template.Name) {
				return nil
			}
			return object
		})
	}
	return newInformer(client, &resourceapi.ResourceClaimTemplate{}, list, stream, cache.Indexers{})
}

func newInformer(client kubernetes.Interface, example runtime.Object, list cache.ListWithContextFunc, stream cache.WatchFuncWithContext, indexers cache.Indexers) cache.SharedIndexInformer {
	both := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{ListWithContextFunc: list, WatchFuncWithContext: stream}, client)
	return cache.NewSharedIndexInformer(both, example, 0, indexers)
}

// filter passes events of the objects that keep returns, as keep returns them, and all
// bookmarks and errors.
func filter(from watch.Interface, err error, keep func(runtime.Object) runtime.Object) (watch.Interface, error) {
	if err != nil {
		return nil, err
	}
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
	return proxy, nil
}
