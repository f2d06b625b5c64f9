package kernel

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

const (
	podUID = types.UID("0b7e2b7a-8a0f-4a39-9c9a-5f3c0d6f1a11")
	pinned = "aaaa000000000000000000000000000000000000000000000000000000000001"
	plain  = "bbbb000000000000000000000000000000000000000000000000000000000002"
)

// machine is the output of snapshot.sh for two zones of one core each, and a
// third without CPUs, up to the first process.
const machine = `online 0-3
core 0-1
core 0-1
core 2-3
core 2-3
zone 0
zone-cpus 0-1
zone-free-hugepages 8
zone 1
zone-cpus 2-3
zone-free-hugepages 6
zone 2
zone-cpus 
zone-free-hugepages 
`

const processes = `process 812
cgroup /kubepods/burstable/pod0b7e2b7a-8a0f-4a39-9c9a-5f3c0d6f1a11/` + pinned + `
cpus 2-3
mems 1
effective-cpus 2-3
effective-mems 1
exclusive-cpus 2-3
partition root
process 94
cgroup /kubepods/burstable/pod0b7e2b7a-8a0f-4a39-9c9a-5f3c0d6f1a11/` + pinned + `
cpus 1
mems 0-2
effective-cpus 2-3
effective-mems 1
exclusive-cpus 2-3
partition root
process 901
cgroup /kubepods.slice/kubepods-pod0b7e2b7a_8a0f_4a39_9c9a_5f3c0d6f1a11.slice/cri-containerd-` + plain + `.scope
cpus 0-1
mems 0-2
effective-cpus 0-1
effective-mems 0-2
exclusive-cpus 
partition member
`

func podWith(containers map[string]string) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.UID = podUID
	for name, id := range containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses,
			corev1.ContainerStatus{Name: name, ContainerID: "containerd://" + id})
	}
	return pod
}

// mustParse reads the machine and its processes.
func mustParse(t *testing.T) Snapshot {
	t.Helper()
	s, err := parseSnapshot(machine + processes)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// mustFind returns the process of a pod's only container.
func mustFind(t *testing.T, s Snapshot, container string) Process {
	t.Helper()
	process, err := s.Container(podWith(map[string]string{"main": container}), "main")
	if err != nil {
		t.Fatal(err)
	}
	return process
}

func TestParseSnapshotReadsTheMachine(t *testing.T) {
	s, err := parseSnapshot(machine)
	if err != nil {
		t.Fatal(err)
	}
	want := Snapshot{
		Online: cpuset.New(0, 1, 2, 3),
		Cores:  []cpuset.Set{cpuset.New(0, 1), cpuset.New(2, 3)},
		Zones: []Zone{
			{ID: 0, CPUs: cpuset.New(0, 1), FreeHugepages: 8},
			{ID: 1, CPUs: cpuset.New(2, 3), FreeHugepages: 6},
			{ID: 2},
		},
	}
	if diff := cmp.Diff(want, s, sets); diff != "" {
		t.Errorf("parseSnapshot (-want +got):\n%s", diff)
	}
	if got := s.ZonesOf(cpuset.New(1, 2)); got != cpuset.New(0, 1) {
		t.Errorf("ZonesOf(1-2) = %s, want 0-1", got)
	}
}

func TestContainerUnitesItsProcesses(t *testing.T) {
	s := mustParse(t)
	got := mustFind(t, s, pinned)
	want := s.Processes[1] // the lowest process id, widened by the other
	want.CPUs, want.Mems = cpuset.New(1, 2, 3), cpuset.New(0, 1, 2)
	if diff := cmp.Diff(want, got, sets); diff != "" {
		t.Errorf("Container (-want +got):\n%s", diff)
	}
}

func TestContainerFindsSystemdCgroups(t *testing.T) {
	got := mustFind(t, mustParse(t), plain)
	if got.PID != 901 || got.Partition != "member" || !got.ExclusiveCPUs.IsEmpty() {
		t.Errorf("Container = %+v, want process 901, a member without exclusive CPUs", got)
	}
}

func TestContainerRefusesWhatItCannotFind(t *testing.T) {
	s := mustParse(t)
	elsewhere := podWith(map[string]string{"main": pinned})
	elsewhere.UID = "another"
	for want, pod := range map[string]*corev1.Pod{
		"not in the status":          podWith(nil),
		"status has no container id": podWith(map[string]string{"main": ""}),
		"no process has dead":        podWith(map[string]string{"main": "dead"}),
		"is not in the pod's":        elsewhere,
	} {
		if _, err := s.Container(pod, "main"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Container error = %v, want %q in it", err, want)
		}
	}
}

func TestParseSnapshotRefusesGarbage(t *testing.T) {
	for _, text := range []string{
		"",
		"online \n",
		"online x\n",
		"online 0-3\nzone x\n",
		"online 0-3\nzone-cpus 0\n",
		"online 0-3\ncpus 0\n",
		"online 0-3\nprocess 1\nsurprise 1\n",
		"online 0-3\nsh: can't open file\n",
		"online 0-3\nzone 0\nzone-free-hugepages many\n",
	} {
		if s, err := parseSnapshot(text); err == nil {
			t.Errorf("parseSnapshot(%q) = %+v, want an error", text, s)
		}
	}
}

// sets compares and prints CPU sets by their list.
var sets = cmp.Transformer("list", func(s cpuset.Set) string { return s.String() })
