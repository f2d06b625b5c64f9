package resctrl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
	"github.com/dra-driver-numa/dra-driver-numa/test/resctrlfs"
)

// rigCaches are those of the node: CPUs 0-3 and 4-7.
var rigCaches = []Cache{{"L3", 0, cpuset.New(0, 1, 2, 3)}, {"L3", 1, cpuset.New(4, 5, 6, 7)}}

func newFiles() *resctrlfs.FS { return resctrlfs.New(resctrlfs.Rig(resctrlfs.Linux72, len(rigCaches))) }

// l3 returns masks of the caches 0, 1 and so on.
func l3(masks ...uint64) (s numa.Schemata) {
	for id, mask := range masks {
		s.Masks = append(s.Masks, numa.CacheMask{Resource: "L3", Cache: id, Mask: mask})
	}
	return s
}

// limited adds bandwidths of the caches 0, 1 and so on.
func limited(s numa.Schemata, percents ...int) numa.Schemata {
	for id, percent := range percents {
		s.Bandwidths = append(s.Bandwidths, numa.CacheBandwidth{Resource: "MB", Cache: id, Bandwidth: percent})
	}
	return s
}

// wanted is a node whose default group has one way.
func wanted(groups ...Group) Wanted {
	return Wanted{Default: l3(1, 1), Groups: groups, Caches: rigCaches}
}

func group(n int, s numa.Schemata, cpus ...int) Group {
	return Group{Name: Name(n), Schemata: s, CPUs: cpuset.New(cpus...)}
}

func mustRepair(t *testing.T, f Files, want Wanted) Report {
	t.Helper()
	report, err := New(f, numa.ResctrlView{}).Repair(want)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// checkHas compares the files with what was wanted of them, except for CPUs and caches
// that are offline.
func checkHas(t *testing.T, f fs.FS, want Wanted) {
	t.Helper()
	state, err := numa.ReadResctrl(f, numa.ResctrlView{})
	if err != nil {
		t.Fatal(err)
	}
	ours := 0
	for _, g := range state.Groups {
		wish := Group{Schemata: want.Default}
		if g.Name != "" {
			i := slices.IndexFunc(want.Groups, func(w Group) bool { return w.Name == g.Name })
			if i < 0 {
				if IsOurs(g.Name) {
					t.Errorf("group %s is not wanted", g.Name)
				}
				continue
			}
			ours++
			wish = want.Groups[i]
			if cpus := wish.CPUs.Intersection(state.Online()); g.CPUs != cpus {
				t.Errorf("%s has cpus %s, want %s", g.Name, g.CPUs, cpus)
			}
		}
		for _, m := range wish.Schemata.Masks {
			if mask, online := g.Schemata.Mask(m.Resource, m.Cache); online && mask != m.Mask {
				t.Errorf("%q has ways %x of cache %d, want %x", g.Name, mask, m.Cache, m.Mask)
			}
		}
		for _, b := range wish.Schemata.Bandwidths {
			now, online := g.Schemata.Bandwidth(b.Resource, b.Cache)
			if online && now != b.Bandwidth {
				t.Errorf("%q has bandwidth %d of cache %d, want %d", g.Name, now, b.Cache, b.Bandwidth)
			}
		}
	}
	if ours != len(want.Groups) {
		t.Errorf("%d of %d groups exist", ours, len(want.Groups))
	}
}

// With mba_MBps, bandwidths count MBps, and bandwidth_gran is still a percentage.
func TestAnyOtherBandwidthIsWritten(t *testing.T) {
	info := numa.Resctrl{Bandwidths: []numa.BandwidthAllocation{{Name: "MB", MinBandwidth: 10, Granularity: 10}}}
	has := func(bandwidth int) numa.Schemata {
		return numa.Schemata{Bandwidths: []numa.CacheBandwidth{{Resource: "MB", Bandwidth: bandwidth}}}
	}
	for now, want := range map[int]int{4999: 1, 5000: 0, 5003: 1, 5010: 1} {
		m, err := newMember(info, numa.ResctrlGroup{Schemata: has(now)}, Group{Schemata: has(5000)})
		if err != nil || len(m.bandwidths) != want {
			t.Errorf("%d instead of 5000: writes %v, %v, want %d", now, m.bandwidths, err, want)
		}
	}
}

func TestGroupsGetWhatIsWanted(t *testing.T) {
	f := newFiles()
	want := wanted(
		group(0, limited(l3(0x6, 0x1), 40, 100), 0, 1),
		group(1, limited(l3(0x38, 0xf0), 40), 2, 4, 5),
		group(2, l3(1, 1)),
	)
	report := mustRepair(t, f, want)
	checkHas(t, f, want)
	wrote := []string{
		"mkdir dra-numa.0", "mkdir dra-numa.1", "mkdir dra-numa.2",
		"schemata <- L3:0=1;1=1",
		"dra-numa.0/schemata <- L3:0=6;1=1, MB:0=40", "dra-numa.1/schemata <- L3:0=38;1=f0, MB:0=40", "dra-numa.2/schemata <- L3:0=1;1=1",
		"dra-numa.0/cpus_list <- 0-1", "dra-numa.1/cpus_list <- 2,4-5",
	}
	if !slices.Equal(report.Wrote, wrote) {
		t.Errorf("wrote\n%s\nwant\n%s", strings.Join(report.Wrote, "\n"), strings.Join(wrote, "\n"))
	}
	granted, _ := report.State.Group(Name(1))
	if percent, _ := granted.Schemata.Bandwidth("MB", 0); percent != 40 || granted.CPUs.String() != "2,4-5" {
		t.Errorf("the kernel granted %+v", granted)
	}
	if report := mustRepair(t, f, want); len(report.Wrote) > 0 {
		t.Errorf("the second time it wrote %q", report.Wrote)
	}
}

func TestGroupWithoutAClassIsMissing(t *testing.T) {
	f := newFiles() // 8 classes, one of the default group
	want := wanted()
	for n := range 9 {
		want.Groups = append(want.Groups, group(n, l3(1, 1)))
	}
	report, err := New(f, numa.ResctrlView{}).Repair(want)
	if err != nil || len(report.Missing) != 2 || report.Missing[0].Group != Name(7) || !errors.Is(report.Missing[1].Why, syscall.ENOSPC) ||
		!strings.HasSuffix(report.Missing[1].Why.Error(), "Out of CLOSIDs") {
		t.Errorf("Repair = %v, missing %v", err, report.Missing)
	}
	want.Groups[8].CPUs = cpuset.New(1)
	if _, err := New(f, numa.ResctrlView{}).Repair(want); err == nil || !strings.Contains(err.Error(), "group dra-numa.8: mkdir dra-numa.8: no space left on device: Out of CLOSIDs") {
		t.Errorf("with CPUs: %v", err)
	}
	if _, err := New(f, numa.ResctrlView{}).Apply(wanted(group(8, l3(1, 1)))); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), Name(8)) {
		t.Errorf("Apply to a missing group: %v", err)
	}
}

