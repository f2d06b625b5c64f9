// Package translation says what package translate makes of the pods of a cluster or of
// manifests: which get a claim, what changes for each, which keep what they have, and which
// have no node afterwards.
package translation

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
)

// Values of Item.Result.
const (
	Translated = "translated"
	LeftAlone  = "leftAlone"  // a static manager would give the pods nothing of their own
	Impossible = "impossible" // the pods would lose something
)

// Report is what a translation does.
type Report struct {
	Translated Count `json:"translated"`
	LeftAlone  Count `json:"leftAlone"`
	Impossible Count `json:"impossible"`
	// Simulated says whether the pods were placed, and NoNode is how many of those that are
	// translated got no node.
	Simulated bool    `json:"simulated"`
	NoNode    int     `json:"noNode"`
	Items     []*Item `json:"items"`

	options translate.Options
	of      map[types.NamespacedName]*Item // by pod
	makers  map[maker][]*Item              // those of workloads, one for each template
}

// Count counts items and their pods.
type Count struct {
	Objects int `json:"objects"`
	Pods    int `json:"pods"`
}

// Item is a pod, or the pods of a template of a workload. Pods of a workload that is not
// among the objects are an item if the same becomes of them.
type Item struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Job       string `json:"job,omitempty"` // of a JobSet
	Where     string `json:"where"`
	// Pods is how many run at the same time. Of a DaemonSet, these are the pods on the nodes
	// that are among the objects.
	Pods   int    `json:"pods"`
	Result string `json:"result"`
	Why    string `json:"why,omitempty"`

	// Of a pod that is translated:
	Template   string                         `json:"template,omitempty"`
	Claim      *resourceapi.ResourceClaimSpec `json:"claim,omitempty"`
	Containers []Container                    `json:"containers,omitempty"`
	Notes      []string                       `json:"notes,omitempty"`
	Nodes      map[string]int                 `json:"nodes,omitempty"` // number of pods by node
	// Unschedulable are the pods without a node.
	Unschedulable []simulate.Unschedulable `json:"unschedulable,omitempty"`

	object        metav1.Object // the workload or the pod; nil for pods without their workload
	path          string        // of the pod in the object; "" for a pod
	before, after *corev1.Pod
}

// Container is what changes for a container.
type Container struct {
	Name     string              `json:"name"`
	Requests []string            `json:"requests,omitempty"` // of the claim, that it uses
	Leaves   corev1.ResourceList `json:"leaves,omitempty"`   // what it no longer asks for
}

// maker is who makes pods.
type maker struct{ namespace, kind, name string }

