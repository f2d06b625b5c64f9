package sameness

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses/translate"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/kubelet"
)

// answer is what became of the pod.
type answer struct {
	refused error           // nil if it is admitted
	parts   map[string]part // by container, of those that run together
}

// part is what a container has.
type part struct {
	cpus    cpuset.Set // empty: the shared ones
	mems    cpuset.Set
	devices cpuset.Set // their NUMA nodes
}

// meaning is what two answers are compared by.
type meaning struct {
	cpus, nodes, sockets int
	whole                bool
	mems                 int
	nearMemory           bool // from the NUMA nodes of the CPUs only
	nearDevices          bool
}

func (q question) meaningOf(p part) meaning {
	nodes := q.nodesOf(p.cpus)
	return meaning{
		cpus: p.cpus.Size(), nodes: nodes.Size(), sockets: q.socketsOf(nodes).Size(), whole: q.whole(p.cpus),
		mems: p.mems.Size(), nearMemory: p.cpus.IsEmpty() || p.mems == nodes, nearDevices: p.cpus.IsEmpty() || p.devices.IsSubsetOf(nodes),
	}
}

func (q question) text(a answer) string {
	if a.refused != nil {
		return "  refused: " + a.refused.Error() + "\n"
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(a.parts)) {
		p := a.parts[name]
		fmt.Fprintf(&b, "  %s: cpus %s, memory of %s, devices of %s: %+v\n", name, p.cpus, p.mems, p.devices, q.meaningOf(p))
	}
	return b.String()
}

// same reports whether two answers mean the same.
func (q question) same(a, b answer) bool {
	if a.refused != nil || b.refused != nil {
		return a.refused != nil && b.refused != nil
	}
	return !slices.ContainsFunc(q.together(), func(c *corev1.Container) bool {
		return q.meaningOf(a.parts[c.Name]) != q.meaningOf(b.parts[c.Name])
	})
}

// kubelet asks the kubelet's managers.
func (q question) kubelet(t *testing.T) (a answer) {
	t.Helper()
	config := kubelet.Config{
		Reserved: q.reserved, Policy: q.policy, Scope: q.scope, Options: map[string]string{},
		Memory: map[int]kubelet.Memory{}, Held: map[string]cpuset.Set{}, Devices: map[corev1.ResourceName][]int{gpu: q.gpus},
	}
	for _, name := range q.options {
		config.Options[name] = "true"
	}
	for i, z := range q.zones {
		config.Memory[z.id] = kubelet.Memory{Reserved: z.withheld, Held: q.held[i].memory}
		var taken cpuset.Set
		for j := range q.machine.Cores {
			if core := &q.machine.Cores[j]; core.CPUs.IsSubsetOf(z.cpus) && taken.Size() < q.held[i].cpus {
				taken = taken.Union(core.CPUs)
			}
		}
		if !taken.IsEmpty() {
			config.Held[fmt.Sprintf("other-%d", i)] = taken
		}
	}
	managers, err := kubelet.New(q.machine, config)
	if err != nil {
		t.Fatalf("%v\n%s", err, q)
	}
	if a.refused = managers.Allocate(q.pod); a.refused != nil {
		return a
	}
	a.parts = map[string]part{}
	for _, c := range q.together() {
		uid := string(q.pod.UID)
		a.parts[c.Name] = part{managers.CPUsOf(uid, c.Name), managers.MemsOf(uid, c.Name), managers.DevicesOf(c.Name)}
	}
	return a
}

