package shape

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/simulate"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

func machine(t *testing.T) numa.Machine {
	t.Helper()
	m, err := Machine()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// shapes are all, and the driver's own with each number of attributes.
func shapes(t *testing.T) []Shape {
	t.Helper()
	m := machine(t)
	list, err := All(m)
	if err != nil {
		t.Fatal(err)
	}
	ours := list[slices.IndexFunc(list, func(s Shape) bool { return s.Name == Ours })]
	for count := 1; count < ours.AttributeCount(); count++ {
		s, err := WithAttributes(m, count)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.AttributeCount(); got != count {
			t.Errorf("%s has %d", s.Name, got)
		}
		list = append(list, s)
	}
	return list
}

// clusterOf is a cluster of so many nodes, on which the scheduler's own allocator runs.
func clusterOf(t *testing.T, s Shape, nodes int) *simulate.Cluster {
	t.Helper()
	return clusterWith(t, &snapshot.Snapshot{}, s, nodes)
}

// clusterWith also has these objects.
func clusterWith(t *testing.T, objects *snapshot.Snapshot, s Shape, nodes int) *simulate.Cluster {
	t.Helper()
	m := machine(t)
	objects.Templates = s.Templates()
	for i := range s.Classes {
		objects.Classes = append(objects.Classes, &s.Classes[i])
	}
	for i := range nodes {
		name := fmt.Sprintf("node-%d", i)
		objects.Nodes = append(objects.Nodes, Node(name, m))
		objects.Slices = append(objects.Slices, s.Slices(name)...)
	}
	for _, template := range objects.Templates {
		template.Namespace = "default"
	}
	cluster, err := simulate.New(objects, simulate.DefaultRules())
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

func place(t *testing.T, cluster *simulate.Cluster, s Shape, name, template string) simulate.Placement {
	t.Helper()
	pod := s.Pod(name, nil, template)
	pod.Namespace = "default"
	placement, err := cluster.Place(t.Context(), pod, simulate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return placement
}

// All shapes of CPUs have the same room: what differs in a trial is only what the claims cost.
func TestSixteenPodsFitOnANodeInEachShape(t *testing.T) {
	for _, s := range shapes(t) {
		t.Run(s.Name, func(t *testing.T) {
			cluster, fit := clusterOf(t, s, 2), 32
			if s.OneSize {
				fit = 2 * GPUsPerNode
			}
			for i := range fit {
				if p := place(t, cluster, s, fmt.Sprintf("pod-%d", i), Template); p.Node == "" {
					t.Fatalf("pod %d: %+v", i, p.Refusals)
				}
			}
			if p := place(t, cluster, s, "one-more", Template); p.Node != "" {
				t.Errorf("pod %d is on %s", fit+1, p.Node)
			}
		})
	}
}

// One device per CPU is left out: its search does not end in the time of a test.
func TestTooMuchFitsNowhere(t *testing.T) {
	for _, s := range shapes(t) {
		if s.TooMuch == nil || s.Name == PerCPU {
			continue
		}
		if p := place(t, clusterOf(t, s, 1), s, "pod", TemplateTooMuch); p.Node != "" || len(p.Refusals) == 0 {
			t.Errorf("%s: on %q, %+v", s.Name, p.Node, p.Refusals)
		}
	}
}

func TestEveryShapeSaysWhatItIs(t *testing.T) {
	names := map[string]bool{}
	for _, s := range shapes(t) {
		if s.Name == "" || s.Means == "" || names[s.Name] || (s.Claim == nil) != (s.SliceBytes() == 0) {
			t.Errorf("shape %q: %q, %d bytes", s.Name, s.Means, s.SliceBytes())
		}
		names[s.Name] = true
	}
}

func TestOursIsWhatTheDriverPublishes(t *testing.T) {
	for _, s := range shapes(t) {
		if s.Name != Ours {
			continue
		}
		published := s.Slices("n")
		if len(published) != 1 || len(published[0].Spec.Devices) != 4 || s.AttributeCount() < 8 {
			t.Errorf("%d slices, %d attributes of a zone", len(published), s.AttributeCount())
		}
	}
}

func TestGPUsAreWhatGPUDriversPublish(t *testing.T) {
	s := GPUs("gpu.test")
	if devices := s.Drivers[0].Devices; len(devices) != 8 || s.AttributeCount() != 22 || len(devices[7].Capacity) != 1 {
		t.Errorf("%d GPUs, %d attributes", len(devices), s.AttributeCount())
	}
	if got, want := s.Classes[0].Spec.Selectors[0].CEL.Expression, "device.driver == 'gpu.test' && device.attributes['gpu.test'].type == 'gpu'"; got != want {
		t.Errorf("the class selects %q, want %q", got, want)
	}
}

// A mix has as many pods on a node as its GPUs, unless it needs none.
func TestMixesFitOnANode(t *testing.T) {
	mixes, err := Mixes()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range mixes {
		want := 16
		if s.Name == MixNearby {
			want = MixesPerNode
		}
		cluster, placed := clusterOf(t, s, 1), 0
		for p := place(t, cluster, s, "pod-0", Template); p.Node != ""; p = place(t, cluster, s, fmt.Sprintf("pod-%d", placed), Template) {
			placed++
		}
		if placed != want {
			t.Errorf("%s: %d pods fit, want %d", s.Name, placed, want)
		}
	}
}

// Three of four NUMA nodes are taken, or nearly.
func TestFilledNodeHasRoomInItsLastNUMANode(t *testing.T) {
	m := machine(t)
	for _, s := range shapes(t) {
		if s.Variant || s.Name == Beside {
			continue
		}
		for left, want := range map[int]int{0: 4, PodCPUs / 2: 4} {
			if s.TooMuch == nil && left > 0 { // no such trials
				continue
			}
			if s.OneSize {
				want = GPUsPerNode / 4
			}
			objects := &snapshot.Snapshot{}
			for zone := range 3 {
				if held := s.Holds(m, zone, left); held != nil {
					claim := Allocated(fmt.Sprintf("held-%d", zone), "node-0", held)
					claim.Namespace = "taken"
					objects.Claims = append(objects.Claims, claim)
				}
			}
			filler := Filler("node-0", 3*(16-left))
			filler.Namespace = "taken"
			objects.Pods = append(objects.Pods, filler)
			published := s
			if left == 0 {
				published = s.Filled(&m, 3)
			}
			cluster, placed := clusterWith(t, objects, published, 1), 0
			for p := place(t, cluster, s, "pod-0", Template); p.Node != ""; p = place(t, cluster, s, fmt.Sprintf("pod-%d", placed), Template) {
				placed++
			}
			if placed != want {
				t.Errorf("%s, %d CPUs left: %d pods fit, want %d", s.Name, left, placed, want)
			}
		}
	}
}

func TestOursPublishesFullZonesLast(t *testing.T) {
	m := machine(t)
	for _, s := range shapes(t) {
		devices := s.Filled(&m, 3).Slices("n")
		if s.Name == Ours && (devices[0].Spec.Devices[0].Name != "numa-3" || s.Slices("n")[0].Spec.Devices[0].Name != "numa-0") {
			t.Errorf("the first device of three full zones is %s, and %s if none is full", devices[0].Spec.Devices[0].Name, s.Slices("n")[0].Spec.Devices[0].Name)
		}
	}
}

func TestPodsAskForTheCPUsOfTheShape(t *testing.T) {
	s, err := WithCPUs(machine(t), 2)
	if err != nil {
		t.Fatal(err)
	}
	cpus := s.Pod("pod", nil, Template).Spec.Containers[0].Resources.Requests.Cpu()
	claimed := s.Claim.Requests[0].Exactly.Capacity.Requests["cpu"]
	if cpus.Value() != 2 || claimed.Value() != 2 {
		t.Errorf("requests %s, claim %s, want 2", cpus, &claimed)
	}
}

func TestZonesAreInTheOrderOfTheNode(t *testing.T) {
	m := machine(t)
	s, err := WithCPUs(m, 2)
	if err != nil {
		t.Fatal(err)
	}
	held := map[string]int{"numa-0": 4, "numa-1": 2, "numa-3": 16}
	for by, want := range map[string]string{"": "[numa-0 numa-1 numa-2 numa-3]", "spread": "[numa-2 numa-1 numa-0 numa-3]", "pack": "[numa-0 numa-1 numa-2 numa-3]"} {
		var names []string
		for _, device := range s.Ordered(&m, held, by) {
			names = append(names, device.Name)
		}
		if got := fmt.Sprint(names); got != want {
			t.Errorf("zoneOrder %q: %s, want %s", by, got, want)
		}
	}
}
