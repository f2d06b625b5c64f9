package nri

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

func TestCreateContainer(t *testing.T) {
	core := &fakeCore{}
	r, p := connected(t, core)
	r.create("before")
	mixed, memory := claimB, driver.Pinned{Mems: cpuset.New(0, 1), PolicyMems: cpuset.New(0, 1), MemoryPolicy: "interleave"}
	mixed.Mixed, mixed.MemoryPolicy, mixed.PolicyMems = true, "bind", mixed.Mems
	open := driver.Pinned{CPUs: cpuset.New(4, 5), PolicyMems: cpuset.New(1), MemoryPolicy: "preferred"}
	core.hold(map[string]driver.Pinned{"a": claimA, "b": mixed, "m": memory, "open": open})
	r.create("claim", "gpu=0", "a")
	r.create("two claims", "a", "b")
	r.create("other device", "gpu=0")
	r.create("none")
	adjustment := r.create("mixed", "b")
	if got := adjustment.GetLinux().GetMemoryPolicy(); got.GetMode() != api.MpolMode_MPOL_BIND || got.GetNodes() != "1" || !slices.Equal(got.GetFlags(), []api.MpolFlag{api.MpolFlag_MPOL_F_STATIC_NODES}) {
		t.Errorf("memory policy of the mixed claim: %v, want bind to 1", got)
	}
	adjustment = r.create("memory", "m")
	if got := adjustment.GetLinux().GetMemoryPolicy(); got.GetMode() != api.MpolMode_MPOL_INTERLEAVE || got.GetNodes() != "0-1" {
		t.Errorf("memory policy of the claim of memory: %v, want interleave over 0-1", got)
	}
	adjustment = r.create("open", "open")
	if got := adjustment.GetLinux().GetMemoryPolicy(); got.GetMode() != api.MpolMode_MPOL_PREFERRED || got.GetNodes() != "1" {
		t.Errorf("memory policy of the claim whose memory is not bound: %v, want 1 preferred", got)
	}
	eventually(t, "narrowed", func() bool { return r.state()["before"] == "0-1/" })
	wantState(t, r, map[string]string{
		"before": "0-1/", "none": "0-1/", "other device": "0-1/",
		"claim": "2-3/0", "two claims": "0-7/0-1", "mixed": "0-1,4-7/1", "memory": "0-1/0-1", "open": "4-5/",
	})
	if got := p.Updates(); got != 1 {
		t.Errorf("%d updates, want that of the container from before the claims", got)
	}
}

// Only names of CDI devices and hooks of the host count: a pod writes neither.
func TestNothingOfThePodIsTrusted(t *testing.T) {
	r, _ := connected(t, coreWith(map[string]driver.Pinned{"a": claimA}))
	c := containerMessage("liar")
	c.Env = []string{"DRA_NUMA_CPUS=2-3", "DRA_NUMA_MEMS=0"}
	c.Annotations = map[string]string{"cdi.k8s.io/x": "a", "dra.numa/grant": "a"}
	c.Labels = c.Annotations
	c.Args = []string{"numa-pin", "pin", "--cpus=2-3"}
	if _, err := r.adjusted(c); err != nil {
		t.Fatal(err)
	}
	r.add(c)
	wantState(t, r, map[string]string{"liar": "0-1,4-7/"})
}

func TestBadMemoryPolicyFailsTheContainer(t *testing.T) {
	bad := claimA
	bad.MemoryPolicy, bad.PolicyMems = "local", bad.Mems
	r, _ := connected(t, coreWith(map[string]driver.Pinned{"a": bad}))
	_, err := r.adjusted(containerMessage("c", "a"))
	if err == nil || !strings.Contains(err.Error(), `claims ["ns/a"]: memory policy "local" is not bind, preferred,`) {
		t.Errorf("error %v, want one about the policy", err)
	}
}

func TestMissingPolicies(t *testing.T) {
	if missing := New(Options{}).MissingPolicies(); !errors.Is(missing, errNotConnected) {
		t.Errorf("without a runtime: %v", missing)
	}
	for version, want := range map[string]string{
		"v2.2.1": "containerd v2.2.1 does not set it, want a container runtime with NRI 0.12 or newer, such as containerd 2.3",
		"v2.4.2": "<nil>",
	} {
		socket := filepath.Join(t.TempDir(), "nri.sock")
		newContainerd(t, version, socket)
		if missing := connect(t, socket, &fakeCore{}).MissingPolicies(); fmt.Sprint(missing) != want {
			t.Errorf("%s: %v, want %s", version, missing, want)
		}
	}
}