// ours translates the pod, and asks the scheduler's allocator and the driver. The error of a
// pod that is not translated is in the answer.
func (q question) ours(t *testing.T) answer {
	t.Helper()
	done, err := translate.Pod(q.pod, translate.Options{
		Scope: q.scope, Policy: q.policy, PartOfCore: translate.PartOfCoreRound, ThreadsPerCore: int64(q.threads),
		Twins: map[corev1.ResourceName]string{gpu: gpuClass},
	})
	if err != nil {
		return answer{refused: err}
	}
	holder := q.holder(q.held)
	cluster, err := simulate.New(q.cluster(t, done, holder), simulate.DefaultRules())
	if err != nil {
		t.Fatal(err)
	}
	placed, err := cluster.Place(t.Context(), done.Pod, simulate.Options{})
	switch {
	case err != nil:
		t.Fatal(err)
	case placed.Aborted != nil:
		t.Fatalf("%v\n%s", placed.Aborted, q)
	case placed.Node == "":
		return answer{refused: errors.New(placed.Refusals[0].Reason)}
	}
	return q.prepare(t, done.Pod, placed.Claims[0].Claim, holder)
}

// cluster has the machine as its only node, with enough of all that claims do not decide.
func (q question) cluster(t *testing.T, done translate.Translated, holder *resourceapi.ResourceClaim) *snapshot.Snapshot {
	t.Helper()
	objects := &snapshot.Snapshot{}
	add := func(object metav1.Object) {
		if err := objects.Add(object, "test"); err != nil {
			t.Fatal(err)
		}
	}
	many := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("110")}
	for _, list := range [][]corev1.Container{q.pod.Spec.InitContainers, q.pod.Spec.Containers} {
		for i := range list {
			for name := range list[i].Resources.Limits {
				many[name] = resource.MustParse("1P")
			}
		}
	}
	add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: q.name}, Status: corev1.NodeStatus{Allocatable: many, Capacity: many}})
	classes, err := deviceclasses.All()
	if err != nil {
		t.Fatal(err)
	}
	for i := range classes {
		if name := classes[i].Name; name == zoneClass || name == gpuClass {
			add(&classes[i])
		}
	}
	for _, slice := range q.slices {
		add(slice.DeepCopy())
	}
	if holder != nil {
		add(holder.DeepCopy())
	}
	add(&resourceapi.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: q.pod.Namespace, Name: done.Template},
		Spec:       resourceapi.ResourceClaimTemplateSpec{Spec: done.Spec},
	})
	add(done.Pod)
	return objects
}

// prepare has the driver choose CPUs, after it chose those of the other pods.
func (q question) prepare(t *testing.T, pod *corev1.Pod, claim, holder *resourceapi.ResourceClaim) answer {
	t.Helper()
	for _, one := range []*resourceapi.ResourceClaim{holder, claim} {
		if one == nil {
			continue
		}
		if _, _, err := q.driver.Prepare(one, nil); err != nil {
			t.Fatalf("%v\n%s", err, q)
		}
		defer func() {
			if err := q.driver.Unprepare(one.UID); err != nil {
				t.Fatal(err)
			}
		}()
	}
	grant, _ := q.driver.Grant(claim.UID)
	a := answer{parts: map[string]part{}}
	for _, c := range (question{pod: pod}).together() {
		a.parts[c.Name] = q.partOf(c, grant)
	}
	var main cpuset.Set
	for i := range pod.Spec.Containers {
		main = main.Union(a.parts[pod.Spec.Containers[i].Name].cpus)
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; !isSidecar(c) && q.partOf(c, grant).cpus != main {
			t.Errorf("init container %s has CPUs %s, and all main containers have %s\n%s", c.Name, q.partOf(c, grant).cpus, main, q)
		}
	}
	return a
}

// partOf is what a container has of the claim.
func (q question) partOf(c *corev1.Container, grant ledger.Grant) (p part) {
	for _, use := range c.Resources.Claims {
		for _, share := range grant.Shares {
			if request, _, _ := strings.Cut(share.Request, "/"); request != use.Request {
				continue
			}
			p.cpus, p.mems = p.cpus.Union(share.CPUs()), p.mems.Union(share.Binds())
			if id, is := q.near[share.Device]; is {
				p.devices.Insert(id)
			}
		}
	}
	return p
}