func TestCounterThatIsNotFreeYet(t *testing.T) {
	m := resctrlfs.Rig(resctrlfs.Linux612, 2)
	m.RMIDs = 3
	f := resctrlfs.New(m)
	mustRepair(t, f, wanted(group(0, l3(1, 1)), group(1, l3(1, 1))))
	mustRepair(t, f, wanted(group(0, l3(1, 1))))
	host := New(f, numa.ResctrlView{})
	report, err := host.Repair(wanted(group(0, l3(1, 1)), group(1, l3(1, 1))))
	if err != nil || len(report.Missing) != 1 || !errors.Is(report.Missing[0].Why, syscall.EBUSY) {
		t.Errorf("Repair = %v, missing %v", err, report.Missing)
	}
	f.Settle()
	if report := mustRepair(t, f, wanted(group(0, l3(1, 1)), group(1, l3(1, 1)))); len(report.Missing) != 0 {
		t.Errorf("missing %v", report.Missing)
	}
}

func TestClaimIsAppliedAndReleased(t *testing.T) {
	f := newFiles()
	idle := wanted(group(0, l3(1, 1)), group(1, l3(1, 1)))
	mustRepair(t, f, idle)
	host := New(f, numa.ResctrlView{})
	claim := group(1, limited(l3(0x6, 1), 30), 1, 2)
	report, err := host.Apply(Wanted{Groups: []Group{claim}, Caches: rigCaches})
	if err != nil || strings.Join(report.Wrote, "\n") != "dra-numa.1/schemata <- L3:0=6, MB:0=30\ndra-numa.1/cpus_list <- 1-2" {
		t.Errorf("Apply = %v, wrote %q", err, report.Wrote)
	}
	checkHas(t, f, wanted(idle.Groups[0], claim))
	second := claim // of another cache
	second.Schemata, second.CPUs = l3(0x6, 0x30), cpuset.New(1, 2, 6)
	if _, err := host.Apply(Wanted{Groups: []Group{second}, Caches: rigCaches}); err != nil {
		t.Error(err)
	}
	checkHas(t, f, wanted(idle.Groups[0], second))
	released := group(1, limited(l3(1, 0x30), 100), 6)
	report, err = host.Apply(Wanted{Groups: []Group{released}, Caches: rigCaches})
	if err != nil || strings.Join(report.Wrote, "\n") != "dra-numa.1/cpus_list <- 6\ndra-numa.1/schemata <- L3:0=1, MB:0=100" {
		t.Errorf("released: %v, wrote %q", err, report.Wrote)
	}
	if report, err := host.Apply(Wanted{Default: l3(3, 1)}); err != nil || strings.Join(report.Wrote, "\n") != "schemata <- L3:0=3" {
		t.Errorf("the default group alone: %v, wrote %q", err, report.Wrote)
	}
}

