package nodestate

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/resctrlfs"
)

// rig is the machine that resctrlfs.Rig describes.
func rig() *numa.Machine {
	return &numa.Machine{L3s: []numa.Cache{{ID: 0, CPUs: cpuset.New(0, 1, 2, 3)}, {ID: 1, CPUs: cpuset.New(4, 5, 6, 7)}}}
}

func grant(name string, kinds ...ledger.Kind) ledger.Grant {
	g := ledger.Grant{UID: types.UID("uid-" + name), Namespace: "default", Name: name}
	for i, kind := range kinds {
		g.Shares = append(g.Shares, ledger.Share{Request: fmt.Sprintf("r%d", i), Kind: kind})
	}
	return g
}

func cpus(ids ...int) ledger.Kind {
	return &ledger.ZoneShare{NUMANodes: []int{0}, CPUs: cpuset.New(ids...)}
}

func stateOf(t *testing.T, f *resctrlfs.FS) numa.ResctrlState {
	t.Helper()
	state, err := numa.ReadResctrl(f, numa.ResctrlView{AllTasks: true})
	if err != nil {
		t.Fatal(err)
	}
	return *state
}

// Claims with ways, in the shared pool, monitored, and neither; a group of another tool.
func TestWhatResctrlSaysOfClaims(t *testing.T) {
	f := resctrlfs.New(resctrlfs.Rig(resctrlfs.Linux612, 2))
	var errs []error
	for _, name := range []string{"dra-numa.0", "dra-numa.1", "dra-numa.2", "dra-numa.3", "dra-numa.65537", "COS1", "idle", "mon_groups/dra-numa.uid-c", "mon_groups/pqos"} {
		errs = append(errs, f.Mkdir(name))
	}
	for _, write := range [][2]string{
		{"schemata", "L3:0=3;1=3\n"},
		{"dra-numa.0/schemata", "L3:0=ffc;1=ffc\n"},
		{"dra-numa.1/schemata", "L3:0=c00;1=c00\n"},
		{"dra-numa.65537/schemata", "L3:0=40;1=40\n"},
		{"dra-numa.2/schemata", "L3:0=3;1=1c\n"},
		{"dra-numa.2/cpus_list", "4-5\n"},
		{"dra-numa.1/cpus_list", "6\n"},
		{"COS1/schemata", "L3:0=300;1=300\n"},
		{"COS1/cpus_list", "3\n"},
		{"mon_groups/dra-numa.uid-c/cpus_list", "1\n"},
	} {
		errs = append(errs, f.Write(write[0], write[1]))
	}
	for _, counter := range []struct {
		group        string
		cache        int
		event, value string
	}{
		{"dra-numa.2", 1, "llc_occupancy", "65536"},
		{"dra-numa.2", 1, "mbm_total_bytes", "7000"},
		{"dra-numa.2", 1, "mbm_local_bytes", "10"},
		{"dra-numa.1", 1, "mbm_total_bytes", "Unassigned"},
		{"dra-numa.1", 1, "mbm_local_bytes", "Unavailable"},
		{"mon_groups/dra-numa.uid-c", 0, "mbm_total_bytes", "4096"},
		{"mon_groups/dra-numa.uid-c", 1, "mbm_total_bytes", "99"},
	} {
		errs = append(errs, f.SetCounter(counter.group, counter.cache, counter.event, counter.value))
	}
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	got := ResctrlOf(stateOf(t, f), rig(), []ledger.Grant{
		grant("a", cpus(4, 5), &ledger.CacheShare{L3: 1, Pool: "guaranteed", Group: 2, CPUs: "r0", Ways: 3, Before: ledger.CountedBytes{Total: 5000, Local: 20}}),
		grant("b", cpus(6), &ledger.CacheShare{L3: 1, Pool: "shared", Group: 1, CPUs: "r0"}),
		grant("c", cpus(1, 2)),
		grant("d", cpus(7)),
		grant("memory", cpus()),
	}, func(group, monitor string, cache int) (numa.CacheCounters, error) {
		return numa.ReadCountersOf(f, group, monitor, cache)
	})
	written, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	files.Golden(t, "testdata/resctrl.json", string(written)+"\n")
	var again Resctrl
	if err := json.Unmarshal(written, &again); err != nil {
		t.Fatal(err)
	}
	if text, err := json.MarshalIndent(again, "", "  "); err != nil || string(text) != string(written) {
		t.Errorf("read and written again: %v\n%s\nwant\n%s", err, text, written)
	}
	if err := new(Mask).UnmarshalText([]byte("xyz")); err == nil || !strings.Contains(err.Error(), `"xyz"`) {
		t.Errorf("a mask with nonsense: %v", err)
	}
}

