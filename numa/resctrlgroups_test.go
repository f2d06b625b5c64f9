package numa

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// resctrlMachine makes the files of a mounted resctrl filesystem as kernels write them.
type resctrlMachine struct {
	masks      map[string]string // cbm_mask by resource
	usage      string            // bit_usage of each
	bandwidths map[string]string // min_bandwidth, bandwidth_gran and delay_linear by resource
	monitors   bool
	more       files // groups
}

func (m resctrlMachine) files() files {
	f := files{"info/last_cmd_status": "ok", "cpus_list": "0-7", "tasks": "1\n2"}
	for resource, mask := range m.masks {
		folder := "info/" + resource + "/"
		f[folder+"cbm_mask"], f[folder+"num_closids"], f[folder+"min_cbm_bits"], f[folder+"bit_usage"] = mask, "16", "1", m.usage
	}
	for resource, numbers := range m.bandwidths {
		folder := "info/" + resource + "/"
		fields := strings.Fields(numbers)
		f[folder+"min_bandwidth"], f[folder+"bandwidth_gran"], f[folder+"delay_linear"] = fields[0], fields[1], fields[2]
		f[folder+"num_closids"] = "16"
	}
	if m.monitors {
		f["info/L3_MON/num_rmids"], f["info/L3_MON/mon_features"] = "32", "llc_occupancy\nmbm_total_bytes\nmbm_local_bytes"
	}
	maps.Copy(f, m.more)
	return f
}