func TestRuntimesThatSetMemoryPolicies(t *testing.T) {
	for _, row := range []struct {
		runtime, version, nri string
		want                  bool
	}{
		{"containerd", "v2.4.2", "v0.12.3", true},
		{"containerd", "v2.4.2", "v0.11.0", true}, // from the table
		{"containerd", "v2.2.5", "v0.11.0", false},
		{"containerd", "v2.1.0", "v0.8.0", false},
		{"containerd", "devel", "", false},
		{"cri-o", "1.34.0", "", false}, // the table has v1.34.0
		{"cri-o", "1.99.0", "v0.12.1-0.20260101000000-0123456789ab", true},
		{"cri-o", "1.99.0", "(devel)", true},
		{"other", "1", api.UnknownVersion, true},
		{"other", "1", "", false},
	} {
		if got := setsPolicies(row.runtime, row.version, row.nri); got != row.want {
			t.Errorf("%s %s with NRI %q: %v", row.runtime, row.version, row.nri, got)
		}
	}
}

// A runtime that does not name CDI devices leaves claims to the hook: a
// container with it is no container without a claim.
func TestContainerWithTheHookAloneIsLeftAlone(t *testing.T) {
	r, p := connected(t, coreWith(map[string]driver.Pinned{"a": claimA}))
	c := containerMessage("old runtime")
	c.Hooks = &api.Hooks{CreateRuntime: []*api.Hook{{Path: "/opt/numa-pin", Args: []string{"numa-pin", "pin", "--cpus=2-3"}}}}
	if _, err := r.adjusted(c); err != nil {
		t.Fatal(err)
	}
	r.add(c)
	r.update("old runtime", &api.LinuxResources{})
	refresh(t, p)
	wantState(t, r, map[string]string{"old runtime": "/"})
}

func TestUpdateContainerKeepsTheCpuset(t *testing.T) {
	core := &fakeCore{}
	r, p := connected(t, core)
	r.create("free")
	core.hold(map[string]driver.Pinned{"a": claimA})
	r.create("claim", "a")
	r.create("none")
	resize := func() *api.LinuxResources {
		return &api.LinuxResources{
			Memory:  &api.LinuxMemory{Limit: api.Int64(int64(1 << 30))},
			Cpu:     &api.LinuxCPU{Shares: api.UInt64(uint64(512)), Cpus: "0-7", Mems: "0-1"},
			Unified: map[string]string{"cpuset.cpus": "0-7", "memory.high": "1"},
		}
	}
	for id, want := range map[string]struct{ cpus, mems, unified string }{
		"claim": {"2-3", "0", "2-3"},
		"none":  {"0-1,4-7", "0-1", "0-1,4-7"}, // mems of others are not ours
	} {
		got := r.update(id, resize())
		if got.Cpu.Cpus != want.cpus || got.Cpu.Mems != want.mems || got.Unified["cpuset.cpus"] != want.unified {
			t.Errorf("%s: updated to cpus %s, mems %s, unified %s, want %+v", id, got.Cpu.Cpus, got.Cpu.Mems, got.Unified["cpuset.cpus"], want)
		}
		if got.Memory.Limit.GetValue() != 1<<30 || got.Cpu.Shares.GetValue() != 512 || got.Unified["memory.high"] != "1" {
			t.Errorf("%s: other resources did not pass: %v", id, got)
		}
	}
	core.hold(nil)
	refresh(t, p)
	if got := r.update("none", resize()).Cpu.Cpus; got != "0-7" {
		t.Errorf("without claims the runtime goes on with CPUs %s, want 0-7", got)
	}
}

func TestUpdateContainerWithoutRestrictionPasses(t *testing.T) {
	r, p := connected(t, &fakeCore{})
	r.create("c")
	if got := r.update("c", &api.LinuxResources{Cpu: &api.LinuxCPU{Cpus: "1", Mems: "0"}}); got.Cpu.Cpus != "1" || got.Cpu.Mems != "0" {
		t.Errorf("updated to %v, want what was asked", got.Cpu)
	}
	refresh(t, p)
	wantState(t, r, map[string]string{"c": "1/0"})
	if p.Updates() != 0 {
		t.Errorf("%d updates, want none", p.Updates())
	}
}

