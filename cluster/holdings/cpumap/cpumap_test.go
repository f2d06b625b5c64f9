package cpumap

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/dra-driver-numa/dra-driver-numa/cluster/holdings"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	"github.com/dra-driver-numa/dra-driver-numa/test/occupied"
)

// rig is the state of a node that is the preset rig: four NUMA nodes with two cores of two
// CPUs each. CPUs 0-1 are reserved.
func rig(t *testing.T) *nodestate.State {
	t.Helper()
	for _, preset := range fake.Presets() {
		if preset.Name == "rig" {
			machine, err := numa.Read(preset.Machine.FS())
			if err != nil {
				t.Fatal(err)
			}
			layout := nodestate.LayoutOf(machine)
			layout.Reserved = ptr.To(cpuset.New(0, 1))
			return &nodestate.State{Layout: layout}
		}
	}
	t.Fatal("there is no preset rig")
	return nil
}

// text writes each cache in a line, as its L3 and its cores.
func text(m Map) string {
	var lines []string
	for _, n := range m.NUMANodes {
		for _, cache := range n.Caches {
			line := fmt.Sprintf("node %d, L3 %d:", n.ID, ptr.Deref(cache.L3, -1))
			for _, core := range cache.Cores {
				for i, cpu := range core {
					line += map[bool]string{true: " ", false: "+"}[i == 0] + fmt.Sprintf("%d=%s", cpu.ID, cpu.Use)
					if cpu.Claim != "" {
						line += "(" + cpu.Claim + ")"
					}
				}
			}
			lines = append(lines, line)
		}
	}
	return strings.Join(append(lines, m.Problems...), "\n")
}

func check(t *testing.T, c *occupied.Cluster, state *nodestate.State, want string) Map {
	t.Helper()
	cluster := holdings.Of(&c.Snapshot)
	m := Of(cluster.Node("worker-1"), state)
	if diff := cmp.Diff(strings.TrimSpace(want), text(m)); diff != "" {
		t.Errorf("map (-want +got):\n%s", diff)
	}
	return m
}

func grant(claim, request, device string, cpus ...int) ledger.Grant {
	namespace, name, _ := strings.Cut(claim, "/")
	share := ledger.Share{Request: request, Device: device, Kind: &ledger.ZoneShare{NUMANodes: []int{0}, CPUs: cpuset.New(cpus...)}}
	return ledger.Grant{UID: "uid", Namespace: namespace, Name: name, Shares: []ledger.Share{share}}
}

// The showcase has a claim with CPUs 4-5, one with 8-11, one whose CPUs only the
// checkpoint has, and a zone with a taint, 3.
func TestEachCPUHasItsUse(t *testing.T) {
	c := occupied.Showcase(t)
	state := rig(t)
	state.Checkpoint.Grants = []ledger.Grant{
		grant("default/alpha-zone", "zone", "numa-1", 4, 5),
		grant("team-a/gamma", "main", "numa-3", 12, 13),
		grant("team-a/gone", "zone", "numa-1", 6),
	}
	state.Partitions = []nodestate.Partition{{Cgroup: "pods/alpha", CPUs: cpuset.New(4, 5)}, {Cgroup: "admin", CPUs: cpuset.New(2)}}
	state.Pins = []nodestate.Pin{{Cgroup: "pods/alpha", Claims: []nodestate.Claim{{UID: "uid"}}}}
	m := check(t, c, state, `
node 0, L3 0: 0=reserved+1=reserved 2=blocked+3=shared
node 1, L3 1: 4=claim(default/alpha-zone)+5=claim(default/alpha-zone) 6=blocked+7=shared
node 2, L3 2: 8=claim(default/beta-zone)+9=claim(default/beta-zone) 10=claim(default/beta-zone)+11=claim(default/beta-zone)
node 3, L3 3: 12=claim(team-a/gamma)+13=claim(team-a/gamma) 14=blocked+15=blocked
`)
	whys := map[int]string{}
	for _, n := range m.NUMANodes {
		for _, group := range n.Caches[0].Groups() {
			for id := range group.CPUs.All() {
				whys[id] = group.Why
			}
		}
	}
	for id, want := range map[int]string{
		2: "it is in the cpuset partition of cgroup admin", 6: "the checkpoint of the node has it for claim team-a/gone, which holds nothing here",
		15: "device numa-3 is tainted: dra.numa/fault=partition-invalid:NoSchedule", 3: "", 4: "",
	} {
		if whys[id] != want {
			t.Errorf("CPU %d: %q, want %q", id, whys[id], want)
		}
	}
}