func TestGroupsOfMachines(t *testing.T) {
	percent := map[string]string{"MB": "10 10 1"}
	for name, row := range map[string]struct {
		machine resctrlMachine
		view    ResctrlView
		groups  []ResctrlGroup
		usage   []WayUsage
	}{
		"masks and percent, as Linux 6.12 pads them": {
			machine: resctrlMachine{
				masks: map[string]string{"L3": "fff"}, usage: "0=XXSSSSSSSSSS;1=XXSS0000EEPP", bandwidths: percent, monitors: true,
				more: files{
					"schemata": "    MB:0= 100;1= 100\n    L3:0=fff;1=fff", "mode": "shareable", "size": "x",
					"mon_groups/claim-b/cpus_list": "2-3", "mon_groups/claim-a/cpus_list": "", "mon_groups/claim-a/tasks": "",
					"mon_data/mon_L3_00/llc_occupancy": "1",
					"other/schemata":                   "    MB:0=  40;1= 100\n    L3:0=00f;1=fff", "other/mode": "exclusive", "other/cpus_list": "4-5", "other/tasks": "4711",
					"dra-numa.0/schemata": "MB:0=100;1=100\nL3:0=6;1=fff", "dra-numa.0/mode": "shareable", "dra-numa.0/cpus_list": "", "dra-numa.0/tasks": "",
				},
			},
			groups: []ResctrlGroup{
				{
					Mode: ModeShareable, CPUs: cpuset.New(0, 1, 2, 3, 4, 5, 6, 7),
					Schemata: Schemata{[]CacheMask{{"L3", 0, 0xfff}, {"L3", 1, 0xfff}}, []CacheBandwidth{{"MB", 0, 100}, {"MB", 1, 100}}},
					Monitors: []MonitorGroup{{"claim-a", cpuset.Set{}}, {"claim-b", cpuset.New(2, 3)}},
				},
				{
					Name: "dra-numa.0", Mode: ModeShareable, Tasks: TasksUnknown,
					Schemata: Schemata{[]CacheMask{{"L3", 0, 6}, {"L3", 1, 0xfff}}, []CacheBandwidth{{"MB", 0, 100}, {"MB", 1, 100}}},
				},
				{
					Name: "other", Mode: ModeExclusive, CPUs: cpuset.New(4, 5), Tasks: HasTasks,
					Schemata: Schemata{[]CacheMask{{"L3", 0, 0xf}, {"L3", 1, 0xfff}}, []CacheBandwidth{{"MB", 0, 40}, {"MB", 1, 100}}},
				},
			},
			usage: []WayUsage{
				{Resource: "L3", Cache: 0, Groups: 0xfff, Devices: 0xc00},
				{Resource: "L3", Cache: 1, Groups: 0xf00, Devices: 0xc00, Unused: 0xf0, Exclusive: 0xc, Locked: 3},
			},
		},
		"code and data apart, all tasks in sight": {
			machine: resctrlMachine{
				masks: map[string]string{"L3CODE": "7ff", "L3DATA": "7ff"}, usage: "0=SSSSSSSSSSS",
				more: files{
					"schemata": "L3DATA:0=7ff\nL3CODE:0=7ff", "mode": "shareable",
					"a/schemata": "L3DATA:0=7f0\nL3CODE:0=00f", "a/mode": "shareable", "a/cpus_list": "", "a/tasks": "",
				},
			},
			view: ResctrlView{AllTasks: true},
			groups: []ResctrlGroup{
				{
					Mode: ModeShareable, CPUs: cpuset.New(0, 1, 2, 3, 4, 5, 6, 7),
					Schemata: Schemata{Masks: []CacheMask{{"L3CODE", 0, 0x7ff}, {"L3DATA", 0, 0x7ff}}},
				},
				{Name: "a", Mode: ModeShareable, Tasks: NoTasks, Schemata: Schemata{Masks: []CacheMask{{"L3CODE", 0, 0xf}, {"L3DATA", 0, 0x7f0}}}},
			},
			usage: []WayUsage{{Resource: "L3CODE", Groups: 0x7ff}, {Resource: "L3DATA", Groups: 0x7ff}},
		},
		"MBps, without a limit": {
			machine: resctrlMachine{
				masks: map[string]string{"L3": "3"}, usage: "0=SS", bandwidths: percent,
				more: files{"schemata": "MB:0=4294967295;1=1024\nL3:0=3;1=1", "mode": "shareable"},
			},
			groups: []ResctrlGroup{{
				Mode: ModeShareable, CPUs: cpuset.New(0, 1, 2, 3, 4, 5, 6, 7),
				Schemata: Schemata{[]CacheMask{{"L3", 0, 3}, {"L3", 1, 1}}, []CacheBandwidth{{"MB", 0, maxBandwidth}, {"MB", 1, 1024}}},
			}},
			usage: []WayUsage{{Resource: "L3", Groups: 3}},
		},
		"two bandwidths in eighths of GB/s, and sparse masks": {
			machine: resctrlMachine{
				masks: map[string]string{"L3": "ffff"}, usage: "0=SSSSSSSSSSSSSSSS", bandwidths: map[string]string{"MB": "0 1 0", "SMBA": "0 1 0"},
				more: files{"schemata": "  SMBA:0=2048;1=2048\n    MB:0=2048;1=  16\n    L3:0=ffff;1=8001", "mode": "shareable"},
			},
			groups: []ResctrlGroup{{
				Mode: ModeShareable, CPUs: cpuset.New(0, 1, 2, 3, 4, 5, 6, 7),
				Schemata: Schemata{
					[]CacheMask{{"L3", 0, 0xffff}, {"L3", 1, 0x8001}},
					[]CacheBandwidth{{"MB", 0, 2048}, {"MB", 1, 16}, {"SMBA", 0, 2048}, {"SMBA", 1, 2048}},
				},
			}},
			usage: []WayUsage{{Resource: "L3", Groups: 0xffff}},
		},
		"ids of caches that are hashes, two levels, resources of later kernels": {
			machine: resctrlMachine{
				masks: map[string]string{"L2": "ff", "L3": "ffffffff"}, bandwidths: map[string]string{"MB": "1 1 1"},
				more: files{
					"info/kernel_mode": "default", "info/MB_NODE/something": "1",
					"schemata": "MB_NODE:0=x\nMB:7340032=100\nL3:7340032=ffffffff;2147483647=1\nL2:65536=ff;65792=f0", "mode": "shareable",
				},
			},
			groups: []ResctrlGroup{{
				Mode: ModeShareable, CPUs: cpuset.New(0, 1, 2, 3, 4, 5, 6, 7),
				Schemata: Schemata{
					[]CacheMask{{"L2", 65536, 0xff}, {"L2", 65792, 0xf0}, {"L3", 7340032, 0xffffffff}, {"L3", 2147483647, 1}},
					[]CacheBandwidth{{"MB", 7340032, 100}},
				},
			}},
		},
		"it can only count": {
			machine: resctrlMachine{monitors: true, more: files{"mon_groups/a/cpus_list": "1", "mon_data/mon_L3_00/llc_occupancy": "1"}},
			groups:  []ResctrlGroup{{CPUs: cpuset.New(0, 1, 2, 3, 4, 5, 6, 7), Monitors: []MonitorGroup{{"a", cpuset.New(1)}}}},
		},
		"locked groups, and one that is being locked": {
			machine: resctrlMachine{
				masks: map[string]string{"L3": "f"}, usage: "0=PP0S",
				more: files{
					"schemata": "L3:0=1", "mode": "shareable",
					"locked/schemata": "L3:0=c", "locked/mode": "pseudo-locked", "locked/cpus_list": "0-7", "locked/tasks": "",
					"offline/mode": "pseudo-locked", // the other files answer ENODEV
					"setup/mode":   "pseudo-locksetup", "setup/schemata": "L3:uninitialized", "setup/cpus_list": "", "setup/tasks": "",
				},
			},
			groups: []ResctrlGroup{
				{Mode: ModeShareable, CPUs: cpuset.New(0, 1, 2, 3, 4, 5, 6, 7), Schemata: Schemata{Masks: []CacheMask{{"L3", 0, 1}}}},
				{Name: "locked", Mode: ModeLocked, CPUs: cpuset.New(0, 1, 2, 3, 4, 5, 6, 7), Schemata: Schemata{Masks: []CacheMask{{"L3", 0, 0xc}}}},
				{Name: "offline", Mode: ModeLocked},
				{Name: "setup", Mode: ModeLockSetup},
			},
			usage: []WayUsage{{Resource: "L3", Locked: 0xc, Unused: 2, Groups: 1}},
		},
		"all CPUs of its caches are offline, a group is being removed": {
			machine: resctrlMachine{
				masks: map[string]string{"L3": "f"},
				more:  files{"schemata": "L3:", "mode": "shareable", "going/mode": "shareable", "gone/tasks": ""},
			},
			groups: []ResctrlGroup{{Mode: ModeShareable, CPUs: cpuset.New(0, 1, 2, 3, 4, 5, 6, 7)}},
		},
	} {
		state, err := ReadResctrl(row.machine.files().tree(), row.view)
		if err != nil || state == nil {
			t.Errorf("%s: ReadResctrl = %v, %v", name, state, err)
			continue
		}
		sameJSON(t, name+": groups", state.Groups, row.groups)
		sameJSON(t, name+": usage", state.Usage, row.usage)
		if online := state.Online(); online.String() != "0-7" {
			t.Errorf("%s: online %s", name, online)
		}
		for _, want := range row.groups {
			alone, err := ReadResctrlGroups(row.machine.files().tree(), row.view, state.Info, "", want.Name, "none", "info")
			if err != nil {
				t.Errorf("%s: group %q alone: %v", name, want.Name, err)
				continue
			}
			some := slices.Clone(row.groups[:1])
			if want.Name != "" {
				some = append(some, want)
			}
			for i := range some {
				some[i].Monitors = nil
			}
			sameJSON(t, name+": "+want.Name+" alone", alone, some)
			if again, found := state.Group(want.Name); !found || again.Mode != want.Mode {
				t.Errorf("%s: Group(%q) = %+v, %t", name, want.Name, again, found)
			}
		}
		if _, found := state.Group("none"); found {
			t.Errorf("%s: it has a group none", name)
		}
	}
}

