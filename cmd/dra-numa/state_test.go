package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// stateNode is a node on which claim uid-b has CPUs 2-3 in its container, with the
// flags for it.
func stateNode(t *testing.T) (dir string, flags []string) {
	t.Helper()
	dir = t.TempDir()
	checkpoint, err := os.ReadFile(newCheckpoint)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := cdi.Encode(cdi.Claim{UID: "uid-b", Namespace: "default", Name: "b", Shares: []cdi.Share{{Request: "r", Device: "numa-0", Kind: &cdi.Zone{CPUs: cpuset.New(2, 3), Mems: cpuset.New(0), Partition: cdi.PartitionRoot, Scope: cdi.ScopeContainer}}}}, cdi.Hook{})
	if err != nil {
		t.Fatal(err)
	}
	group := func(dir, exclusive, partition string) map[string]string {
		return map[string]string{
			dir + "/cpuset.cpus": exclusive, dir + "/cpuset.cpus.effective": exclusive, dir + "/cpuset.mems.effective": "0",
			dir + "/cpuset.cpus.exclusive": exclusive, dir + "/cpuset.cpus.exclusive.effective": exclusive,
			dir + "/cpuset.cpus.partition": partition, dir + "/cgroup.events": "populated 1\n",
		}
	}
	for _, texts := range []map[string]string{
		{
			"proc/sys/kernel/random/boot_id": testBoot + "\n", "cgroup/cgroup.controllers": "cpuset\n",
			"kubelet/plugins/dra.numa/checkpoint.json": string(checkpoint), "cdi/dra.numa-claim_uid-b.json": string(spec),
			"kubelet/plugins/dra.numa/pins/ctr.json": `{"boot":"` + testBoot + `","cgroup":"pods/ctr","scope":"container",` +
				`"claims":[{"uid":"uid-b","name":"default/b","cpus":"2-3","mems":"0","partition":"root"}]}` + "\n",
		},
		group("cgroup/pods", "2-3\n", "member\n"), group("cgroup/pods/ctr", "2-3\n", "root\n"),
	} {
		for name, text := range texts {
			files.Write(t, filepath.Join(dir, name), text)
		}
	}
	return dir, []string{"--kubelet-root=" + dir + "/kubelet", "--cdi-dir=" + dir + "/cdi", "--cgroup-root=" + dir + "/cgroup", "--machine-root=" + dir}
}

func printedState(t *testing.T, flags []string) *nodestate.State {
	t.Helper()
	var stdout bytes.Buffer
	env := func(name string) string { return map[string]string{"NODE_NAME": "worker-1"}[name] }
	if err := run(t.Context(), append([]string{"state"}, flags...), env, &stdout); err != nil {
		t.Fatal(err)
	}
	state, err := nodestate.Decode(stdout.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func TestStateSaysWhatTheNodeHasAndChangesNothing(t *testing.T) {
	dir, flags := stateNode(t)
	before := files.Tree(t, dir)
	got := printedState(t, flags)
	if diff := cmp.Diff(before, files.Tree(t, dir)); diff != "" {
		t.Errorf("files (-before +after):\n%s", diff)
	}
	if len(got.Checkpoint.Grants) != 2 || got.Checkpoint.Grants[1].Shares[0].CPUs().String() != "2-3" {
		t.Errorf("grants %+v", got.Checkpoint.Grants)
	}
	got.Checkpoint.Grants = nil // they are as in the file, see above
	cpus, mems := cpuset.New(2, 3), cpuset.New(0)
	want := &nodestate.State{
		Version: 1, Node: "worker-1", BootID: testBoot, Settled: true,
		Checkpoint: nodestate.Checkpoint{Version: 3, BootID: "boot-1"},
		Specs: []cdi.Written{{ClaimUID: "uid-b", File: "dra.numa-claim_uid-b.json", CPUs: cpus, Devices: []cdi.WrittenDevice{{
			ID: "dra.numa/claim=uid-b_r_numa-0", CPUs: cpus, Mems: mems, Partition: "root", Scope: "container",
		}}}},
		Partitions: []nodestate.Partition{{Cgroup: "pods/ctr", CPUs: cpus, State: "root"}},
		Pins:       []nodestate.Pin{{Cgroup: "pods/ctr", Claims: []nodestate.Claim{{UID: "uid-b", Name: "default/b"}}, CPUs: cpus, Mems: mems, Partition: "root"}},
		Problems:   []nodestate.Problem{},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b cpuset.Set) bool { return a == b })); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
}

