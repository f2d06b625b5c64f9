package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/kernel"
)

func TestTableShowsEveryContainerWithin80Columns(t *testing.T) {
	all := cpuset.New(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
	held := cpuset.New(4, 5, 6, 7)
	shared := all.Difference(held)
	mems := cpuset.New(0, 1, 2, 3)
	node := observedNode{
		name:   "numa-node-0",
		shared: kernel.Process{CPUs: shared, Mems: mems},
		pods:   []corev1.Pod{demoPod("alpha", "alpha-zone-x7k2p", "a1"), demoPod("plain", "", "b2")},
		snapshot: kernel.Snapshot{
			Online: all,
			Zones:  []kernel.Zone{{ID: 0, CPUs: shared}, {ID: 1, CPUs: held}},
			Processes: []kernel.Process{
				{PID: 10, Cgroup: "/kubepods/podalpha/a1", CPUs: held, Mems: cpuset.New(1), Partition: "root"},
				{PID: 11, Cgroup: "/kubepods/podplain/b2", CPUs: shared, Mems: mems, Partition: "member"},
			},
		},
	}
	const want = `POD    CLAIM             ZONE  CPUS      MEMS  PARTITION
alpha  alpha-zone-x7k2p  1     4-7       1     root
plain  -                 0     0-3,8-15  0-3   member

node numa-node-0: a pod without a claim may use
  CPUs 0-3,8-15 of 0-15, mems 0-3
`
	var got strings.Builder
	if err := printTable(&got, []observedNode{node}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("printTable (-want +got):\n%s", diff)
	}
	for line := range strings.Lines(got.String()) {
		if len(line) > 81 {
			t.Errorf("line of %d columns: %s", len(line)-1, line)
		}
	}
}

func demoPod(name, claim, container string) corev1.Pod {
	pod := corev1.Pod{}
	pod.Name, pod.UID = name, types.UID(name)
	pod.Spec.Containers = []corev1.Container{{Name: "main"}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", ContainerID: "containerd://" + container}}
	if claim != "" {
		pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "zone", ResourceClaimName: &claim}}
	}
	return pod
}