func TestCPUsThatDoNotAgreeAreProblems(t *testing.T) {
	c := occupied.New(t)
	c.AddMachine("worker-1", "rig", zones.Faults{})
	c.AddClaim("a/one", occupied.Share{Node: "worker-1", Device: "numa-1", Amounts: "cpu=2", CPUs: ptr.To("4-5"), IdleCPUs: "5", Mems: "1"})
	c.AddClaim("a/two", occupied.Share{Node: "worker-1", Device: "numa-1", Amounts: "cpu=4", CPUs: ptr.To("5-6,99"), Mems: "1"})
	state := rig(t)
	state.Layout.Reserved = nil
	state.Layout.Caches[0].Cores = append(state.Layout.Caches[0].Cores, cpuset.New(), cpuset.New(0, 7))
	state.Layout.Caches = append(state.Layout.Caches, nodestate.Cache{NUMANode: 0})
	check(t, c, state, `
node 0, L3 0: 0=shared+1=shared 2=shared+3=shared 7=shared
node 1, L3 1: 4=claim(a/one)+5=idle(a/one) 6=claim(a/two)
node 2, L3 2: 8=shared+9=shared 10=shared+11=shared
node 3, L3 3: 12=shared+13=shared 14=shared+15=shared
claim a/two has CPUs 99, which are not online
claims a/one and a/two both have CPUs 5
`)
}

// The zones decide, whatever they are: caches, sockets, isolated CPUs.
func TestZonesOfEveryKindHaveTheirCPUs(t *testing.T) {
	machine := fake.Machine{Sockets: 2, L3sPerSocket: 2, CoresPerSocket: 4, Threads: 1, MemoryBytes: 1 << 30, Isolated: "3"}
	read, err := numa.Read(machine.FS())
	if err != nil {
		t.Fatal(err)
	}
	state := &nodestate.State{Layout: nodestate.LayoutOf(read)}
	state.Layout.Reserved = ptr.To(cpuset.New(0))
	for _, row := range []struct{ zoneBy, tainted, blocked string }{
		{deviceclasses.ZoneByNUMA, "", ""},
		{deviceclasses.ZoneByNUMA, "numa-1", "4-7"},
		{deviceclasses.ZoneByNUMA, "isolated-0", "3"},
		{deviceclasses.ZoneByL3, "l3-2", "4-5"},
		{deviceclasses.ZoneBySocket, "socket-1", "4-7"},
		{deviceclasses.ZoneByMachine, "machine", "1-2,4-7"},
	} {
		c := occupied.New(t)
		c.AddNode("worker-1")
		config := driver.Config{NodeName: "worker-1", ZoneBy: row.zoneBy, Reserved: cpuset.New(0), Exclusivity: driver.ExclusivityKernel}
		devices := c.AddSlice("worker-1", driver.Name, driver.Devices(read, config, nil)...).Spec.Devices
		for i := range devices {
			if devices[i].Name == row.tainted {
				devices[i].Taints = []resourceapi.DeviceTaint{{Key: "a/b", Effect: resourceapi.DeviceTaintEffectNoExecute}}
			}
		}
		cluster := holdings.Of(&c.Snapshot)
		uses := make(map[Use]cpuset.Set)
		for _, n := range Of(cluster.Node("worker-1"), state).NUMANodes {
			for _, cache := range n.Caches {
				for _, group := range cache.Groups() {
					uses[group.Use] = uses[group.Use].Union(group.CPUs)
				}
			}
		}
		all, idle := cpuset.New(1, 2, 4, 5, 6, 7), cpuset.New(3)
		blocked, err := cpuset.Parse(row.blocked)
		if err != nil {
			t.Fatal(err)
		}
		want := map[Use]cpuset.Set{Reserved: cpuset.New(0), Shared: all.Difference(blocked), Idle: idle.Difference(blocked), Blocked: blocked}
		for _, use := range Uses() {
			if uses[use] != want[use] {
				t.Errorf("zones are %s, %q is tainted: CPUs %s are %s, want %s", row.zoneBy, row.tainted, uses[use], use, want[use])
			}
		}
	}
}
