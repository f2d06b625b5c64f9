package translation

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
)

// Apply changes the objects to what they are after the translation: pods that run and are
// translated wait for a node again, and manifests of workloads have their pods. An error is
// about manifests with too many pods.
func (r *Report) Apply(objects *snapshot.Snapshot) error {
	for _, item := range r.Items {
		workload, is := item.object.(*snapshot.Workload)
		if !is || item.Result != Translated {
			continue
		}
		if err := addTemplate(objects, item.Namespace, item.Template, *item.Claim); err != nil {
			return err
		}
		for _, template := range workload.Templates {
			if template.Path == item.path {
				template.Spec, template.Annotations = item.after.Spec, item.after.Annotations
			}
		}
	}
	pods := objects.Pods
	objects.Pods = nil
	for _, pod := range pods {
		kept, err := r.again(objects, pod)
		if err != nil {
			return err
		}
		if kept != nil {
			objects.Pods = append(objects.Pods, kept)
		}
	}
	if err := simulate.AddPods(objects); err != nil {
		return err
	}
	for _, pod := range objects.Pods {
		if item := r.madeBy(objects, pod); item != nil {
			r.of[nameOf(pod)] = item
		}
	}
	r.countDaemons(objects)
	return nil
}

// again returns the pod as it is after the translation, or nil: pods of a manifest are made
// of it.
func (r *Report) again(objects *snapshot.Snapshot, pod *corev1.Pod) (*corev1.Pod, error) {
	item := r.of[nameOf(pod)]
	if item == nil {
		return pod, nil
	}
	if workload, is := item.object.(*snapshot.Workload); is && workload.IsManifest() && !snapshot.IsPlaced(pod) {
		return nil, nil
	}
	got, err := translated(unbound(pod), r.options)
	if err != nil || item.Result != Translated {
		return pod, nil
	}
	got.Pod.Status = corev1.PodStatus{}
	return got.Pod, addTemplate(objects, pod.Namespace, got.Template, got.Spec)
}

// addTemplate adds the template of a translated pod, unless there is one already.
func addTemplate(objects *snapshot.Snapshot, namespace, name string, spec resourceapi.ResourceClaimSpec) error {
	if objects.Template(namespace, name) != nil {
		return nil
	}
	return objects.Add(&resourceapi.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: resourceapi.ResourceClaimTemplateSpec{Spec: *spec.DeepCopy()},
	}, "the translation")
}

// countDaemons counts the pods of DaemonSets, which only the nodes say.
func (r *Report) countDaemons(objects *snapshot.Snapshot) {
	count := make(map[*Item]int)
	for _, pod := range objects.Pods {
		count[r.of[nameOf(pod)]]++
	}
	for _, item := range r.Items {
		if item.object != nil && item.Kind == snapshot.DaemonSet {
			item.Pods = count[item]
		}
	}
}

// Place adds where the simulation has placed the pods that are translated. It returns those
// on which the scheduler gives up.
func (r *Report) Place(result simulate.Result) (aborted []*simulate.AbortError) {
	r.Simulated = true
	item := func(pod string) *Item {
		namespace, name, _ := strings.Cut(pod, "/")
		if found := r.of[types.NamespacedName{Namespace: namespace, Name: name}]; found != nil && found.Result == Translated {
			return found
		}
		return nil
	}
	for _, pod := range result.Pods {
		if found := item(pod.Pod); found != nil {
			if found.Nodes == nil {
				found.Nodes = make(map[string]int)
			}
			found.Nodes[pod.Node]++
		}
	}
	for _, pod := range result.Unschedulable {
		if found := item(pod.Pod); found != nil {
			found.Unschedulable = append(found.Unschedulable, pod)
		}
	}
	return slices.DeleteFunc(result.Aborted, func(a *simulate.AbortError) bool { return item(a.Pod) == nil })
}

// Sum counts the items by their results.
func (r *Report) Sum() {
	for _, item := range r.Items {
		count := map[string]*Count{Translated: &r.Translated, LeftAlone: &r.LeftAlone, Impossible: &r.Impossible}[item.Result]
		count.Objects++
		count.Pods += item.Pods
		r.NoNode += len(item.Unschedulable)
	}
}