// Of translates the pods and the templates of workloads that are asked for. It changes no
// object.
func Of(objects *snapshot.Snapshot, options translate.Options, asked func(metav1.Object) bool) *Report {
	r := &Report{Items: []*Item{}, options: options, of: make(map[types.NamespacedName]*Item), makers: make(map[maker][]*Item)}
	for _, workload := range objects.Workloads {
		if objects.MadeBy(workload) == nil && asked(workload) {
			r.addWorkload(workload, objects.Where(workload))
		}
	}
	groups := make(map[string]*Item)
	for _, pod := range objects.Pods {
		if snapshot.Finished(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		if item := r.madeBy(objects, pod); item != nil {
			r.of[nameOf(pod)] = item
		} else if asked(pod) {
			r.addPod(pod, objects.Where(pod), groups)
		}
	}
	return r
}

func (r *Report) addWorkload(workload *snapshot.Workload, where string) {
	by := maker{workload.GetNamespace(), workload.Kind, workload.GetName()}
	for _, template := range workload.Templates {
		item := &Item{
			Kind: workload.Kind, Namespace: workload.GetNamespace(), Name: workload.GetName(), Job: template.Job, Where: where,
			Pods: template.Pods, object: workload, path: template.Path,
		}
		item.translate(workload.Pod(template), r.options)
		r.Items = append(r.Items, item)
		r.makers[by] = append(r.makers[by], item)
	}
}

// addPod adds the pod, or counts it with other pods of the same controller of which the same
// becomes.
func (r *Report) addPod(pod *corev1.Pod, where string, groups map[string]*Item) {
	item := &Item{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, Where: where, object: pod}
	item.translate(unbound(pod), r.options)
	if by := controllerOf(pod); by.kind != "" {
		key := strings.Join([]string{by.namespace, by.kind, by.name, item.Template, item.Why}, "\n")
		if groups[key] == nil {
			item.Kind, item.Name, item.object = by.kind, by.name, nil
			groups[key] = item
			r.Items = append(r.Items, item)
		}
		item = groups[key]
	} else {
		r.Items = append(r.Items, item)
	}
	item.Pods++
	r.of[nameOf(pod)] = item
}

// translate says what becomes of the pod.
func (i *Item) translate(pod *corev1.Pod, options translate.Options) {
	translated, err := translated(pod, options)
	if i.Result, i.Why = Translated, ""; err != nil {
		i.Result, i.Why = Impossible, err.Error()
		if errors.As(err, new(translate.NotStaticError)) {
			i.Result = LeftAlone
		}
		return
	}
	i.Template, i.Claim, i.Notes = translated.Template, &translated.Spec, translated.Notes
	i.before, i.after = pod, translated.Pod
	before, after := containersOf(i.before), containersOf(i.after)
	for at := range before {
		changed := Container{Name: before[at].Name}
		for _, claim := range after[at].Resources.Claims {
			changed.Requests = append(changed.Requests, claim.Request)
		}
		for name, amount := range before[at].Resources.Limits {
			_, limited := after[at].Resources.Limits[name]
			if _, asks := after[at].Resources.Requests[name]; !limited && !asks {
				if changed.Leaves == nil {
					changed.Leaves = corev1.ResourceList{}
				}
				changed.Leaves[name] = amount
			}
		}
		i.Containers = append(i.Containers, changed)
	}
}

func translated(pod *corev1.Pod, options translate.Options) (translate.Translated, error) {
	if translate.TemplateOf(pod) != "" {
		return translate.Translated{}, translate.NotStaticError{Why: "translated already"}
	}
	if _, is := pod.Annotations[corev1.MirrorPodAnnotationKey]; is {
		return translate.Translated{}, translate.NotStaticError{Why: "a static pod of the kubelet can have no claims"}
	}
	if pod.Labels[translate.Label] == translate.LabelOff {
		return translate.Translated{}, translate.NotStaticError{Why: fmt.Sprintf("the pod has the label %s: %q", translate.Label, translate.LabelOff)}
	}
	return translate.Pod(pod, options)
}

// unbound returns the pod as if it were made again, if it runs.
func unbound(pod *corev1.Pod) *corev1.Pod {
	again := pod.DeepCopy()
	again.Spec.NodeName = ""
	return again
}

// containersOf returns all containers that a translation can change.
func containersOf(pod *corev1.Pod) []corev1.Container {
	return slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
}

// controllerOf returns what has made the pod, as far as the pod says it: the Deployment of a
// ReplicaSet has the name of the ReplicaSet without the hash. A static pod belongs to its
// Node and has no controller.
func controllerOf(pod *corev1.Pod) maker {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind == "Node" {
		return maker{}
	}
	if hash := pod.Labels["pod-template-hash"]; owner.Kind == "ReplicaSet" && hash != "" {
		if name, is := strings.CutSuffix(owner.Name, "-"+hash); is {
			return maker{pod.Namespace, "Deployment", name}
		}
	}
	return maker{pod.Namespace, owner.Kind, owner.Name}
}

// madeBy returns the item of the workload that has made the pod, or nil.
func (r *Report) madeBy(objects *snapshot.Snapshot, pod *corev1.Pod) *Item {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return nil
	}
	candidates := []maker{{pod.Namespace, owner.Kind, owner.Name}, controllerOf(pod)}
	if workload := objects.Workload(owner.Kind, pod.Namespace, owner.Name); workload != nil {
		if above := metav1.GetControllerOf(workload); above != nil {
			candidates = append(candidates, maker{pod.Namespace, above.Kind, above.Name})
		}
	}
	if owner.Kind == "Job" { // the names of a CronJob's Jobs end with the time
		name := owner.Name[:max(strings.LastIndex(owner.Name, "-"), 0)]
		candidates = append(candidates, maker{pod.Namespace, "CronJob", name}, maker{pod.Namespace, "JobSet", pod.Labels["jobset.sigs.k8s.io/jobset-name"]})
	}
	for _, by := range candidates {
		// The names of a JobSet's pods begin with that of their job.
		items := slices.SortedStableFunc(slices.Values(r.makers[by]), func(a, b *Item) int { return cmp.Compare(len(b.Job), len(a.Job)) })
		for _, item := range items {
			if item.Job == "" || strings.HasPrefix(pod.Name, item.Name+"-"+item.Job+"-") {
				return item
			}
		}
	}
	return nil
}

func nameOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}
