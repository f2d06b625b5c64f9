package accounting

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// Annotation is the annotation of a pod that says, by container, how much of its requests
// is for claims. It is for people: no program reads it.
const Annotation = deviceclasses.DriverName + "/mirrored"

// Mirrored is a pod that requests what its claims hold.
type Mirrored struct {
	// Pod is a copy with raised requests, limits of hugepages, and the annotation. No
	// other field differs. Requests never get smaller.
	Pod *corev1.Pod
	// Changed means that Pod differs from the original.
	Changed bool
	// Carried are the amounts in each container's requests that are for claims.
	Carried map[string]corev1.ResourceList
	// Uncounted is what the original pod's requests lacked.
	Uncounted corev1.ResourceList
	// Short is what the raised requests still lack, because of limits.
	Short corev1.ResourceList
}

// Mirror raises the requests of a pod until the scheduler and the kubelet count what its
// claims hold. It assumes that the requests of a container are all that the container
// needs, its claims included. Applied to its own result, it changes nothing.
//
// Containers that run at the same time share the amounts of a claim: each container's
// requests count as much as they have room for, in the order of the containers, and the
// first container gets the rest. A claim that only init containers use is held until the
// pod ends, so it counts in the first main container. An init container needs what its
// own claims hold, in addition to what the pod's other claims hold.
func Mirror(pod *corev1.Pod, shares []Share) Mirrored {
	m := Mirrored{Pod: pod.DeepCopy(), Carried: map[string]corev1.ResourceList{}, Short: corev1.ResourceList{}}
	if len(pod.Spec.Containers) == 0 {
		return m
	}
	for _, name := range names(shares) {
		// A larger request has room for a share that another container counted before.
		// Then an init container may need more. Repeat until nothing changes.
		for range maxRounds {
			if !m.mirror(name, shares) {
				break
			}
			m.Changed = true
		}
	}
	m.Uncounted = excess(requested(m.Pod), requested(pod))
	add(m.Uncounted, m.Short)
	if m.Changed {
		m.annotate()
	}
	return m
}

// maxPairs is how many amounts of claims, times containers, a pod may have: far more than
// pods that a node can run. An API server accepts pods with a thousand times as many.
const maxPairs = 1 << 16

// TooLarge reports whether it would take long to compare the pod's requests with the
// shares: Mirror looks at every share for every container.
func TooLarge(pod *corev1.Pod, shares []Share) bool {
	amounts := 0
	for _, share := range shares {
		amounts += len(share.Amounts)
	}
	containers := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	refs := 0
	for _, container := range containers {
		refs += len(container.Resources.Claims)
	}
	return amounts*max(len(containers), refs) > maxPairs
}

// requested returns the requests of the pod as the scheduler adds them up.
func requested(pod *corev1.Pod) corev1.ResourceList {
	return resource.PodRequests(pod, resource.PodResourcesOptions{UseDRANodeAllocatableResourceClaimStatus: true})
}

// maxRounds is more rounds than any pod needs: requests only grow, at most to the sum of
// all amounts.
const maxRounds = 16

func (m *Mirrored) mirror(name corev1.ResourceName, shares []Share) (changed bool) {
	d := newDistribution(m.Pod, name, shares)
	d.giveToMain()
	d.giveToInit()
	d.raiseForInit()
	if ofPod(m.Pod, name) {
		changed, d.short = m.raisePod(name, plus(d.total(), d.short))
	} else {
		for _, c := range d.containers {
			changed = raise(&c.container.Resources, name, c.need) || changed
		}
	}
	if changed {
		return true
	}
	for _, c := range d.containers {
		m.carry(c.container.Name, name, c.load)
	}
	m.lacks(name, d.short)
	return false
}

// ofPod reports whether the pod itself, and not its containers, says how much of the
// resource it needs.
func ofPod(pod *corev1.Pod, name corev1.ResourceName) bool {
	own := pod.Spec.Resources
	if own == nil {
		return false
	}
	_, requested := own.Requests[name]
	_, limited := own.Limits[name]
	return requested || limited
}

func (m *Mirrored) raisePod(name corev1.ResourceName, need int64) (changed bool, short int64) {
	own := m.Pod.Spec.Resources
	if limit, limited := own.Limits[name]; limited && !isHugepages(name) {
		most := number(name, corev1.ResourceList{name: limit})
		need, short = min(need, most), max(need-most, 0)
	}
	return raise(own, name, need), short
}

// raise sets a request and, for hugepages, the limit: the two must be equal.
func raise(requirements *corev1.ResourceRequirements, name corev1.ResourceName, need int64) (changed bool) {
	if need <= requestOf(requirements, name) {
		return false
	}
	set := func(list *corev1.ResourceList) {
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[name] = quantity(name, need)
	}
	set(&requirements.Requests)
	if isHugepages(name) {
		set(&requirements.Limits)
	}
	return true
}

// requestOf is a request; without a request, it is the limit.
func requestOf(requirements *corev1.ResourceRequirements, name corev1.ResourceName) int64 {
	if _, said := requirements.Requests[name]; said {
		return number(name, requirements.Requests)
	}
	return number(name, requirements.Limits)
}

func (m *Mirrored) carry(container string, name corev1.ResourceName, amount int64) {
	switch carried := m.Carried[container]; {
	case amount > 0 && carried == nil:
		m.Carried[container] = corev1.ResourceList{name: quantity(name, amount)}
	case amount > 0:
		carried[name] = quantity(name, amount)
	}
}

func (m *Mirrored) lacks(name corev1.ResourceName, amount int64) {
	if amount > 0 {
		m.Short[name] = quantity(name, amount)
	}
}

func (m *Mirrored) annotate() {
	text, err := json.Marshal(m.Carried)
	if err != nil {
		return // impossible: a map of quantities is always valid JSON
	}
	if m.Pod.Annotations == nil {
		m.Pod.Annotations = map[string]string{}
	}
	m.Pod.Annotations[Annotation] = string(text)
}