func TestGroupsOfOthersStayAsTheyAre(t *testing.T) {
	f := newFiles()
	want := wanted(group(0, l3(0x6, 0x6), 4, 5))
	if err := errors.Join(
		f.Mkdir("other"), f.Mkdir("dra-numa.X"), f.Mkdir("dra-numa.01"),
		f.Write("other/cpus_list", "5-6"), f.Write("other/schemata", "L3:1=f00\n"),
	); err != nil {
		t.Fatal(err)
	}
	f.Around(func(c resctrlfs.Change, effect func() error) error {
		if name, _, _ := strings.Cut(c.Name, "/"); name != Name(0) && c.Name != schemataFile {
			t.Errorf("it changes %+v", c)
		}
		return effect()
	})
	for range 2 {
		_, err := New(f, numa.ResctrlView{}).Repair(want)
		if err == nil || err.Error() != `group dra-numa.0: group "other" has cpus 5` {
			t.Errorf("Repair error = %v", err)
		}
		if _, err := New(f, numa.ResctrlView{}).Apply(want); err == nil {
			t.Error("Apply takes CPUs of another group")
		}
	}
	less := want
	less.Groups = []Group{group(0, l3(0x6, 0x6), 4)}
	checkHas(t, f, less)
	for _, name := range []string{"other", "dra-numa.X", "dra-numa.01"} {
		if _, err := fs.Stat(f, name); err != nil {
			t.Error(err)
		}
	}
}

func TestNamesOfOurGroups(t *testing.T) {
	for name, want := range map[string]bool{
		Name(0): true, Name(1<<16 + 1): true, NameOf("a"): true, NameOf("db-2"): true,
		"": false, "dra-numa": false, "dra-numa.": false, "dra-numa.01": false, "dra-numa.-1": false, "dra-numa.2a": false,
		"dra-numa.A": false, "dra-numa.a_b": false, "dra-numa.a\n": false, "xdra-numa.a": false, "dra-numa/a": false,
	} {
		if got := IsOurs(name); got != want {
			t.Errorf("%q is ours: %t", name, got)
		}
	}
	if IsNamed(Name(3)) {
		t.Error("a number is a name that the operator gave")
	}
}

func TestKernelIsAskedForExclusiveWays(t *testing.T) {
	f := newFiles()
	one := group(0, l3(0x6, 0x6), 1)
	one.Exclusive = true
	want := wanted(one)
	report := mustRepair(t, f, want)
	if mode, err := fs.ReadFile(f, "dra-numa.0/mode"); string(mode) != "exclusive\n" || err != nil || len(report.Shared) > 0 {
		t.Errorf("mode %q, %v; %v", mode, err, report.Shared)
	}
	want.Groups[0].Schemata = l3(0x30, 0x6)
	mustRepair(t, f, want)
	checkHas(t, f, want)
	if report := mustRepair(t, f, want); len(report.Wrote) > 0 {
		t.Errorf("the second time it wrote %q", report.Wrote)
	}
	want.Groups[0].Schemata = l3(0xc00, 0x6) // devices use them
	report = mustRepair(t, f, want)
	checkHas(t, f, want)
	if len(report.Shared) != 1 || report.Shared[0].Group != Name(0) || !strings.HasSuffix(report.Shared[0].Why.Error(), "Schemata overlaps") {
		t.Errorf("shared: %v", report.Shared)
	}
	want.Groups[0].Exclusive, want.Groups[0].Schemata = false, l3(0x6, 0x6)
	mustRepair(t, f, want)
	if err := f.Write("dra-numa.0/mode", "exclusive\n"); err != nil {
		t.Fatal(err)
	}
	mustRepair(t, f, want)
	if mode, _ := fs.ReadFile(f, "dra-numa.0/mode"); string(mode) != "shareable\n" {
		t.Errorf("mode %q", mode)
	}
}

