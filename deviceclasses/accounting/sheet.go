package accounting

import (
	"cmp"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// sheet is the account of one resource of a pod.
type sheet struct {
	name   corev1.ResourceName
	lines  []*line // in the order of their start: init containers, then the others
	main   int     // the first that is no init container
	shares []*entry
	short  int64 // held, and no request may say so
}

// line is a container.
type line struct {
	container *corev1.Container
	init      bool  // ends before the next one starts
	need      int64 // what it requests, at the end; ≤ most unless it was before
	most      int64 // what it may request
	load      int64 // of claims, in need
}

// entry is what a share holds of the resource.
type entry struct {
	amount  int64
	users   []bool  // by line
	carried []int64 // by line that is not init; the sum is amount, less what is short
}

func newSheet(pod *corev1.Pod, name corev1.ResourceName, shares []Share) *sheet {
	s := &sheet{name: name, main: len(pod.Spec.InitContainers)}
	for i := range pod.Spec.InitContainers {
		container := &pod.Spec.InitContainers[i]
		sidecar := container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways
		s.lines = append(s.lines, newLine(container, name, !sidecar))
	}
	for i := range pod.Spec.Containers {
		s.lines = append(s.lines, newLine(&pod.Spec.Containers[i], name, false))
	}
	for _, share := range shares {
		next := &entry{amount: number(name, share.Amounts), carried: make([]int64, len(s.lines))}
		for _, line := range s.lines {
			next.users = append(next.users, share.UsedBy(*line.container))
		}
		s.shares = append(s.shares, next)
	}
	return s
}

func newLine(container *corev1.Container, name corev1.ResourceName, init bool) *line {
	most := int64(math.MaxInt64)
	if limit, limited := container.Resources.Limits[name]; limited && !isHugepages(name) {
		most = number(name, corev1.ResourceList{name: limit})
	}
	return &line{container: container, init: init, need: requestOf(&container.Resources, name), most: most}
}

// fillMain gives each share to the lines that run to the pod's end.
func (s *sheet) fillMain() {
	shares := slices.Clone(s.shares)
	slices.SortStableFunc(shares, func(a, b *entry) int { return cmp.Compare(len(s.carriers(a)), len(s.carriers(b))) })
	for _, share := range shares {
		left := share.amount
		// First what their requests have room for, then what they may request.
		for _, room := range []func(*line) int64{
			func(l *line) int64 { return l.need - l.load },
			func(l *line) int64 { return l.most - l.load },
		} {
			for _, i := range s.carriers(share) {
				part := min(left, max(room(s.lines[i]), 0))
				left -= part
				share.carried[i] += part
				s.lines[i].load += part
				s.lines[i].need = max(s.lines[i].need, s.lines[i].load)
			}
		}
		s.short += left
	}
}

// carriers are the lines that may count a share, in the order in which they do:
// its users, main containers first; without any, the first main container.
func (s *sheet) carriers(share *entry) (lines []int) {
	var sidecars []int
	for i, line := range s.lines {
		switch {
		case line.init || !share.users[i]:
		case i < s.main:
			sidecars = append(sidecars, i)
		default:
			lines = append(lines, i)
		}
	}
	if lines = append(lines, sidecars...); len(lines) == 0 {
		lines = []int{s.main}
	}
	return lines
}

// fillInit gives each init container what its own claims hold, where no sidecar
// that runs beside it counts that already.
func (s *sheet) fillInit() {
	for i, line := range s.lines {
		if !line.init {
			continue
		}
		for _, share := range s.shares {
			if share.users[i] {
				line.load += share.amount - share.before(i)
			}
		}
		line.need = max(line.need, min(line.load, line.most))
		line.load = min(line.load, line.need)
	}
}

// before is what sidecars that start before a line carry of the share.
func (e *entry) before(line int) (sum int64) {
	for _, part := range e.carried[:line] {
		sum += part
	}
	return sum
}

// coverInit raises the first main container where an init container needs so
// much that, with the claims that others hold meanwhile, the pod needs more than
// when it runs.
func (s *sheet) coverInit() {
	var sidecars, most int64
	for i, line := range s.lines[:s.main] {
		if !line.init {
			sidecars += line.need
			continue
		}
		own, others := int64(0), sidecars
		for _, share := range s.shares {
			if share.users[i] {
				own += share.amount - share.before(i)
			} else {
				others += share.amount - share.before(i)
			}
		}
		most = max(most, max(own, line.need)+others)
	}
	first := s.lines[s.main]
	lacking := most - s.total()
	if lacking <= 0 || len(s.shares) == 0 {
		return
	}
	// What init containers need does not count what main ones request, so the
	// first one has to request all that lacks when it runs.
	lacking = most - s.running()
	part := min(lacking, max(first.most-first.need, 0))
	first.need += part
	s.short += lacking - part
}

// running is what the pod requests when its init containers have ended.
func (s *sheet) running() (sum int64) {
	for _, line := range s.lines {
		if !line.init {
			sum += line.need
		}
	}
	return sum
}

// total is what the pod requests in all, as the scheduler computes it.
func (s *sheet) total() int64 {
	total := s.running()
	var sidecars int64
	for _, line := range s.lines[:s.main] {
		if line.init {
			total = max(total, sidecars+line.need)
		} else {
			sidecars += line.need
		}
	}
	return total
}
