package kubeletplugin

import (
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

func TestConditionExclusiveOfWays(t *testing.T) {
	own := ledger.Share{Request: "cpus", Kind: &ledger.ZoneShare{NUMANodes: []int{0}, CPUs: cpuset.New(4, 5), Partition: "root"}}
	mixed := ledger.Share{Request: "cpus", Kind: &ledger.ZoneShare{NUMANodes: []int{0}, CPUs: cpuset.New(4, 5), Partition: "root", Mixed: true}}
	gold := ledger.Share{Request: "cache", Kind: &ledger.CacheShare{Pool: "guaranteed", CPUs: "cpus"}}
	bronze := ledger.Share{Request: "cache", Kind: &ledger.CacheShare{Pool: "shared", CPUs: "cpus"}}
	for name, row := range map[string]struct {
		share, cpus ledger.Share
		by          keeping
		want        string
	}{
		"kernel": {
			gold, own,
			keeping{node: driver.ExclusivityKernel},
			"True KernelPartition: the kernel keeps all other tasks off the CPUs while a container that uses the claim is running; at other times, tasks of others that run there use the claim's ways, and are counted",
		},
		"cooperative": {
			gold, own,
			keeping{node: driver.ExclusivityCooperative, others: sharedPoolKept},
			"True SharedPool: tasks of others that run on the claim's CPUs use its ways, and are counted: the container runtime keeps other containers off the CPUs, but other tasks may run on them: the node does not use cpuset partitions, which need Linux 6.11 or newer",
		},
		"nobody": {
			gold, mixed,
			keeping{node: driver.ExclusivityNone},
			"False Mixed: tasks of others that run on the claim's CPUs use its ways, and are counted: the claim is mixed, so its containers run on the shared pool as well",
		},
		"shared": {bronze, own, keeping{node: driver.ExclusivityKernel}, "False SharedWays: all claims of the pool shared have the same ways of the cache"},
	} {
		grant := ledger.Grant{Shares: []ledger.Share{row.share, row.cpus}}
		cpus, found := cpusOf(grant, row.share)
		if !found {
			t.Fatalf("%s: no share has the CPUs", name)
		}
		got := exclusiveWays(row.share, cpus, row.by)
		if text := string(got.Status) + " " + got.Reason + ": " + got.Message; text != row.want {
			t.Errorf("%s:\n%s, want\n%s", name, text, row.want)
		}
	}
	if _, found := cpusOf(ledger.Grant{Shares: []ledger.Share{gold}}, gold); found {
		t.Error("a grant without CPUs has some")
	}
}