func TestSynchronizeRepairs(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "nri.sock")
	r := newRuntime(t, socket)
	r.set(func() {
		r.containers["right"] = withCPUs(containerMessage("right", "a"), "3,2", "0")
		r.containers["wrong"] = withCPUs(containerMessage("wrong", "a"), "0-7", "0")
		r.containers["bare"] = containerMessage("bare", "a")
		r.containers["none"] = containerMessage("none")
		r.containers["in the pool"] = withCPUs(containerMessage("in the pool"), "0,1,4-7", "1")
	})
	core := coreWith(map[string]driver.Pinned{"a": claimA})
	p := run(t.Context(), t, socket, core)
	eventually(t, "connected", p.Connected)
	refresh(t, p)
	wantState(t, r, map[string]string{
		"right": "3,2/0", "wrong": "2-3/0", "bare": "2-3/0", "none": "0-1,4-7/", "in the pool": "0,1,4-7/1",
	})
	// The runtime says nothing of repairs that fail, so they are made sure of.
	if got := strings.Join(r.sent(), "; "); got != "bare none wrong" {
		t.Errorf("asked for updates of %q afterwards, want those that were wrong, once", got)
	}
}

func TestSynchronizeAnswersWithWhatIsWrong(t *testing.T) {
	p := New(Options{Core: coreWith(map[string]driver.Pinned{"a": claimA})})
	updates, err := handlers{p, &session{awake: make(chan struct{}, 1)}}.Synchronize(t.Context(), nil, []*api.Container{
		withCPUs(containerMessage("right", "a"), "3,2", "0"),
		withCPUs(containerMessage("wrong", "a"), "2-4", "0"),
	})
	if err != nil || len(updates) != 1 || updates[0].ContainerId != "wrong" {
		t.Fatalf("updates %v, error %v, want one of container wrong", updates, err)
	}
	if cpu := updates[0].Linux.Resources.Cpu; cpu.Cpus != "2-3" || cpu.Mems != "" {
		t.Errorf("update to cpus %q, mems %q, want only what differs, 2-3", cpu.Cpus, cpu.Mems)
	}
	if p.Updates() != 1 || !p.Connected() {
		t.Errorf("%d updates, connected %v, want 1, true", p.Updates(), p.Connected())
	}
}

// other is a second plugin.
type other struct{ cpus, shares bool }

func (o other) CreateContainer(context.Context, *api.PodSandbox, *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	adjustment := &api.ContainerAdjustment{}
	if o.cpus {
		adjustment.SetLinuxCPUSetCPUs("0")
	}
	if o.shares {
		adjustment.SetLinuxCPUShares(7)
	}
	return adjustment, nil, nil
}

func TestTwoPlugins(t *testing.T) {
	for name, row := range map[string]struct {
		second other
		want   string // error
	}{
		"another thing":  {other{shares: true}, ""},
		"the same thing": {other{cpus: true}, `plugins "60-other" and "50-dra.numa" both tried to set CPUSetCPUs`},
	} {
		t.Run(name, func(t *testing.T) {
			core := coreWith(map[string]driver.Pinned{"a": claimA})
			socket := filepath.Join(t.TempDir(), "nri.sock")
			r := newRuntime(t, socket)
			p := run(t.Context(), t, socket, core)
			second, err := stub.New(row.second, stub.WithSocketPath(socket), stub.WithPluginName("other"), stub.WithPluginIdx("60"), stub.WithLogger(logger{}))
			if err != nil {
				t.Fatal(err)
			}
			if err := second.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer second.Stop()
			eventually(t, "connected", p.Connected)
			var adjustment *api.ContainerAdjustment
			eventually(t, "asked both", func() bool {
				adjustment, err = r.adjusted(containerMessage("c", "a"))
				return err != nil || adjustment.GetLinux().GetResources().GetCpu().GetShares().GetValue() == 7
			})
			if row.want == "" && (err != nil || adjustment.Linux.Resources.Cpu.Cpus != "2-3") {
				t.Errorf("adjustment %v, error %v, want those of both", adjustment, err)
			}
			if row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
				t.Errorf("error %v, want %q", err, row.want)
			}
		})
	}
}
