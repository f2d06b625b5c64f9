package translate

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// mostTries is how many ways to translate a pod are tried. There are several if classes of
// two extended resources begin with the same word, such as those of two makers of GPUs.
const mostTries = 64

// Again makes the spec of the template that a translated pod names, from the fields of the
// pod only: amounts are still its limits, and the names of the requests that its containers
// use say what else was translated. The annotation is not read. The name of a template is
// made of its spec, so a pod that was changed after its translation, or never translated,
// is an error, and so are other options.
func Again(pod *corev1.Pod, options Options) (template string, spec resourceapi.ResourceClaimSpec, err error) {
	template = TemplateOf(pod)
	if template == "" {
		return "", spec, errors.New("the pod is not translated: it names no such template")
	}
	for _, original := range originals(pod, options) {
		if again, err := unchecked(original, options); err == nil && again.Template == template {
			return template, again.Spec, nil
		}
	}
	return template, spec, fmt.Errorf("template %s is not what a translation of the pod asks for: the pod or the options have changed since", template)
}

// TemplateOf returns the template that a translated pod names; "" for other pods.
func TemplateOf(pod *corev1.Pod) string {
	for _, claim := range pod.Spec.ResourceClaims {
		if claim.Name == claimName && claim.ResourceClaimTemplateName != nil && IsTemplateName(*claim.ResourceClaimTemplateName) {
			return *claim.ResourceClaimTemplateName
		}
	}
	return ""
}

var ofTemplate = regexp.MustCompile(`^` + templatePrefix + `[0-9a-f]{32}$`)

// IsTemplateName reports whether a translation can give a template the name.
func IsTemplateName(name string) bool { return ofTemplate.MatchString(name) }

// originals returns pods of which the pod may be the translation, with what counts of them.
func originals(translated *corev1.Pod, options Options) []*corev1.Pod {
	base := &corev1.Pod{}
	base.Annotations, base.Spec.Resources = translated.Annotations, translated.Spec.Resources
	// Init containers use requests of other containers: the claim is the same without them.
	// Every other container has a request, unless a webhook has added it later. So it has
	// other claims.
	keep := func(containers []corev1.Container, kept *[]corev1.Container, wanted func(corev1.Container) bool) {
		for _, c := range containers {
			if wanted(c) && isTranslated(c) && len(*kept) <= resourceapi.DeviceRequestsMaxSize {
				*kept = append(*kept, corev1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy})
			}
		}
	}
	keep(translated.Spec.InitContainers, &base.Spec.InitContainers, isSidecar)
	keep(translated.Spec.Containers, &base.Spec.Containers, func(corev1.Container) bool { return true })
	// Mostly, all containers use devices of one maker. There are few such pods, so they are first.
	ways := alike(base, options.Twins)
	var pods []*corev1.Pod
	for _, twins := range ways {
		pods = append(pods, originalsOf(base, options, twins)...)
	}
	if len(ways) > 1 {
		pods = append(pods, originalsOf(base, options, options.Twins)...)
	}
	return pods
}

// alike returns ways to choose one resource for each word that names of requests have.
func alike(pod *corev1.Pod, twins map[corev1.ResourceName]string) []map[corev1.ResourceName]string {
	words := map[string]bool{}
	for _, container := range ofPod(pod) {
		counts, _ := requestsOf(container)
		for word := range counts {
			words[word] = true
		}
	}
	ways := []map[corev1.ResourceName]string{{}}
	for _, word := range slices.Sorted(maps.Keys(words)) {
		var more []map[corev1.ResourceName]string
		for _, way := range ways {
			for _, name := range namesOf(word, twins) {
				if len(more) < mostTries {
					next := maps.Clone(way)
					next[name] = twins[name]
					more = append(more, next)
				}
			}
		}
		ways = more
	}
	return ways
}

// originalsOf returns the pods whose containers use the twins in any way.
func originalsOf(base *corev1.Pod, options Options, twins map[corev1.ResourceName]string) []*corev1.Pod {
	pods := []*corev1.Pod{base.DeepCopy()}
	for i, container := range ofPod(base) {
		var more []*corev1.Pod
		for _, choice := range usedBy(container, twins) {
			for _, pod := range pods {
				if len(more) == mostTries {
					break
				}
				next := pod.DeepCopy()
				one := ofPod(next)[i]
				one.Resources.Claims = nil
				if request, whole := one.Resources.Requests[corev1.ResourceCPU]; whole && options.CPULimit == CPULimitLift {
					setBoth(one, corev1.ResourceCPU, request)
				}
				for name, amount := range choice {
					setBoth(one, name, amount)
				}
				more = append(more, next)
			}
		}
		pods = more
	}
	return pods
}

