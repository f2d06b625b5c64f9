package accounting

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// Annotation of a pod says, by container, how much of its requests is what claims
// hold. It is for people: nothing reads it.
const Annotation = deviceclasses.DriverName + "/mirrored"

// Mirrored is a pod that requests what its claims hold.
type Mirrored struct {
	// Pod is a copy with the requests, of hugepages also the limits, and the
	// annotation; no other field differs. Requests never shrink.
	Pod *corev1.Pod
	// Changed says that Pod is not what it was.
	Changed bool
	// Carried are the amounts of claims in the requests of each container.
	Carried map[string]corev1.ResourceList
	// Uncounted is what the pod before lacked in the scheduler's sum.
	Uncounted corev1.ResourceList
	// Short is what it still lacks, because limits are in the way.
	Short corev1.ResourceList
}

// Mirror raises the requests of a pod until scheduler and kubelet count what its
// claims hold. A container's requests are taken to say all that it needs, its
// claims included. Mirror of its own result changes nothing.
//
// Containers that run at the same time share a claim's amounts: each holds what
// its requests have room for, in their order, and the first one the rest. A claim
// that only init containers use is held to the pod's end and so belongs to the
// first main container. An init container needs what its own claims hold, and
// beside it the pod holds those of all others.
func Mirror(pod *corev1.Pod, shares []Share) Mirrored {
	m := Mirrored{Pod: pod.DeepCopy(), Carried: map[string]corev1.ResourceList{}, Short: corev1.ResourceList{}}
	if len(pod.Spec.Containers) == 0 {
		return m
	}
	for _, name := range names(shares) {
		// A request that grows has room for a share that another one carried,
		// which can make an init container's phase need more: until it settles.
		for range settled {
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

// requested is the scheduler's sum.
func requested(pod *corev1.Pod) corev1.ResourceList {
	return resource.PodRequests(pod, resource.PodResourcesOptions{UseDRANodeAllocatableResourceClaimStatus: true})
}

// settled is more rounds than pods need: requests only grow, and no more than to
// the sum of all.
const settled = 16

func (m *Mirrored) mirror(name corev1.ResourceName, shares []Share) (changed bool) {
	sheet := newSheet(m.Pod, name, shares)
	sheet.fillMain()
	sheet.fillInit()
	sheet.coverInit()
	if m.ofPod(name) {
		changed, sheet.short = m.raisePod(name, sheet.total())
	} else {
		for _, line := range sheet.lines {
			changed = raise(&line.container.Resources, name, line.need) || changed
		}
	}
	if changed {
		return true
	}
	for _, line := range sheet.lines {
		m.carry(line.container.Name, name, line.load)
	}
	m.lacks(name, sheet.short)
	return false
}

// ofPod reports whether the pod itself, not its containers, says how much of the
// resource it needs.
func (m *Mirrored) ofPod(name corev1.ResourceName) bool {
	own := m.Pod.Spec.Resources
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

// raise sets a request, and of hugepages the limit: the two have to be the same.
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

// requestOf is a request, which without one is the limit.
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
		return // a map of quantities always is JSON
	}
	if m.Pod.Annotations == nil {
		m.Pod.Annotations = map[string]string{}
	}
	m.Pod.Annotations[Annotation] = string(text)
}
