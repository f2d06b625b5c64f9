package nodestate

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

var update = flag.Bool("update", false, "rewrite testdata")

// The document of a node is in bundles that users keep, so every release reads and
// writes it the same way. Its grants are those of the driver's own golden file.
func TestDocumentIsAsReleased(t *testing.T) {
	const golden = "testdata/state-v1.json"
	checkpoint, err := os.ReadFile("../testdata/checkpoint-v4.json")
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := driver.DecodeCheckpoint(checkpoint)
	if err != nil {
		t.Fatal(err)
	}
	cpus, mems := cpuset.New(4, 5), cpuset.New(1)
	written, err := json.MarshalIndent(State{
		Version: Version, Node: "worker-1", BootID: "boot-1", Settled: true,
		Checkpoint: Checkpoint{Version: recorded.Version, BootID: recorded.BootID, Grants: recorded.Grants},
		Specs: []cdi.Written{{ClaimUID: "uid-a", File: "dra.numa-claim_uid-a.json", CPUs: cpus, Devices: []cdi.WrittenDevice{
			{ID: "dra.numa/claim=uid-a_main-sub_numa-1", CPUs: cpus, Mems: mems, Partition: "root", Scope: "pod"},
		}}},
		Partitions: []Partition{{Cgroup: "pods/ctr", CPUs: cpus, State: "root invalid (Cpu list in cpuset.cpus not exclusive)"}},
		Pins:       []Pin{{Cgroup: "pods/ctr", Claims: []Claim{{UID: "uid-a", Name: "default/a"}}, CPUs: cpus, Mems: mems, Partition: "root", Downgraded: true, Fault: "why"}},
		Problems:   []Problem{{Part: PinsPart, Why: "permission denied"}},
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, append(written, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(append(written, '\n'), want) {
		t.Errorf("written\n%s\nwant\n%s", written, want)
	}
	state, err := Decode(want)
	if err != nil {
		t.Fatal(err)
	}
	again, err := json.MarshalIndent(state, "", "  ")
	if err != nil || !bytes.Equal(append(again, '\n'), want) {
		t.Errorf("read and written again: %v\n%s\nwant\n%s", err, again, want)
	}
}