func isTranslated(container corev1.Container) bool {
	return slices.ContainsFunc(container.Resources.Claims, func(c corev1.ResourceClaim) bool { return c.Name == claimName })
}

// usedBy returns what a container may have asked for in the place of its requests other than
// that for a zone. There is at least one choice, which may be empty, unless nothing has made
// a request.
func usedBy(container *corev1.Container, twins map[corev1.ResourceName]string) []corev1.ResourceList {
	counts, ways := requestsOf(container)
	choices := []corev1.ResourceList{{}}
	if ways != nil {
		choices[0][cacheWays] = *ways
	}
	for _, word := range slices.Sorted(maps.Keys(counts)) {
		var more []corev1.ResourceList
		for _, choice := range choices {
			for _, name := range namesOf(word, twins) {
				next := choice.DeepCopy()
				next[name] = *resource.NewQuantity(counts[word], resource.DecimalSI)
				more = append(more, next)
			}
		}
		choices = more
	}
	return choices
}

// requestsOf reads the names of the requests that a container uses: how many devices there
// are of classes that begin with a word, and the ways of a cache.
func requestsOf(container *corev1.Container) (counts map[string]int64, ways *resource.Quantity) {
	counts = map[string]int64{}
	for _, claim := range container.Resources.Claims {
		what, number, ofRequest := parse(claim.Request)
		switch {
		case claim.Name != claimName || claim.Request == container.Name || !ofRequest:
		case what == cacheWord:
			ways = resource.NewQuantity(number, resource.DecimalSI)
		default:
			counts[what]++
		}
	}
	return counts, ways
}

// namesOf returns an extended resource for each class that begins with the word. Which one of
// several of a class a container has asked for changes nothing.
func namesOf(word string, twins map[corev1.ResourceName]string) []corev1.ResourceName {
	byClass := map[string]corev1.ResourceName{}
	for name, class := range twins {
		if first, has := byClass[class]; stem(class) == word && (!has || name < first) {
			byClass[class] = name
		}
	}
	return slices.Sorted(maps.Values(byClass))
}

// parse reads the name of a request that requestName has made.
func parse(request string) (what string, number int64, ok bool) {
	_, rest, ok := cutLast(request, separator)
	if !ok {
		return "", 0, false
	}
	what, digits, ok := cutLast(rest, "-")
	number, err := strconv.ParseInt(digits, 10, 32)
	return what, number, ok && err == nil
}

func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

// stem is the beginning of a class, which package manifest gives requests for its devices.
func stem(class string) string {
	stem, _, _ := strings.Cut(class, ".")
	return stem
}

// Part returns what Again reads of a pod, so that whoever watches all pods keeps no more of
// them, and what it takes to say which pod it is.
func Part(pod *corev1.Pod) *corev1.Pod {
	part := &corev1.Pod{}
	part.Namespace, part.Name, part.UID, part.DeletionTimestamp = pod.Namespace, pod.Name, pod.UID, pod.DeletionTimestamp
	part.Spec.ResourceClaims, part.Spec.Resources = pod.Spec.ResourceClaims, pod.Spec.Resources
	part.Spec.InitContainers, part.Spec.Containers = partsOf(pod.Spec.InitContainers), partsOf(pod.Spec.Containers)
	for name, value := range pod.Annotations {
		if slices.ContainsFunc(rmdAnnotations, func(suffix string) bool { return strings.HasSuffix(name, suffix) }) {
			if part.Annotations == nil {
				part.Annotations = map[string]string{}
			}
			part.Annotations[name] = value
		}
	}
	return part
}

func partsOf(containers []corev1.Container) (parts []corev1.Container) {
	for _, container := range containers {
		parts = append(parts, corev1.Container{Name: container.Name, Resources: container.Resources, RestartPolicy: container.RestartPolicy})
	}
	return parts
}
