package kubeletplugin

import (
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

func TestConditionExclusive(t *testing.T) {
	cpus := cpuset.New(4, 5)
	plain := ledger.Share{Kind: &ledger.ZoneShare{NUMANodes: []int{0}, CPUs: cpus, Partition: "root"}}
	pod := ledger.Share{Kind: &ledger.ZoneShare{NUMANodes: []int{0}, CPUs: cpus, Partition: "root", Scope: ledger.ScopePod}}
	shared := ledger.Share{Kind: &ledger.ZoneShare{NUMANodes: []int{0}, CPUs: cpus, Partition: "root", Scope: ledger.ScopeShared}}
	mixed := ledger.Share{Kind: &ledger.ZoneShare{NUMANodes: []int{0}, CPUs: cpus, Partition: "root", Mixed: true}}
	none := ledger.Share{Kind: &ledger.ZoneShare{NUMANodes: []int{0}, CPUs: cpus, Partition: deviceclasses.PartitionNone}}
	kernel, cooperative := driver.ExclusivityKernel, driver.ExclusivityCooperative
	fault := partitionState{whys: map[string]string{deviceclasses.FaultPartitionInvalid: "root invalid (x)"}}
	unpinned := partitionState{whys: map[string]string{deviceclasses.FaultNotPinned: whyNotPinned}}
	downgraded := partitionState{downgraded: true}
	seen := make(map[string]bool)
	for name, row := range map[string]struct {
		share   ledger.Share
		by      keeping
		reason  string
		message string
	}{
		"container":                 {plain, keeping{node: kernel}, reasonKernelPartition, "while a container that uses the claim is running"},
		"isolated":                  {ledger.Share{Kind: &ledger.ZoneShare{NUMANodes: []int{0}, CPUs: cpus, Partition: deviceclasses.PartitionIsolated}}, keeping{node: kernel, others: sharedPoolKept}, reasonKernelPartition, "kernel"},
		"pod":                       {pod, keeping{node: kernel}, reasonKernelPartition, "while a container of the pod is running"},
		"memory only":               {ledger.Share{Kind: &ledger.ZoneShare{NUMANodes: []int{0}}}, keeping{node: kernel, partition: fault}, reasonNoCPUs, "no CPUs"},
		"invalid":                   {plain, keeping{node: kernel, partition: fault}, "PartitionInvalid", "other tasks may run on the CPUs: root invalid (x)"},
		"invalid, pooled":           {plain, keeping{node: kernel, others: sharedPoolKept, partition: fault}, "PartitionInvalid", "other tasks may run on the CPUs: root invalid (x)"},
		"not pinned":                {plain, keeping{node: kernel, others: sharedPoolKept, partition: unpinned}, "NotPinned", "a container that uses the claim runs on any CPU: the container runtime has not run the driver's hook, or pinning is stopped on the node"},
		"two pods":                  {plain, keeping{node: kernel, partition: downgraded}, reasonShared, "more than one pod"},
		"two pods, pooled":          {plain, keeping{node: kernel, partition: downgraded, others: sharedPoolKept}, reasonSharedPool, "more than one pod"},
		"two pods, refused":         {plain, keeping{node: kernel, partition: downgraded, others: sharedPoolRefused}, reasonRuntimeRefused, "more than one pod"},
		"some containers":           {shared, keeping{node: kernel}, reasonShared, "some containers"},
		"CPUs of other claims":      {shared, keeping{node: kernel}, reasonShared, "or a container of the pod also has CPUs that are in another partition, or in none"},
		"some containers, pooled":   {shared, keeping{node: kernel, others: sharedPoolKept}, reasonSharedPool, "some containers"},
		"some containers, refused":  {shared, keeping{node: kernel, others: sharedPoolRefused}, reasonRuntimeRefused, "some containers"},
		"container, refused":        {plain, keeping{node: kernel, others: sharedPoolRefused}, reasonKernelPartition, "kernel"},
		"old kernel, refused":       {plain, keeping{node: cooperative, others: sharedPoolRefused}, reasonRuntimeRefused, "the driver's log"},
		"mixed":                     {mixed, keeping{node: kernel}, reasonMixed, "shared pool as well"},
		"mixed, pooled":             {mixed, keeping{node: kernel, others: sharedPoolKept}, reasonSharedPool, "shared pool as well"},
		"no partition":              {none, keeping{node: kernel}, reasonPartitionNone, "asks for no partition"},
		"no partition, faulty":      {none, keeping{node: kernel, partition: fault}, reasonPartitionNone, "asks for no partition"},
		"old kernel, runtime":       {plain, keeping{node: cooperative, others: sharedPoolKept}, reasonSharedPool, "container runtime"},
		"old kernel, runtime gone":  {plain, keeping{node: cooperative}, reasonNotSupported, "6.11"},
		"old kernel":                {plain, keeping{node: driver.ExclusivityNone}, reasonNotSupported, "6.11"},
		"nobody is asked to":        {plain, keeping{node: driver.ExclusivityNone, others: sharedPoolKept}, reasonNotSupported, "6.11"},
		"old kernel, two pods seen": {plain, keeping{node: cooperative, partition: downgraded}, reasonNotSupported, "6.11"},
	} {
		seen[row.reason] = true
		want := metav1.ConditionFalse
		if row.reason == reasonKernelPartition || row.reason == reasonSharedPool {
			want = metav1.ConditionTrue
		}
		got := exclusive(row.share, row.by)
		if got.Type != deviceclasses.ConditionExclusive || got.Status != want || got.Reason != row.reason || !strings.Contains(got.Message, row.message) {
			t.Errorf("%s: %s %s %q, want %s %s with %q", name, got.Status, got.Reason, got.Message, want, row.reason, row.message)
		}
	}
	all := []string{
		reasonKernelPartition, reasonSharedPool, reasonNoCPUs, reasonNotSupported,
		reasonShared, reasonMixed, reasonPartitionNone, "PartitionInvalid", reasonRuntimeRefused, "NotPinned",
	}
	if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, slices.Sorted(slices.Values(all))) {
		t.Errorf("rows have the reasons %v, there are %v", got, all)
	}
}