func TestOneGroupThatIsRefusedDoesNotStopTheOthers(t *testing.T) {
	f := newFiles()
	if err := errors.Join(f.Mkdir("other"), f.Write("schemata", "L3:0=ff;1=ff\n"), f.Write("other/schemata", "L3:0=300;1=300\n"), f.Write("other/mode", "exclusive\n")); err != nil {
		t.Fatal(err)
	}
	want := wanted(group(0, l3(0x300, 6), 1), group(1, l3(6, 0x38), 2), group(2, l3(0x30, 0x100), 3), group(3, l3(0x40, 0x40), 4))
	_, err := New(f, numa.ResctrlView{}).Repair(want)
	if err == nil || !errors.Is(err, syscall.EINVAL) {
		t.Fatalf("Repair error = %v", err)
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 2 || lines[0] != `group dra-numa.0: write "L3:0=300;1=6" to dra-numa.0/schemata: write dra-numa.0/schemata: invalid argument: Overlaps with exclusive group` || !strings.HasPrefix(lines[1], "group dra-numa.2: ") {
		t.Errorf("Repair error = %v", err)
	}
	for name, cpus := range map[string]string{Name(0): "\n", Name(1): "2\n", Name(2): "\n", Name(3): "4\n"} {
		if text, err := fs.ReadFile(f, name+"/cpus_list"); err != nil || string(text) != cpus {
			t.Errorf("%s has cpus %q, %v; want %q", name, text, err, cpus)
		}
	}
	if err := f.Rmdir("other"); err != nil {
		t.Fatal(err)
	}
	mustRepair(t, f, want)
	checkHas(t, f, want)
}

func TestWhatTheKernelGrantsIsReadBack(t *testing.T) {
	f := newFiles()
	f.Around(func(c resctrlfs.Change, effect func() error) error {
		if c.Name == "dra-numa.0/cpus_list" {
			return nil // accepted, and not done
		}
		return effect()
	})
	_, err := New(f, numa.ResctrlView{}).Repair(wanted(group(0, l3(6, 6), 1), group(1, l3(0x30, 0x30), 2)))
	if err == nil || err.Error() != `group dra-numa.0: dra-numa.0/cpus_list reads "": want "1"` {
		t.Errorf("Repair error = %v", err)
	}
}

func TestMasksMoveInOrderOrNotAtAll(t *testing.T) {
	start := wanted(group(0, l3(0x6, 1), 0), group(1, limited(l3(0x38, 1), 50), 1), group(2, l3(0xc0, 1), 2))
	moves := []Move{{Name(0), l3(0xe)}, {Name(1), limited(l3(0x30), 70)}, {Name(2), l3(0x300)}, {"", l3(0x1, 0x3)}}
	f := newFiles()
	mustRepair(t, f, start)
	host := New(f, numa.ResctrlView{})
	for range 2 {
		if err := host.Move(moves); err != nil {
			t.Error(err)
		}
		moved := wanted(group(0, l3(0xe, 1), 0), group(1, limited(l3(0x30, 1), 70), 1), group(2, l3(0x300, 1), 2))
		moved.Default = l3(1, 3)
		checkHas(t, f, moved)
	}
	for n := 1; n <= len(moves); n++ {
		f := newFiles()
		mustRepair(t, f, start)
		f.Fail(n, syscall.EIO)
		err := New(f, numa.ResctrlView{}).Move(moves)
		if !errors.Is(err, syscall.EIO) || strings.Contains(err.Error(), "back") {
			t.Errorf("write %d fails: %v", n, err)
		}
		checkHas(t, f, start)
	}
	for _, moves := range [][]Move{
		{{Name(0), l3(0xe)}, {Name(3), l3(1)}},
		{{Name(0), l3(0xe)}, {"other", l3(1)}},
		{{Name(0), l3(0xe)}, {Name(1), l3(0x5)}},
		{{Name(0), l3(0xe)}, {Name(1), numa.Schemata{Masks: []numa.CacheMask{{Resource: "L2", Mask: 1}}}}},
		{{Name(0), l3(0xe)}, {Name(1), numa.Schemata{Bandwidths: []numa.CacheBandwidth{{Resource: "SMBA", Bandwidth: 1}}}}},
	} {
		f := newFiles()
		mustRepair(t, f, start)
		if err := New(f, numa.ResctrlView{}).Move(moves); err == nil || !strings.HasPrefix(err.Error(), "move masks of group "+moves[1].Group) {
			t.Errorf("Move error = %v", err)
		}
		checkHas(t, f, start)
	}
}

func TestMasksThatCannotBePutBackAreNamed(t *testing.T) {
	f := newFiles()
	mustRepair(t, f, wanted(group(0, l3(0x6, 1), 0), group(1, l3(0x38, 1), 1)))
	n := 0
	f.Around(func(_ resctrlfs.Change, effect func() error) error {
		if n++; n > 1 {
			return syscall.EIO
		}
		return effect()
	})
	err := New(f, numa.ResctrlView{}).Move([]Move{{Name(0), l3(0xe)}, {Name(1), l3(0x30)}})
	if err == nil || !strings.Contains(err.Error(), "move masks of group dra-numa.1: ") || !strings.Contains(err.Error(), "put masks of group dra-numa.0 back: ") {
		t.Errorf("Move error = %v", err)
	}
}

func TestNonsenseIsRefusedBeforeAWrite(t *testing.T) {
	f := newFiles()
	f.Around(func(c resctrlfs.Change, _ func() error) error { return fmt.Errorf("it changes %+v", c) })
	for want, w := range map[string]Wanted{
		`group "other": want a name such as dra-numa.0`:          {Groups: []Group{{Name: "other"}}},
		`group "": want a name such as dra-numa.0`:               {Groups: []Group{{}}},
		`group "dra-numa.0/../a": want a name such`:              {Groups: []Group{{Name: "dra-numa.0/../a"}}},
		"group dra-numa.1 occurs twice":                          {Groups: []Group{group(1, l3(1)), group(1, l3(1))}},
		"group dra-numa.1: another group has cpus 3":             {Groups: []Group{group(0, l3(1), 3), group(1, l3(1), 3, 4)}},
		"the default group: L2 cannot be shared out":             {Default: numa.Schemata{Masks: []numa.CacheMask{{Resource: "L2"}}}},
		"the default group: bandwidth SMBA cannot be limited on": {Default: numa.Schemata{Bandwidths: []numa.CacheBandwidth{{Resource: "SMBA"}}}},
	} {
		for name, call := range map[string]func(*Host) (Report, error){
			"Apply": func(h *Host) (Report, error) { return h.Apply(w) }, "Repair": func(h *Host) (Report, error) { return h.Repair(w) },
		} {
			if _, err := call(New(f, numa.ResctrlView{})); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s error = %v, want %s", name, err, want)
			}
		}
	}
}

