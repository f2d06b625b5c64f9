package sameness

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
)

// question is a pod for a machine of which other pods have a part.
type question struct {
	*node
	policy, scope string   // of the Topology Manager, and of the translation
	options       []string // of the CPU manager
	held          []held   // by zone
	pod           *corev1.Pod
}

func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// together returns the containers that run at the same time.
func (q question) together() (list []*corev1.Container) {
	for i := range q.pod.Spec.InitContainers {
		if isSidecar(&q.pod.Spec.InitContainers[i]) {
			list = append(list, &q.pod.Spec.InitContainers[i])
		}
	}
	for i := range q.pod.Spec.Containers {
		list = append(list, &q.pod.Spec.Containers[i])
	}
	return list
}

func (q question) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, policy %s, scope %s, options %v\n", q.name, q.policy, q.scope, q.options)
	for i, z := range q.zones {
		fmt.Fprintf(&b, "  NUMA node %d of socket %d: other pods have %d of %d CPUs and %d of %d MiB\n", z.id, z.socket, q.held[i].cpus, z.cpus.Size(), q.held[i].memory>>20, z.memory>>20)
	}
	if len(q.gpus) > 0 {
		fmt.Fprintf(&b, "  %s on NUMA nodes %v\n", gpu, q.gpus)
	}
	show := func(kind string, c *corev1.Container) {
		fmt.Fprintf(&b, "  %s %s:", kind, c.Name)
		for _, name := range slices.Sorted(maps.Keys(c.Resources.Limits)) {
			amount := c.Resources.Limits[name]
			fmt.Fprintf(&b, " %s %s", name, amount.String())
		}
		b.WriteString("\n")
	}
	for i := range q.pod.Spec.InitContainers {
		kind := "init container"
		if isSidecar(&q.pod.Spec.InitContainers[i]) {
			kind = "sidecar"
		}
		show(kind, &q.pod.Spec.InitContainers[i])
	}
	for i := range q.pod.Spec.Containers {
		show("container", &q.pod.Spec.Containers[i])
	}
	return b.String()
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// optionsOfCPUs are options of the CPU manager that are set together.
var optionsOfCPUs = [][]string{
	nil, nil, nil,
	{cpumanager.FullPCPUsOnlyOption},
	{cpumanager.FullPCPUsOnlyOption, cpumanager.DistributeCPUsAcrossNUMAOption},
	{cpumanager.FullPCPUsOnlyOption, cpumanager.PreferAlignByUnCoreCacheOption},
	{cpumanager.DistributeCPUsAcrossCoresOption},
	{cpumanager.StrictCPUReservationOption},
	{cpumanager.AlignBySocketOption},
}

// random is a question of a size that the machine may have an answer to.
func random(r *rand.Rand, n *node) question {
	q := question{
		node: n, pod: randomPod(r, n), options: pick(r, optionsOfCPUs...),
		policy: pick(r, translate.PolicySingleNUMANode, translate.PolicySingleNUMANode, translate.PolicyRestricted, translate.PolicyBestEffort, translate.PolicyNone),
		scope:  pick(r, translate.ScopeContainer, translate.ScopePod),
	}
	if q.policy == translate.PolicyNone {
		q.scope = translate.ScopeContainer // the Topology Manager has none
	}
	if q.policy == translate.PolicySingleNUMANode && slices.Contains(q.options, cpumanager.AlignBySocketOption) {
		q.options = nil // the kubelet does not start
	}
	for _, z := range n.zones {
		h := held{cpus: n.threads * (z.cpus.Size() / n.threads * pick(r, 0, 0, 1, 2, 3, 4) / 4)}
		if h.cpus > 0 || r.IntN(4) == 0 {
			h.memory = z.memory / 8 * pick[uint64](r, 0, 1, 4, 7) >> 20 << 20
		}
		q.held = append(q.held, h)
	}
	return q
}

func randomPod(r *rand.Rand, n *node) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "pod", UID: "pod"},
		Status:     corev1.PodStatus{QOSClass: corev1.PodQOSGuaranteed}, // as the API server stores it
	}
	small, gpus := r.IntN(2) == 0, len(n.gpus) > 0 && r.IntN(2) == 0
	for i := range pick(r, 1, 1, 1, 2, 2, 3) {
		pod.Spec.Containers = append(pod.Spec.Containers, randomContainer(r, n, fmt.Sprintf("c%d", i), small, gpus))
	}
	for i := range pick(r, 0, 0, 0, 1, 2) {
		one := randomContainer(r, n, fmt.Sprintf("i%d", i), small, gpus)
		if r.IntN(2) == 0 {
			always := corev1.ContainerRestartPolicyAlways
			one.RestartPolicy = &always
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, one)
	}
	return pod
}