// TestStateHasWhatIsWrong: what cannot be read is a problem of its part, and the
// rest is there.
func TestStateHasWhatIsWrong(t *testing.T) {
	for name, row := range map[string]struct {
		change  func(dir string) error
		part    nodestate.Part
		problem string
	}{
		"damaged checkpoint": {func(dir string) error {
			return os.Truncate(dir+"/kubelet/plugins/dra.numa/checkpoint.json", 99)
		}, nodestate.CheckpointPart, "damaged checkpoint: unexpected end of JSON input; drain the node"},
		"no folder of the driver": {func(dir string) error { return os.RemoveAll(dir + "/kubelet") }, nodestate.CheckpointPart, "no such file"},
		"no checkpoint":           {func(dir string) error { return os.Remove(dir + "/kubelet/plugins/dra.numa/checkpoint.json") }, "", ""},
		"no CDI folder":           {func(dir string) error { return os.RemoveAll(dir + "/cdi") }, nodestate.SpecsPart, "no such file"},
		"cgroup with nonsense": {func(dir string) error {
			return os.WriteFile(dir+"/cgroup/pods/ctr/cpuset.cpus.exclusive", []byte("x\n"), 0o600)
		}, nodestate.PartitionsPart, `cpulist "x"`},
		"damaged pin": {func(dir string) error {
			return os.WriteFile(dir+"/kubelet/plugins/dra.numa/pins/z.json", []byte("{}\n"), 0o600)
		}, nodestate.PinsPart, `read record "z.json"`},
	} {
		dir, flags := stateNode(t)
		if err := row.change(dir); err != nil {
			t.Fatal(err)
		}
		got := printedState(t, flags)
		for _, part := range []nodestate.Part{nodestate.CheckpointPart, nodestate.SpecsPart, nodestate.PartitionsPart, nodestate.PinsPart} {
			want := ""
			if part == row.part {
				want = row.problem
			}
			if why := got.Unread(part); (why == "") != (want == "") || !strings.Contains(why, want) || strings.Contains(why, "\n") {
				t.Errorf("%s: problem of the %s %q, want %q", name, part, why, want)
			}
		}
		if rest := len(got.Specs) + len(got.Pins) + len(got.Partitions); rest < 2 && name != "no folder of the driver" {
			t.Errorf("%s: only %d other things are there", name, rest)
		}
	}
}

// TestStateWaitsForAQuietMoment: a claim that is prepared between two parts is in
// both of them, or the document says that it is not settled.
func TestStateWaitsForAQuietMoment(t *testing.T) {
	specs := fstest.MapFS{}
	files := nodeFiles{fstest.MapFS{}, specs, fstest.MapFS{}, fstest.MapFS{}}
	looks := 0
	busy := func(until int) func() {
		looks = 0
		clear(specs)
		return func() {
			if looks++; looks < until {
				specs["dra.numa-claim_"+strings.Repeat("a", looks)+".json"] = &fstest.MapFile{Data: []byte("{}")}
			}
		}
	}
	if state := files.settled(busy(3)); !state.Settled || looks != 3 || len(state.Specs) != 2 {
		t.Errorf("settled %t after %d pauses with %d specs, want true, 3, 2", state.Settled, looks, len(state.Specs))
	}
	if state := files.settled(busy(1000)); state.Settled || looks != stateLooks-1 {
		t.Errorf("settled %t after %d pauses, want it to give up", state.Settled, looks)
	}
}

func TestStateUsage(t *testing.T) {
	for _, args := range []string{"stray", "--node-name=x", "--cdi-dir"} {
		err := run(t.Context(), append([]string{"state"}, args), noEnv, &bytes.Buffer{})
		if usage := (*cli.UsageError)(nil); !errors.As(err, &usage) {
			t.Errorf("%q: error %v, want usage", args, err)
		}
	}
	var stdout bytes.Buffer
	err := run(t.Context(), []string{"state", "--help"}, noEnv, &stdout)
	if !errors.Is(err, flag.ErrHelp) || !strings.HasPrefix(stdout.String(), "Usage: dra-numa state") || !strings.Contains(stdout.String(), "-cgroup-root directory") {
		t.Errorf("help %q, %v", stdout.String(), err)
	}
	stdout.Reset()
	if _ = run(t.Context(), []string{"--help"}, noEnv, &stdout); !strings.Contains(stdout.String(), "dra-numa state [flags]") {
		t.Errorf("help %q does not name the subcommand", stdout.String())
	}
}