func TestResctrlThatIsNotMounted(t *testing.T) {
	for name, root := range map[string]fs.FS{"empty": fstest.MapFS{}, "something else": files{"README": "x"}.tree()} {
		if state, err := ReadResctrl(root, ResctrlView{}); state != nil || err != nil {
			t.Errorf("%s: ReadResctrl = %+v, %v", name, state, err)
		}
	}
}

func TestGroupThatIsRemovedWhileItIsRead(t *testing.T) {
	root := resctrlMachine{
		masks: map[string]string{"L3": "f"},
		more:  files{"schemata": "L3:0=f", "mode": "shareable", "a/schemata": "L3:0=f", "a/mode": "shareable", "a/cpus_list": "1", "a/tasks": ""},
	}.files().tree()
	for _, name := range []string{"a/mode", "a/schemata", "a/tasks", "a/cpus_list"} {
		state, err := ReadResctrl(removing{root, name}, ResctrlView{})
		if err != nil || len(state.Groups) != 1 {
			t.Errorf("removed before %s is read: %+v, %v", name, state, err)
		}
	}
	root["a/cpus_list"].Data = []byte("x")
	if _, err := ReadResctrl(removing{root, "b"}, ResctrlView{}); err == nil || !strings.Contains(err.Error(), "a/cpus_list") {
		t.Errorf("ReadResctrl error = %v", err)
	}
}

// removing is a filesystem whose folder is removed after a file is opened. The kernel
// answers ENODEV for files that are open, and knows no others.
type removing struct {
	fstest.MapFS
	at string
}

func (r removing) Open(name string) (fs.File, error) {
	if path.Dir(name) == path.Dir(r.at) && name >= r.at {
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ENODEV}
	}
	if name == path.Dir(r.at)+"/cpus_list" { // read last
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return r.MapFS.Open(name)
}

