package translation

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/manifest"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
)

// Manifests returns the objects that the translation writes, for kubectl apply: each template
// before the first object that names it, and pods and workloads as they were read, with only
// the translated fields changed. Without is the number of pods of which there are only
// templates, because they run, or a workload makes them that is not among the objects: an API
// server lets nobody change them.
func (r *Report) Manifests(objects *snapshot.Snapshot) (list []any, without int, err error) {
	list = []any{}
	written := make(map[manifest.Metadata]bool)
	texts := make(map[metav1.Object]map[string]any) // a JobSet may have several items
	for _, item := range r.Items {
		if item.Result != Translated {
			continue
		}
		object, text := item.object, map[string]any(nil)
		if object != nil && isManifest(object) && objects.Text(object) != nil {
			if text = texts[object]; text == nil {
				if err := utiljson.Unmarshal(objects.Text(object), &text); err != nil {
					return nil, 0, fmt.Errorf("read %s %s/%s again: %w", item.Kind, item.Namespace, item.Name, err)
				}
			}
		}
		// An object that names no namespace goes where kubectl says, and so does its template.
		name := manifest.Metadata{Name: item.Template, Namespace: item.Namespace}
		if text != nil {
			name.Namespace, _ = within(text, "metadata")["namespace"].(string)
		}
		if !written[name] {
			written[name] = true
			list = append(list, templateOf(name, *item.Claim))
		}
		if text == nil {
			without += item.Pods
			continue
		}
		item.write(text)
		if texts[object] == nil {
			texts[object] = text
			list = append(list, text)
		}
	}
	return list, without, nil
}

// isManifest reports whether the object may be changed, and nothing else makes it.
func isManifest(object metav1.Object) bool {
	pod, is := object.(*corev1.Pod)
	return metav1.GetControllerOf(object) == nil && (!is || pod.Spec.NodeName == "")
}

// templateOf is the template without what an API server fills in.
func templateOf(name manifest.Metadata, spec resourceapi.ResourceClaimSpec) manifest.Object {
	meta := metav1.TypeMeta{APIVersion: resourceapi.SchemeGroupVersion.String(), Kind: "ResourceClaimTemplate"}
	return manifest.Object{TypeMeta: meta, Metadata: name, Spec: struct {
		Spec resourceapi.ResourceClaimSpec `json:"spec"`
	}{spec}}
}

// write changes the text of the item's object.
func (i *Item) write(text map[string]any) {
	meta := within(text, "metadata")
	delete(text, "status") // of an object that kubectl get has printed
	delete(meta, "managedFields")
	_, stored := meta["uid"]
	pod := follow(text, i.path)
	within(pod, "metadata", "annotations")[translate.Annotation] = i.after.Annotations[translate.Annotation]
	spec := within(pod, "spec")
	spec["resourceClaims"] = asText(i.after.Spec.ResourceClaims)
	for list, containers := range map[string][2][]corev1.Container{
		"initContainers": {i.before.Spec.InitContainers, i.after.Spec.InitContainers},
		"containers":     {i.before.Spec.Containers, i.after.Spec.Containers},
	} {
		texts, _ := spec[list].([]any)
		for at := range containers[0] {
			writeResources(within(texts[at].(map[string]any), "resources"), containers[0][at].Resources, containers[1][at].Resources, stored)
		}
	}
}

// writeResources changes what the translation changes of a container.
func writeResources(texts map[string]any, before, after corev1.ResourceRequirements, stored bool) {
	writeAmounts(texts, "limits", before.Limits, after.Limits, stored)
	writeAmounts(texts, "requests", before.Requests, after.Requests, stored)
	for name, amount := range after.Requests {
		if _, limited := after.Limits[name]; limited {
			continue // a request that is not written is the limit
		}
		if requests := within(texts, "requests"); requests[string(name)] == nil {
			requests[string(name)] = amount.String()
		}
	}
	if len(after.Claims) > 0 {
		texts["claims"] = asText(after.Claims)
	}
}

// writeAmounts changes the amounts that are written. In an object that is stored, those that
// the translation takes away are null: otherwise kubectl apply removes only what it has
// written itself.
func writeAmounts(resources map[string]any, key string, before, after corev1.ResourceList, stored bool) {
	texts, _ := resources[key].(map[string]any)
	for name, amount := range before {
		now, keeps := after[name]
		switch _, written := texts[string(name)]; {
		case !written:
		case !keeps && stored:
			texts[string(name)] = nil
		case !keeps:
			delete(texts, string(name))
		case now.Cmp(amount) != 0:
			texts[string(name)] = now.String()
		}
	}
}

// follow returns what is at a path such as spec.replicatedJobs[0].template.
func follow(text map[string]any, path string) map[string]any {
	for key := range strings.SplitSeq(path, ".") {
		if path == "" {
			return text
		}
		key, index, isItem := strings.Cut(strings.TrimSuffix(key, "]"), "[")
		if !isItem {
			text = within(text, key)
			continue
		}
		at, _ := strconv.Atoi(index) // the path is not of a user
		text = text[key].([]any)[at].(map[string]any)
	}
	return text
}

// within returns the map at the keys, and makes those that are missing.
func within(text map[string]any, keys ...string) map[string]any {
	for _, key := range keys {
		below, is := text[key].(map[string]any)
		if !is {
			below = make(map[string]any)
			text[key] = below
		}
		text = below
	}
	return text
}

// asText returns the value as JSON has it.
func asText(value any) (text any) {
	encoded, err := json.Marshal(value)
	if err == nil {
		err = utiljson.Unmarshal(encoded, &text)
	}
	if err != nil {
		panic(err) // impossible: the values have only strings
	}
	return text
}
