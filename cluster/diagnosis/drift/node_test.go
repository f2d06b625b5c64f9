package drift

import (
	"testing"
	"testing/fstest"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/cluster/snapshot"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/devnode"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// node is the state of a node, with the objects of the cluster.
type node struct {
	*nodestate.State
	*snapshot.Snapshot
}

func (n *node) compare() []Finding { return Compare("n1", n.State, Index(n.Snapshot)) }

// consistent is a node on which everything agrees.
func consistent(t *testing.T) *node {
	t.Helper()
	n := &node{State: &nodestate.State{Format: nodestate.Format, Version: nodestate.Version, Node: "n1"}, Snapshot: object.Snapshot(t, files.Read(t, "testdata/objects.yaml"))}
	drive := []devnode.Node{{Path: "/dev/nvme0", Type: "c", Major: 240, Minor: 0}, {Path: "/dev/nvme0n1", Type: "b", Major: 259, Minor: 0}}
	n.Checkpoint = nodestate.Checkpoint{Version: 1, Grants: []ledger.Grant{
		{UID: "uid-a", Namespace: "default", Name: "a", Order: 1, Shares: []ledger.Share{
			{
				Request: "r",
				Device:  "numa-0",
				ShareID: "s",
				Kind:    &ledger.ZoneShare{NUMANodes: []int{0}, CPUs: cpuset.New(4, 5), MemoryBytes: 1 << 30, Partition: "root"},
			},
		}},
		{UID: "uid-b", Namespace: "default", Name: "b-made", Order: 2, Shares: []ledger.Share{
			{
				Request: "x/sub",
				Device:  "numa-0",
				Kind:    &ledger.ZoneShare{NUMANodes: []int{0}, CPUs: cpuset.New(6, 7), MemoryBytes: 1 << 30, IdleCPUs: cpuset.New(7), Partition: "none"},
			},
			{Request: "mix", Device: "numa-1", Kind: &ledger.ZoneShare{NUMANodes: []int{1}, CPUs: cpuset.New(8, 9), Partition: "root", MemoryBytes: 1 << 30, Mixed: true}},
			{Request: "z", Device: "numa-1", Kind: &ledger.ZoneShare{NUMANodes: []int{1}, MemoryBytes: 1 << 30}},
			{
				Request: "drive",
				Device:  "nvme-0000-02-00-0",
				Kind:    &ledger.FunctionShare{Address: "0000:02:00.0", Nodes: drive},
			},
		}},
		{UID: "uid-f", Namespace: "default", Name: "f", Order: 3, Shares: []ledger.Share{
			{Request: "drive", Device: "nvme-0000-03-00-0", Kind: &ledger.FunctionShare{Address: "0000:03:00.0"}},
		}},
		{UID: "uid-v", Namespace: "default", Name: "v", Order: 4, Shares: []ledger.Share{
			{Request: "r", Device: "numa-0", Kind: &ledger.ZoneShare{NUMANodes: []int{0}, CPUs: cpuset.New(10), Partition: "none"}},
			{Request: "cache", Device: "cache-0-guaranteed", Kind: &ledger.CacheShare{Pool: "guaranteed", Group: 2, CPUs: "r", Ways: 1}},
		}},
		{UID: "uid-w", Namespace: "default", Name: "w", Order: 5, Shares: []ledger.Share{
			{Request: "r", Device: "numa-0", Kind: &ledger.ZoneShare{NUMANodes: []int{0}, CPUs: cpuset.New(11), Partition: "root", Mixed: true}},
			{Request: "cache", Device: "cache-0-guaranteed", Kind: &ledger.CacheShare{Pool: "guaranteed", Group: 7, CPUs: "r", Ways: 1}},
		}},
	}}
	specs := fstest.MapFS{}
	for _, claim := range []cdi.Claim{
		{UID: "uid-a", Namespace: "default", Name: "a", Shares: []cdi.Share{
			{
				Request: "r",
				Device:  "numa-0",
				Kind:    &cdi.Zone{CPUs: cpuset.New(4, 5), Mems: cpuset.New(0), Partition: "root", Scope: "container"},
			},
		}},
		{UID: "uid-b", Namespace: "default", Name: "b-made", Shares: []cdi.Share{
			{
				Request: "x/sub",
				Device:  "numa-0",
				Kind:    &cdi.Zone{CPUs: cpuset.New(6, 7), IdleCPUs: cpuset.New(7), Mems: cpuset.New(0), Partition: "none", Scope: "container"},
			},
			{
				Request: "mix",
				Device:  "numa-1",
				Kind:    &cdi.Zone{CPUs: cpuset.New(8, 9), Mems: cpuset.New(1), Mixed: true, Partition: "none", Scope: "container"},
			},
			{Request: "z", Device: "numa-1", Kind: &cdi.Zone{Mems: cpuset.New(1), Partition: "none", Scope: "container"}},
			{Request: "drive", Device: "nvme-0000-02-00-0", Kind: &cdi.Function{PCI: "0000:02:00.0", Nodes: drive}},
		}},
		{
			UID:       "uid-f",
			Namespace: "default",
			Name:      "f",
			Shares:    []cdi.Share{{Request: "drive", Device: "nvme-0000-03-00-0", Kind: &cdi.Function{PCI: "0000:03:00.0"}}},
		},
		{UID: "uid-v", Namespace: "default", Name: "v", Shares: []cdi.Share{
			{Request: "r", Device: "numa-0", Kind: &cdi.Zone{CPUs: cpuset.New(10), Partition: "none", Scope: "container"}},
			{Request: "cache", Device: "cache-0-guaranteed", Kind: &cdi.Cache{}},
		}},
		{UID: "uid-w", Namespace: "default", Name: "w", Shares: []cdi.Share{
			{Request: "r", Device: "numa-0", Kind: &cdi.Zone{CPUs: cpuset.New(11), Mixed: true, Partition: "none", Scope: "container"}},
			{Request: "cache", Device: "cache-0-guaranteed", Kind: &cdi.Cache{Group: "dra-numa.7"}},
		}},
	} {
		text, err := cdi.Encode(claim, cdi.Hook{})
		if err != nil {
			t.Fatal(err)
		}
		specs["dra.numa-claim_"+claim.UID+".json"] = &fstest.MapFile{Data: text}
	}
	var err error
	if n.Specs, err = cdi.ReadSpecs(specs); err != nil {
		t.Fatal(err)
	}
	n.Partitions = []nodestate.Partition{{Cgroup: "pods/p1/main", CPUs: cpuset.New(4, 5), State: "root"}, {Cgroup: "pods/p1/main/own", CPUs: cpuset.New(5), State: "root"}}
	n.Pins = []nodestate.Pin{
		{
			Cgroup:    "pods/p1/main",
			Claims:    []nodestate.Claim{{UID: "uid-a", Name: "default/a"}},
			CPUs:      cpuset.New(4, 5),
			Mems:      cpuset.New(0),
			Partition: "root",
		},
		{
			Cgroup:    "pods/p2/sidecar",
			Claims:    []nodestate.Claim{{UID: "uid-b", Name: "default/b-made"}},
			CPUs:      cpuset.New(6),
			Mems:      cpuset.New(0),
			Partition: "none",
		},
		{Cgroup: "pods/p5/id-own", Claims: []nodestate.Claim{{UID: "uid-v", Name: "default/v"}}, CPUs: cpuset.New(10), Partition: "none"},
	}
	n.Tasks = []nodestate.TaskGroup{
		{Cgroup: "pods/p5/id-beside", Tasks: 1},
		{Cgroup: "pods/p5/id-joined/below", Group: "dra-numa.7", Tasks: 2},
		{Cgroup: "pods/p5/cri-containerd-id-own.scope", Tasks: 3},
		{Cgroup: "system.slice/other", Group: "other", Tasks: 4},
	}
	return n
}