func TestNonsenseInResctrlNamesItsFile(t *testing.T) {
	good := resctrlMachine{
		masks: map[string]string{"L3": "fff"}, usage: "0=SSSSSSSSSSSS", bandwidths: map[string]string{"MB": "10 10 1"},
		more: files{"schemata": "L3:0=fff\nMB:0=100", "mode": "shareable", "a/cpus_list": "1", "mon_groups/m/cpus_list": "1"},
	}
	for _, row := range []struct{ file, text, want string }{
		{"schemata", "L3 0=f", `want <resource>:<cache>=<value>`},
		{"schemata", "L3:0=f\nL3:0=f", "occurs twice"},
		{"schemata", "L3:0=f;0=f", "cache 0 comes after cache 0"},
		{"schemata", "L3:0", `"0" is not <cache>=<value>`},
		{"schemata", "L3:x=1", "is not the id of a cache"},
		{"schemata", "L3:-1=1", "is not the id of a cache"},
		{"schemata", "L3:2147483648=1", "is not the id of a cache"},
		{"schemata", "L3:0=1fff", "mask 1fff of cache 0: the cache has ways fff"},
		{"schemata", "L3:0=0xf", "is not a hexadecimal mask"},
		{"schemata", "MB:0=f", "is not a bandwidth"},
		{"schemata", "MB:0=4294967296", "is not a bandwidth"},
		{"mode", "wild", `"wild" is not the mode of a group`},
		{"a/cpus_list", "1-", "cpulist"},
		{"mon_groups/m/cpus_list", "x", "cpulist"},
		{"info/L3/cbm_mask", "x", "hexadecimal"},
		{"info/L3/bit_usage", "0=S", "describes 1 ways, want 12"},
		{"info/L3/bit_usage", "0=SSSSSSSSSSSs", "want 0, S, X, H, E or P"},
		{"info/L3/bit_usage", "SSSSSSSSSSSS", "is not <cache>=<value>"},
	} {
		f := good.files()
		f[row.file] = row.text
		state, err := ReadResctrl(f.tree(), ResctrlView{})
		if state != nil || err == nil || !strings.HasPrefix(err.Error(), "read "+row.file+": ") || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s %q: ReadResctrl = %v, %v; want %q", row.file, row.text, state, err, row.want)
		}
	}
}

func TestResctrlOptions(t *testing.T) {
	const others = "sysfs /sys sysfs rw,nosuid 0 0\n\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"
	for mounts, want := range map[string]string{
		others: "[] false", "": "[] false", "resctrl /a\\040b": "[] false",
		others + "resctrl /sys/fs/resctrl resctrl rw,relatime,cdp,mba_MBps 0 0\n": "[rw relatime cdp mba_MBps] true",
		"none /mnt resctrl rw\n": "[rw] true",
	} {
		options, found := ResctrlOptions(mounts)
		if got := fmt.Sprint(options, found); got != want {
			t.Errorf("ResctrlOptions(%q) = %s, want %s", mounts, got, want)
		}
	}
	percent := BandwidthAllocation{Name: "MB", MinBandwidth: 10, Granularity: 10, Linear: true}
	amd := BandwidthAllocation{Name: "SMBA", Granularity: 1}
	for got, want := range map[BandwidthUnit]BandwidthUnit{
		percent.Unit(nil): BandwidthPercent, percent.Unit([]string{"rw", "mba_MBps"}): BandwidthMBps, amd.Unit([]string{"mba_MBps"}): BandwidthEighthGBs,
	} {
		if got != want {
			t.Errorf("a bandwidth counts %s, want %s", got, want)
		}
	}
}

func TestPartOfSchemataIsWrittenAsTheKernelReadsIt(t *testing.T) {
	s := Schemata{
		[]CacheMask{{"L3", 10, 0xf0}, {"L2", 3, 1}, {"L3", 9, 0x800}},
		[]CacheBandwidth{{"SMBA", 0, 2048}, {"MB", 1, 40}, {"MB", 0, 100}},
	}
	s.Sort()
	if got, want := s.String(), "L2:3=1\nL3:9=800;10=f0\nMB:0=100;1=40\nSMBA:0=2048\n"; got != want {
		t.Errorf("written as %q, want %q", got, want)
	}
	if mask, found := s.Mask("L3", 10); mask != 0xf0 || !found {
		t.Errorf("Mask = %x, %t", mask, found)
	}
	if bandwidth, found := s.Bandwidth("MB", 1); bandwidth != 40 || !found {
		t.Errorf("Bandwidth = %d, %t", bandwidth, found)
	}
	_, mask := s.Mask("L2", 10)
	_, bandwidth := s.Bandwidth("L3", 10)
	if mask || bandwidth || s.IsEmpty() || !(Schemata{}).IsEmpty() || (Schemata{}).String() != "" {
		t.Errorf("what is not named: %t, %t; %q", mask, bandwidth, Schemata{})
	}
	if s = (Schemata{Bandwidths: s.Bandwidths[:1]}); s.String() != "MB:0=100\n" {
		t.Errorf("written as %q", s)
	}
}
