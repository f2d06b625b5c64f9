package sameness

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// kind is a kind of difference, as docs/static-managers.md says it.
type kind string

// The kinds. Each but the last two is shown by another question: if it is asked without the
// cause, both answers mean the same.
const (
	wholeCores     kind = "A container has whole cores and whole mebibytes: 3 CPUs become 4 where a core has two threads. The static policy gives threads of a core to several containers. With `full-pcpus-only` it refuses 3 CPUs instead."
	initContainers kind = "An init container runs on the CPUs of all main containers, and does not decide where they are. One that asks for more than they have together is not translated. The kubelet gives it its own number of CPUs, and main containers have to be where these are."
	inTurn         kind = "The scheduler places one container after the other, those with devices and many CPUs first. It gives one its next alternative before it moves an earlier one, but moves that before it leaves the pod Pending. The kubelet has the order of the pod, and never moves a container: it refuses the pod. With the scope `pod` it looks for room for all containers together."
	nearFirst      kind = "A container has one NUMA node wherever one has room, with its memory and its devices. With the policy `none` or the option `align-by-socket`, the kubelet does not look for one."
	restricted     kind = "`restricted` means one NUMA node, or two of one socket that give equal parts, by what is free now. The kubelet takes as many NUMA nodes, of any sockets, as the pod would need on an empty machine, and refuses the pod if these have no room, or if its CPUs, memory and devices would need different numbers of them."
	equalParts     kind = "`best-effort` and `none` mean one NUMA node, or two that give equal parts, of one socket if possible. Otherwise the pod is Pending. The kubelet takes what is free in any parts from any NUMA nodes, and memory may be on others than the CPUs."
)

var kinds = []kind{wholeCores, initContainers, inTurn, nearFirst, restricted, equalParts}

// steps ask without the cause of a difference.
var steps = []struct {
	kind   kind
	change func(question) question
}{{wholeCores, question.rounded}, {initContainers, question.withoutInit}, {nearFirst, question.aligned}}

// without changes the question by some steps, whose bits are set. It returns no kinds if one of
// them changes nothing.
func (q question) without(chosen int) (next question, found []kind) {
	for i, step := range steps {
		if chosen&(1<<i) != 0 {
			before := q.String()
			if q = step.change(q); q.String() == before {
				return q, nil
			}
			found = append(found, step.kind)
		}
	}
	return q, found
}

// differences returns the kinds that explain why the answers to a question differ, or an error.
func (q question) differences(t *testing.T, theirs, ours answer) (found []kind, err error) {
	t.Helper()
	if err := q.checkPlaces(ours); err != nil || q.same(theirs, ours) {
		return nil, err
	}
	fewestFirst := []int{0b001, 0b010, 0b100, 0b011, 0b101, 0b110, 0b111}
	for _, chosen := range fewestFirst {
		if next, found := q.without(chosen); found != nil && next.same(next.kubelet(t), next.ours(t)) {
			return found, nil
		}
	}
	if q.inTurn(t) {
		return []kind{inTurn}, nil
	}
	for _, chosen := range fewestFirst {
		if next, found := q.without(chosen); found != nil && next.inTurn(t) {
			return append(found, inTurn), nil
		}
	}
	for i := range steps {
		if next, changed := q.without(1 << i); changed != nil {
			q, found = next, append(found, changed...)
		}
	}
	return q.severalNodes(t, found)
}

// inTurn reports whether the answers are the same if the kubelet gets the containers in another
// order, or if each container must be on one NUMA node.
func (q question) inTurn(t *testing.T) bool {
	t.Helper()
	if len(q.together()) == 1 {
		return false
	}
	if ours := q.ours(t); ours.refused == nil {
		if next := q.ordered(ours); next.same(next.kubelet(t), ours) {
			return true
		}
	}
	if q.policy == translate.PolicySingleNUMANode {
		return false
	}
	q = q.onOneNode()
	theirs := q.kubelet(t)
	return theirs.refused == nil && q.same(theirs, q.ours(t))
}

// severalNodes explains what is left: NUMA nodes of a pod for which one has no room.
func (q question) severalNodes(t *testing.T, found []kind) ([]kind, error) {
	t.Helper()
	switch {
	case q.policy == translate.PolicySingleNUMANode:
		return nil, errors.New("no kind of difference explains it")
	case q.onOneNode().kubelet(t).refused == nil:
		return nil, errors.New("no kind of difference explains it, and one NUMA node has room")
	case q.ours(t).refused != nil && q.fits():
		return nil, errors.New("the pod is Pending, and it fits")
	case q.policy == translate.PolicyRestricted:
		return append(found, restricted), nil
	}
	return append(found, equalParts), nil
}