// With sub-NUMA clustering, a cache has several NUMA nodes.
func TestUseOfEachNUMANodeOfACache(t *testing.T) {
	number := func(n uint64) *uint64 { return &n }
	f := resctrlfs.New(resctrlfs.Rig(resctrlfs.Linux72, 1))
	if err := errors.Join(f.Mkdir("mon_groups/dra-numa.uid-a"), f.Write("mon_groups/dra-numa.uid-a/cpus_list", "2-5\n")); err != nil {
		t.Fatal(err)
	}
	counted := numa.CacheCounters{
		Counters: numa.Counters{OccupancyBytes: number(12), TotalBytes: number(30)},
		Zones:    []numa.ZoneCounters{{Zone: 0, Counters: numa.Counters{OccupancyBytes: number(5)}}, {Zone: 1, Counters: numa.Counters{TotalBytes: number(30)}}},
	}
	machine := &numa.Machine{L3s: []numa.Cache{{ID: 0, CPUs: cpuset.New(0, 1, 2, 3, 4, 5, 6, 7)}}}
	got := ResctrlOf(stateOf(t, f), machine, []ledger.Grant{grant("a", cpus(2, 3, 4, 5))}, func(group, monitor string, cache int) (numa.CacheCounters, error) {
		if group != "" || monitor != "dra-numa.uid-a" || cache != 0 {
			t.Errorf("count %q %q %d", group, monitor, cache)
		}
		return counted, nil
	})
	text, err := json.Marshal(got.Claims)
	if want := `[{"uid":"uid-a","name":"default/a","group":"mon_groups/dra-numa.uid-a","caches":[{"l3":0,"occupancyBytes":12,"totalBytes":30,` +
		`"zones":[{"numaNode":0,"occupancyBytes":5},{"numaNode":1,"totalBytes":30}]}]}]`; err != nil || string(text) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, text, want)
	}
}

func TestGroupsOfReservedCPUsHaveAPool(t *testing.T) {
	f := resctrlfs.New(resctrlfs.Rig(resctrlfs.Linux612, 2))
	for _, name := range []string{"dra-numa.0", "dra-numa.dpdk", "dra-numa.X"} {
		if err := errors.Join(f.Mkdir(name), f.Write(name+"/schemata", "L3:0=80;1=80\n")); err != nil {
			t.Fatal(err)
		}
	}
	var pools []string
	for _, group := range ResctrlOf(stateOf(t, f), rig(), nil, nil).Caches[0].Groups {
		pools = append(pools, group.Group+" "+group.Pool)
	}
	if got := strings.Join(pools, ", "); got != " os, dra-numa.dpdk groups, dra-numa.0 infra" {
		t.Errorf("groups %q", got)
	}
}

func TestMachineThatCountsNothing(t *testing.T) {
	machine := resctrlfs.Rig(resctrlfs.Linux612, 2)
	machine.RMIDs = 0
	got := ResctrlOf(stateOf(t, resctrlfs.New(machine)), rig(), []ledger.Grant{grant("a", cpus(2))}, nil)
	if got.RMIDs != nil || *got.Classes != (Supply{8, 1}) || got.Claims[0].Caches != nil || got.Claims[0].Why == "" {
		t.Errorf("got %+v", got)
	}
}
