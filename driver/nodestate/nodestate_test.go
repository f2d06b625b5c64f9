package nodestate

import (
	"bytes"
	"encoding/json"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// The document of a node is in bundles that users keep, so every release reads and
// writes it the same way. Its grants are those of the driver's own golden file.
func TestDocumentIsAsReleased(t *testing.T) {
	recorded, err := ledger.DecodeCheckpoint([]byte(files.Read(t, "../ledger/testdata/checkpoint.json")))
	if err != nil {
		t.Fatal(err)
	}
	cpus, mems := cpuset.New(4, 5), cpuset.New(1)
	written, err := json.MarshalIndent(State{
		Format: Format, Version: Version, Node: "worker-1", BootID: "boot-1", Settled: true,
		Checkpoint: Checkpoint{Version: recorded.Version, BootID: recorded.BootID, Grants: recorded.Grants},
		Specs: []cdi.Written{{ClaimUID: "uid-a", File: "dra.numa-claim_uid-a.json", CPUs: cpus, Devices: []cdi.WrittenDevice{
			{ID: "dra.numa/claim=uid-a_main-sub_numa-1", CPUs: cpus, Mems: mems, Partition: "root", Scope: "pod"},
		}}},
		Partitions: []Partition{{Cgroup: "pods/ctr", CPUs: cpus, State: "root invalid (Cpu list in cpuset.cpus not exclusive)"}},
		Pins:       []Pin{{Cgroup: "pods/ctr", Claims: []Claim{{UID: "uid-a", Name: "default/a"}}, CPUs: cpus, Mems: mems, Partition: "root", Downgraded: true, Fault: "why"}},
		Layout: &Layout{
			Reserved: ptr.To(cpuset.New(0)), Isolated: cpuset.New(3),
			Caches: []Cache{
				{NUMANode: 0, Socket: ptr.To(0), L3: ptr.To(0), Cores: []cpuset.Set{cpuset.New(0, 2), cpuset.New(1, 3)}},
				{NUMANode: 1, Cores: []cpuset.Set{cpuset.New(4, 5)}},
			},
		},
		Problems: []Problem{{Part: PinsPart, Why: "permission denied"}},
		Tasks:    []TaskGroup{{Cgroup: "pods/ctr", Group: "dra-numa.3", Tasks: 2}},

		IgnoredPolicies: []IgnoredPolicy{{Cgroup: "pods/ctr", Claim: Claim{UID: "uid-a", Name: "default/a"}, Want: "bind:1", Seen: "default"}},
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	files.Golden(t, "testdata/state.json", string(written)+"\n")
	state, err := Decode(written)
	if err != nil {
		t.Fatal(err)
	}
	again, err := json.MarshalIndent(state, "", "  ")
	if err != nil || !bytes.Equal(again, written) {
		t.Errorf("read and written again: %v\n%s\nwant\n%s", err, again, written)
	}
}