// checkPlaces returns an error if containers are where the policy does not have them.
func (q question) checkPlaces(a answer) error {
	if a.refused != nil {
		return nil
	}
	var oneNode, all cpuset.Set
	for _, c := range q.together() {
		p := a.parts[c.Name]
		all = all.Union(p.mems)
		switch nodes := q.nodesOf(p.cpus); {
		case !nodes.IsEmpty() && nodes != p.mems:
			return fmt.Errorf("container %s has CPUs of NUMA nodes %s and memory of %s", c.Name, nodes, p.mems)
		case p.mems.Size() == 1:
			if p.devices.IsEmpty() { // else it may be its second alternative
				oneNode = oneNode.Union(p.mems)
			}
		case p.mems.Size() != 2 || q.policy == translate.PolicySingleNUMANode:
			return fmt.Errorf("container %s is on NUMA nodes %s", c.Name, p.mems)
		case q.policy == translate.PolicyRestricted && q.socketsOf(p.mems).Size() > 1:
			return fmt.Errorf("container %s is on NUMA nodes %s of several sockets", c.Name, p.mems)
		default:
			for _, z := range q.zones {
				if p.mems.Contains(z.id) && p.cpus.Intersection(z.cpus).Size()*2 != p.cpus.Size() {
					return fmt.Errorf("container %s has %d of %d CPUs on NUMA node %d", c.Name, p.cpus.Intersection(z.cpus).Size(), p.cpus.Size(), z.id)
				}
			}
		}
	}
	if q.scope == translate.ScopePod && oneNode.Size() > 1 {
		return fmt.Errorf("containers on one NUMA node are on %s", oneNode)
	}
	if q.scope == translate.ScopePod && q.policy == translate.PolicyRestricted && q.socketsOf(all).Size() > 1 {
		return fmt.Errorf("containers are on NUMA nodes %s of several sockets", all)
	}
	return nil
}

// room is what a NUMA node has left, or what a container asks for: CPUs, memory and hugepages.
type room map[corev1.ResourceName]int64

// fits tries all places of all containers. It is false for pods with devices: the places of
// these are not tried.
func (q question) fits() bool {
	free := make([]room, len(q.zones))
	for i, z := range q.zones {
		free[i] = room{corev1.ResourceCPU: int64(z.cpus.Size() - q.held[i].cpus), corev1.ResourceMemory: int64(z.memory - q.held[i].memory)}
		for size, bytes := range z.pages {
			free[i][pagesOf(size)] = int64(bytes)
		}
	}
	var wants []room
	for _, c := range q.rounded().together() {
		want := room{}
		for name, amount := range c.Resources.Limits {
			want[name] = amount.Value()
		}
		if cpus := c.Resources.Limits[corev1.ResourceCPU]; cpus.MilliValue()%1000 != 0 {
			want[corev1.ResourceCPU] = 0
		}
		if want[gpu] > 0 {
			return false
		}
		wants = append(wants, want)
	}
	steps := 0
	return q.place(free, wants, nil, &steps)
}

// place places the first of the containers, and then the others.
func (q question) place(free []room, wants []room, placed []cpuset.Set, steps *int) bool {
	if len(wants) == 0 {
		return true
	}
	if *steps++; *steps > 20_000 {
		return false
	}
	for i := range free {
		for j := i; j < len(free); j++ {
			nodes := cpuset.New(q.zones[i].id, q.zones[j].id)
			part, divides := wants[0], true
			if i != j {
				part, divides = q.half(wants[0])
			}
			if !divides || !q.allowed(append(slices.Clone(placed), nodes)) || !take(free[i], part) {
				continue
			}
			if i == j || take(free[j], part) {
				if q.place(free, wants[1:], append(slices.Clone(placed), nodes), steps) {
					return true
				}
				if i != j {
					give(free[j], part)
				}
			}
			give(free[i], part)
		}
	}
	return false
}

// half returns half of what is asked for, if that is whole cores and pages.
func (q question) half(want room) (half room, divides bool) {
	half, divides = room{}, true
	for name, amount := range want {
		unit := int64(1)
		if name == corev1.ResourceCPU {
			unit = int64(q.threads)
		}
		for _, size := range q.pages {
			if name == pagesOf(size) {
				unit = int64(size)
			}
		}
		half[name], divides = amount/2, divides && amount%(2*unit) == 0
	}
	return half, divides
}

func take(free, want room) bool {
	for name, amount := range want {
		if free[name] < amount {
			return false
		}
	}
	for name, amount := range want {
		free[name] -= amount
	}
	return true
}

func give(free, want room) {
	for name, amount := range want {
		free[name] += amount
	}
}

// allowed reports whether the policy and the scope allow these NUMA nodes of containers.
func (q question) allowed(placed []cpuset.Set) bool {
	a := answer{parts: map[string]part{}}
	var list []corev1.Container
	for i, nodes := range placed {
		name := fmt.Sprint(i)
		a.parts[name] = part{mems: nodes}
		list = append(list, corev1.Container{Name: name})
	}
	q = q.with(func(pod *corev1.Pod) { pod.Spec.InitContainers, pod.Spec.Containers = nil, list })
	return q.checkPlaces(a) == nil
}