// randomContainer asks for at most half of a NUMA node if it is small.
func randomContainer(r *rand.Rand, n *node, name string, small, gpus bool) corev1.Container {
	last := n.zones[len(n.zones)-1]
	size, memory := last.cpus.Size(), last.memory>>27<<27
	sizes := []int{1, 2, 2, 3, 4, 4, size / 4, size / 2}
	amounts := []uint64{2 << 20, 2 << 20, 10_000_000, memory / 16, memory / 16, memory / 4, memory / 2}
	if !small {
		sizes = append(sizes, size/2+1, size-n.threads, size, size+n.threads, size*3/2, 2*size)
		amounts = append(amounts, memory/2*3)
	}
	limits := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(max(1, pick(r, sizes...))), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(pick(r, amounts...)), resource.BinarySI),
	}
	if r.IntN(12) == 0 {
		limits[corev1.ResourceCPU] = resource.MustParse(pick(r, "500m", "1500m"))
	}
	switch { // not both: the Topology Manager tries all pairs of what its providers say
	case gpus && r.IntN(3) < 2:
		limits[gpu] = *resource.NewQuantity(pick[int64](r, 1, 1, 2), resource.DecimalSI)
	case !gpus && len(n.pages) > 0 && len(n.zones) <= 4 && r.IntN(3) == 0:
		page := int64(pick(r, n.pages...))
		limits[pagesOf(uint64(page))] = *resource.NewQuantity(page*pick[int64](r, 1, 2, 4), resource.BinarySI)
	}
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Limits: limits, Requests: limits.DeepCopy()}}
}

// pagesOf is the resource of hugepages of a size.
func pagesOf(bytes uint64) corev1.ResourceName {
	return corev1.ResourceName(corev1.ResourceHugePagesPrefix + resource.NewQuantity(int64(bytes), resource.BinarySI).String())
}

// with is the question about a pod that is changed.
func (q question) with(change func(*corev1.Pod)) question {
	q.pod = q.pod.DeepCopy()
	change(q.pod)
	return q
}

// rounded asks for whole cores and memory in the steps of the driver.
func (q question) rounded() question {
	step := int64(1 << 20)
	if q.policy != translate.PolicySingleNUMANode {
		step *= 2 // two equal parts
	}
	up := func(c *corev1.Container, name corev1.ResourceName, unit int64) {
		amount := c.Resources.Limits[name]
		if rest := amount.Value() % unit; rest > 0 {
			amount = *resource.NewQuantity(amount.Value()+unit-rest, amount.Format)
			c.Resources.Limits[name], c.Resources.Requests[name] = amount, amount
		}
	}
	q.options = slices.DeleteFunc(slices.Clone(q.options), func(o string) bool { return o == cpumanager.DistributeCPUsAcrossCoresOption })
	return q.with(func(pod *corev1.Pod) {
		for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				if cpus := list[i].Resources.Limits[corev1.ResourceCPU]; cpus.MilliValue()%1000 == 0 {
					up(&list[i], corev1.ResourceCPU, int64(q.threads))
				}
				up(&list[i], corev1.ResourceMemory, step)
			}
		}
	})
}

func (q question) withoutInit() question {
	return q.with(func(pod *corev1.Pod) {
		pod.Spec.InitContainers = slices.DeleteFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return !isSidecar(&c) })
	})
}

// aligned has the kubelet look for one NUMA node.
func (q question) aligned() question {
	if q.policy == translate.PolicyNone {
		q.policy = translate.PolicyBestEffort
	}
	q.options = slices.DeleteFunc(slices.Clone(q.options), func(o string) bool { return o == cpumanager.AlignBySocketOption })
	return q
}

// onOneNode wants one NUMA node.
func (q question) onOneNode() question {
	q = q.aligned()
	q.policy = translate.PolicySingleNUMANode
	return q
}

// ordered has the containers in the order of the NUMA nodes that they have in an answer: then
// each finds room on its own if it takes the first NUMA node that has some.
func (q question) ordered(a answer) question {
	return q.with(func(pod *corev1.Pod) {
		var list []corev1.Container
		for _, c := range q.together() {
			one := *c.DeepCopy()
			one.RestartPolicy = nil
			list = append(list, one)
		}
		first := func(c corev1.Container) int {
			id, _ := a.parts[c.Name].mems.First()
			return id
		}
		slices.SortStableFunc(list, func(a, b corev1.Container) int { return cmp.Compare(first(a), first(b)) })
		pod.Spec.InitContainers, pod.Spec.Containers = nil, list
	})
}
