package accounting

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// distribution gives the amounts of one resource, which claims of a pod hold, to the
// requests of the pod's containers.
type distribution struct {
	name       corev1.ResourceName
	containers []*containerLoad // in the order of their start: init containers, then the others
	main       int              // index of the first container that is not an init container
	shares     []*shareLoad
	short      int64 // what the claims hold, and no request can count
}

// containerLoad is what a container requests, and how much of it is for claims.
type containerLoad struct {
	container *corev1.Container
	init      bool  // ends before the next container starts
	need      int64 // the raised request; ≤ most unless the original request was more
	most      int64 // the limit; mostNumber if the pod itself requests the resource
	load      int64 // the part of need that is for claims
}

// shareLoad is what a share holds of the resource.
type shareLoad struct {
	amount  int64
	users   []bool  // by container
	carried []int64 // by container, without init containers; the sum is amount minus short
}

func newDistribution(pod *corev1.Pod, name corev1.ResourceName, shares []Share) *distribution {
	d := &distribution{name: name, main: len(pod.Spec.InitContainers)}
	// If the pod itself requests the resource, requests of containers do not count, nor do
	// their limits.
	limited := !ofPod(pod, name)
	for i := range pod.Spec.InitContainers {
		container := &pod.Spec.InitContainers[i]
		sidecar := container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways
		d.containers = append(d.containers, newContainerLoad(container, name, !sidecar, limited))
	}
	for i := range pod.Spec.Containers {
		d.containers = append(d.containers, newContainerLoad(&pod.Spec.Containers[i], name, false, limited))
	}
	for _, share := range shares {
		next := &shareLoad{amount: number(name, share.Amounts), carried: make([]int64, len(d.containers))}
		for _, c := range d.containers {
			next.users = append(next.users, share.UsedBy(*c.container))
		}
		d.shares = append(d.shares, next)
	}
	return d
}

func newContainerLoad(container *corev1.Container, name corev1.ResourceName, init, limited bool) *containerLoad {
	most := int64(mostNumber)
	if limit, has := container.Resources.Limits[name]; has && limited && !isHugepages(name) {
		most = number(name, corev1.ResourceList{name: limit})
	}
	return &containerLoad{container: container, init: init, need: requestOf(&container.Resources, name), most: most}
}

// giveToMain gives each share to the containers that run until the pod ends.
func (d *distribution) giveToMain() {
	shares := slices.Clone(d.shares)
	slices.SortStableFunc(shares, func(a, b *shareLoad) int { return cmp.Compare(len(d.carriers(a)), len(d.carriers(b))) })
	for _, share := range shares {
		left := share.amount
		// First fill the room in their requests, then raise the requests up to the
		// limits.
		for _, room := range []func(*containerLoad) int64{
			func(l *containerLoad) int64 { return l.need - l.load },
			func(l *containerLoad) int64 { return l.most - l.load },
		} {
			for _, i := range d.carriers(share) {
				part := min(left, max(room(d.containers[i]), 0))
				left -= part
				share.carried[i] += part
				d.containers[i].load += part
				d.containers[i].need = max(d.containers[i].need, d.containers[i].load)
			}
		}
		d.short = plus(d.short, left)
	}
}

// carriers are the containers whose requests may count a share, in order: its users, main
// containers first. Without users, it is the first main container.
func (d *distribution) carriers(share *shareLoad) (indexes []int) {
	var sidecars []int
	for i, c := range d.containers {
		switch {
		case c.init || !share.users[i]:
		case i < d.main:
			sidecars = append(sidecars, i)
		default:
			indexes = append(indexes, i)
		}
	}
	if indexes = append(indexes, sidecars...); len(indexes) == 0 {
		indexes = []int{d.main}
	}
	return indexes
}

// giveToInit gives each init container what its own claims hold, unless a sidecar that
// runs at the same time counts that already.
func (d *distribution) giveToInit() {
	for i, c := range d.containers {
		if !c.init {
			continue
		}
		for _, share := range d.shares {
			if share.users[i] {
				c.load = plus(c.load, share.amount-share.carriedBefore(i))
			}
		}
		c.need = max(c.need, min(c.load, c.most))
		c.load = min(c.load, c.need)
	}
}

// carriedBefore is what sidecars that start before a container count of the share.
func (e *shareLoad) carriedBefore(c int) (sum int64) {
	for _, part := range e.carried[:c] {
		sum += part
	}
	return sum
}

// raiseForInit raises the first main container if the pod needs more while an init
// container runs than while its main containers run. An init container needs its own
// request, and the other claims of the pod are held at the same time.
func (d *distribution) raiseForInit() {
	var sidecars, most int64
	for i, c := range d.containers[:d.main] {
		if !c.init {
			sidecars = plus(sidecars, c.need)
			continue
		}
		own, others := int64(0), sidecars
		for _, share := range d.shares {
			if share.users[i] {
				own = plus(own, share.amount-share.carriedBefore(i))
			} else {
				others = plus(others, share.amount-share.carriedBefore(i))
			}
		}
		most = max(most, plus(max(own, c.need), others))
	}
	first := d.containers[d.main]
	lacking := most - d.total()
	if lacking <= 0 || len(d.shares) == 0 {
		return
	}
	// The scheduler compares init containers and main containers separately. So the first
	// main container must request everything that is lacking while the pod runs.
	lacking = most - d.running()
	part := min(lacking, max(first.most-first.need, 0))
	first.need += part
	d.short = plus(d.short, lacking-part)
}

// running is what the pod requests when its init containers have ended.
func (d *distribution) running() (sum int64) {
	for _, c := range d.containers {
		if !c.init {
			sum = plus(sum, c.need)
		}
	}
	return sum
}

// total is what the pod requests, as the scheduler computes it.
func (d *distribution) total() int64 {
	total := d.running()
	var sidecars int64
	for _, c := range d.containers[:d.main] {
		if c.init {
			total = max(total, plus(sidecars, c.need))
		} else {
			sidecars = plus(sidecars, c.need)
		}
	}
	return total
}