func TestNotMounted(t *testing.T) {
	dir := t.TempDir()
	host := On(dir, numa.ResctrlView{})
	_, read := host.Read()
	_, apply := host.Apply(wanted(group(0, l3(1))))
	_, repair := host.Repair(wanted(group(0, l3(1))))
	for _, err := range []error{read, apply, repair, host.Move([]Move{{Name(0), l3(1)}})} {
		if !errors.Is(err, ErrNotMounted) {
			t.Errorf("error = %v", err)
		}
	}
	if entries, err := os.ReadDir(dir); len(entries) > 0 || err != nil {
		t.Errorf("the folder has %v, %v", entries, err)
	}
}

func TestFilesOfAFolder(t *testing.T) {
	dir := t.TempDir()
	f := On(dir, numa.ResctrlView{}).files
	files.Write(t, filepath.Join(dir, "schemata"), "L3:0=f\n")
	if err := errors.Join(f.Mkdir("a"), f.Mkdir("b"), f.Rmdir("b"), f.Write("schemata", "L3:0=1\n")); err != nil {
		t.Error(err)
	}
	if got := files.Tree(t, dir); len(got) != 3 || got["schemata"] != "L3:0=1\n" || got["a"] != "folder" {
		t.Errorf("the folder has %q", got)
	}
	if err := f.Write("a/schemata", "x"); !errors.Is(err, fs.ErrNotExist) { // the kernel makes the files
		t.Errorf("write to a file that is not there: %v", err)
	}
	if err := fstest.TestFS(f, "schemata", "a"); err != nil {
		t.Error(err)
	}
}
