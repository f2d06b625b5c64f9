package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/object"
)

// stateNode is a node on which claim uid-b has CPUs 2-3 in its container, with the
// flags for it.
func stateNode(t *testing.T) (dir string, flags []string) {
	t.Helper()
	dir = t.TempDir()
	machine := fake.Machine{Sockets: 1, CoresPerSocket: 3, Threads: 2, Numbering: fake.Adjacent, MemoryBytes: 1 << 30, Isolated: "5"}
	if err := machine.Write(dir); err != nil {
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
			"kubelet/plugins/dra.numa/checkpoint.json": files.Read(t, goldenCheckpoint), "cdi/dra.numa-claim_uid-b.json": string(spec),
			"kubelet/plugins/dra.numa/pins/ctr.json": `{"format":"dra.numa/pins","version":1,"boot":"` + testBoot + `","cgroup":"pods/ctr","scope":"container",` +
				`"claims":[{"uid":"uid-b","name":"default/b","cpus":"2-3","mems":"0","partition":"root"}]}` + "\n",
		},
		group("cgroup/pods", "2-3\n", "member\n"), group("cgroup/pods/ctr", "2-3\n", "root\n"),
	} {
		for name, text := range texts {
			files.Write(t, filepath.Join(dir, name), text)
		}
	}
	return dir, []string{"--kubelet-root=" + dir + "/kubelet", "--cdi-dir=" + dir + "/cdi", "--cgroup-root=" + dir + "/cgroup", "--machine-root=" + dir, "--pid=999999999"}
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
	if len(got.Checkpoint.Grants) != 6 || got.Checkpoint.Grants[1].Shares[0].CPUs().String() != "2-3" {
		t.Errorf("grants %+v", got.Checkpoint.Grants)
	}
	got.Checkpoint.Grants = nil // they are as in the file, see above
	cpus, mems := cpuset.New(2, 3), cpuset.New(0)
	want := &nodestate.State{
		Format: "dra.numa/state", Version: 1, Node: "worker-1", BootID: testBoot, Settled: true,
		Checkpoint: nodestate.Checkpoint{Version: 1, BootID: "boot-1"},
		Specs: []cdi.Written{{ClaimUID: "uid-b", File: "dra.numa-claim_uid-b.json", CPUs: cpus, Devices: []cdi.WrittenDevice{{
			ID: "dra.numa/claim=uid-b_r_numa-0", CPUs: cpus, Mems: mems, Partition: "root", Scope: "container",
		}}}},
		Partitions: []nodestate.Partition{{Cgroup: "pods/ctr", CPUs: cpus, State: "root"}},
		Pins:       []nodestate.Pin{{Cgroup: "pods/ctr", Claims: []nodestate.Claim{{UID: "uid-b", Name: "default/b"}}, CPUs: cpus, Mems: mems, Partition: "root"}},
		Layout: &nodestate.Layout{
			Isolated: cpuset.New(5), Why: "read the flags of process 999999999: open 999999999/cmdline: no such file or directory",
			Caches: []nodestate.Cache{{Socket: ptr.To(0), L3: ptr.To(0), Cores: []cpuset.Set{cpuset.New(0, 1), cpuset.New(2, 3), cpuset.New(4, 5)}}},
		},
		Problems: []nodestate.Problem{},
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
		"no machine": {func(dir string) error { return os.RemoveAll(dir + "/sys") }, nodestate.LayoutPart, "no cpu is online in sys/devices/system/cpu"},
		"damaged pin": {func(dir string) error {
			return os.WriteFile(dir+"/kubelet/plugins/dra.numa/pins/z.json", []byte("{}\n"), 0o600)
		}, nodestate.PinsPart, `read record "z.json"`},
	} {
		dir, flags := stateNode(t)
		if err := row.change(dir); err != nil {
			t.Fatal(err)
		}
		got := printedState(t, flags)
		for _, part := range []nodestate.Part{nodestate.CheckpointPart, nodestate.SpecsPart, nodestate.PartitionsPart, nodestate.PinsPart, nodestate.LayoutPart} {
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

// The reserved CPUs are those of the daemon, from its flags and files.
func TestLayoutHasTheDaemonsReservedCPUs(t *testing.T) {
	dir, _ := stateNode(t)
	machine, err := numa.Read(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	path := configFile(t, "reservedCPUs: 2-3\n")
	for arguments, want := range map[string]struct{ reserved, why string }{
		"--node-name=n":                                {"0-1", ""},
		"--node-name=n --reserved-cpus=0":              {"0", ""},
		"--node-name=n --config=" + path:               {"2-3", ""},
		"--node-name=n --config=/no/such":              {"", "--config: open /no/such: no such file or directory"},
		"--node-name=n --reserved-cpus=9":              {"", `--reserved-cpus: reserved CPUs "9": the machine has no CPUs 9, allowed are 0-5`},
		"keep --cgroups=/host/cgroup":                  {"", `process 7 is no dra-numa daemon: unexpected argument "keep"`},
		"--node-name=n --no-such-flag":                 {"", "process 7 is no dra-numa daemon: "},
		"--node-name=n --kubelet-config=/no/such.yaml": {"", "open /no/such.yaml: no such file or directory"},
	} {
		proc := fstest.MapFS{"7/cmdline": {Data: []byte("/dra-numa\x00" + strings.ReplaceAll(arguments, " ", "\x00") + "\x00")}}
		layout := layoutOf(machine, func() (options, error) {
			o, _, err := optionsOf(proc, 7, noEnv)
			if err != nil {
				return options{}, err
			}
			return o.withConfig(t.Context())
		})
		got := "not known"
		if layout.Reserved != nil {
			got = layout.Reserved.String()
		}
		if want.why == "" && got != want.reserved || want.why != "" && got != "not known" || !strings.HasPrefix(layout.Why, want.why) || (layout.Why == "") != (want.why == "") {
			t.Errorf("%s: reserved CPUs %s, %q, want %+v", arguments, got, layout.Why, want)
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
	for arg, want := range map[string]string{"stray": "stray", "--node-name=x": "node-name", "--cdi-dir": "cdi-dir"} {
		expectUsage(t, "", want, "state", arg)
	}
}

func TestStateSaysWhyCachesAreNotPublished(t *testing.T) {
	machine, err := numa.Read(fake.Machine{Sockets: 1, CoresPerSocket: 3, Threads: 2, MemoryBytes: 1 << 30}.FS())
	if err != nil {
		t.Fatal(err)
	}
	pools := object.Parse[deviceclasses.CachePools](t, "{os: {ways: 2}, guaranteed: {ways: 4}}")
	for want, o := range map[string]options{
		"": {},
		"caches are not published: the kernel does not divide level-3 caches, or resctrl is not mounted": {cachePools: pools, resctrl: t.TempDir()},
	} {
		if got := whyNoCaches(&machine, func() (options, error) { return o, nil }); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// What else of the node matters is said only if it is asked for.
func TestStateOfTheHost(t *testing.T) {
	dir, flags := stateNode(t)
	if host := printedState(t, flags).Host; host != nil {
		t.Errorf("without --host, it is %+v", host)
	}
	flags = append(flags, "--host", "--nri-socket="+dir+"/nri/nri.sock")
	check := func(what string, nri *bool, irqbalance string) {
		t.Helper()
		want := &nodestate.Host{NRI: nri, Irqbalance: irqbalance, Services: []string{"tuned"}}
		if irqbalance != "" {
			want.Services = []string{"irqbalance", "tuned"}
		}
		if diff := cmp.Diff(want, printedState(t, flags).Host); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	files.Write(t, dir+"/cgroup/system.slice/tuned.service/cgroup.events", "populated 1\nfrozen 0\n")
	check("the folder of the socket is not mounted", nil, "")
	if err := os.Mkdir(dir+"/nri", 0o755); err != nil {
		t.Fatal(err)
	}
	files.Write(t, dir+"/cgroup/system.slice/irqbalance.service/cgroup.events", "populated 0\nfrozen 0\n")
	check("no socket, and irqbalance has ended", ptr.To(false), "")
	files.Write(t, dir+"/cgroup/system.slice/irqbalance.service/cgroup.events", "populated 1\nfrozen 0\n")
	listener, err := net.Listen("unix", dir+"/nri/nri.sock")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	check("both", ptr.To(true), "system.slice/irqbalance.service")
	flags = append(flags, "--nri-socket=")
	check("NRI is not used", nil, "system.slice/irqbalance.service")
	pause := filepath.Join(dir, "kubelet/plugins/dra.numa", kubeletplugin.PauseFile)
	files.Write(t, pause, "")
	if got, want := printedState(t, flags).Host.Paused, "there is the file "+pause; got != want {
		t.Errorf("publishing is paused because %q, want %q", got, want)
	}
}

// Only with --caches, the state says what resctrl has.
func TestStateSaysWhatTheKernelCounts(t *testing.T) {
	dir, flags := stateNode(t)
	if state := printedState(t, flags); state.Resctrl != nil {
		t.Errorf("without --caches: %+v", state.Resctrl)
	}
	flags = append(flags, "--caches", "--resctrl="+dir+"/resctrl")
	if state := printedState(t, flags); state.Resctrl != nil || !strings.Contains(state.Unread(nodestate.ResctrlPart), "resctrl is not mounted") {
		t.Errorf("without resctrl: %+v, problems %+v", state.Resctrl, state.Problems)
	}
	for name, text := range map[string]string{
		"cpus_list": "0-5", "schemata": "L3:0=f", "mode": "shareable",
		"info/L3/cbm_mask": "f", "info/L3/num_closids": "4", "info/L3/min_cbm_bits": "1", "info/L3/shareable_bits": "0", "info/L3/bit_usage": "0=SSSS",
		"info/L3_MON/num_rmids": "8", "info/L3_MON/mon_features": "llc_occupancy",
		"mon_groups/dra-numa.uid-b/cpus_list": "2-3", "mon_groups/dra-numa.uid-b/mon_data/mon_L3_00/llc_occupancy": "4096",
	} {
		files.Write(t, filepath.Join(dir, "resctrl", name), text+"\n")
	}
	state := printedState(t, flags)
	if state.Resctrl == nil || len(state.Resctrl.Claims) != 6 {
		t.Fatalf("resctrl %+v, problems %+v", state.Resctrl, state.Problems)
	}
	use := state.Resctrl.Claims[1]
	if use.Name != "default/b" || use.Group != "mon_groups/dra-numa.uid-b" || len(use.Caches) != 1 || *use.Caches[0].OccupancyBytes != 4096 || use.Caches[0].TotalBytes != nil {
		t.Errorf("claim %+v", use)
	}
	if other := state.Resctrl.Claims[0]; other.Group != "" || other.Why == "" {
		t.Errorf("claim that is not counted: %+v", other)
	}
}
