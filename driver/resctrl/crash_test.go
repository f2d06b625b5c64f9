package resctrl

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/resctrlfs"
)

// states are what a node should have at some moment.
var states = map[string]Wanted{
	"idle": wanted(group(0, l3(1, 1)), group(1, l3(1, 1)), group(2, l3(1, 1))),
	"claims": wanted(
		group(0, limited(l3(0x6, 1), 40, 100), 0, 1), group(1, limited(l3(0x38, 0x6), 60, 20), 2, 4, 5), group(2, l3(1, 0x38), 6, 7),
	),
	"they change places": wanted(
		group(0, limited(l3(0x38, 1), 50, 100), 0, 1), group(1, limited(l3(0x6, 0x38), 60, 30), 2, 4, 5), group(2, l3(1, 0x6), 6, 7),
	),
	"they are in a row and move up": wanted(
		group(0, limited(l3(0x18, 1), 40, 100), 0, 1), group(1, limited(l3(0xe0, 0xc), 60, 20), 2, 4, 5), group(2, l3(1, 0xf0), 6, 7),
	),
	"CPUs change places too": wanted(
		group(0, l3(0x38, 0x6), 2, 4, 5), group(1, l3(0x6, 0x38), 0, 1, 6, 7), group(2, l3(1, 1)),
	),
	"all CPUs of a cache are given": wanted(group(0, l3(0xf0, 1), 0, 1, 2, 3), group(1, l3(1, 0xf0), 4, 5, 6), group(2, l3(1, 1))),
	"the default group grows": {
		Default: l3(0x3f, 0x1), Caches: rigCaches,
		Groups: []Group{group(0, l3(0x40, 1), 0, 1), group(1, l3(0x380, 0x6), 2, 4, 5)},
	},
	"the default group moves to where others were": {
		Default: l3(0xff0, 0xf00), Caches: rigCaches,
		Groups: []Group{group(0, l3(0x3, 0xf), 0, 1, 4), group(1, l3(0xc, 0xf0), 2, 3, 5, 6, 7), group(4, l3(0xff0, 0xf00))},
	},
	"they share ways": wanted(group(0, l3(0xfe, 0x7e), 0, 4), group(1, l3(0xf0, 0x7e), 1, 5)),
	"groups of reserved CPUs": wanted(
		named("dpdk", limited(l3(0x6, 0x6), 50, 50), 0), named("db", l3(0x8, 0x8), 4), group(1, l3(0x70, 1), 1, 2), group(2, l3(1, 0xf0), 5, 6),
	),
	"groups of reserved CPUs grow and change CPUs": wanted(
		named("dpdk", limited(l3(0xe, 0xe), 30, 30), 4), named("db", l3(0x10, 0x10), 0, 3), group(1, l3(0xe0, 1), 1, 2), group(2, l3(1, 0x1e0), 5, 6),
	),
	"no group is left": {Default: l3(0xfff, 0xfff)},
}

// named is a group into which administrators may put tasks.
func named(word string, s numa.Schemata, cpus ...int) Group {
	return Group{Name: NameOf(word), Schemata: s, CPUs: cpuset.New(cpus...), Joined: true}
}

// watch compares the masks of groups after each change. It returns how many it saw.
func watch(t *testing.T, f *resctrlfs.FS, want Wanted, killAfter int) (changes *int) {
	t.Helper()
	before := overlaps(t, f, want)
	changes = new(int)
	f.Around(func(c resctrlfs.Change, effect func() error) error {
		if *changes == killAfter {
			panic(killed{})
		}
		*changes++
		err := effect()
		now := overlaps(t, f, want)
		for pair, ways := range now {
			if more := ways &^ before[pair]; more != 0 {
				t.Errorf("after change %d, %+v: %s share ways %x", *changes, c, pair, more)
			}
		}
		before = now
		return err
	})
	return changes
}

type killed struct{}

// untilKilled runs a job that a watch ends.
func untilKilled(job func() error) (err error) {
	defer func() {
		if p := recover(); p != nil && p != any(killed{}) {
			panic(p)
		}
	}()
	return job()
}

// overlaps returns, by two groups and a cache, the ways that both have although they
// should have none in common. Both have CPUs of the cache.
func overlaps(t *testing.T, f fs.FS, want Wanted) map[string]uint64 {
	t.Helper()
	pairs := map[string]uint64{}
	state, err := numa.ReadResctrl(f, numa.ResctrlView{})
	if err != nil {
		t.Fatal(err)
	}
	goal := func(name string, cache int, now uint64) uint64 {
		schemata := want.Default
		if name != "" {
			i := slices.IndexFunc(want.Groups, func(g Group) bool { return g.Name == name })
			if i < 0 {
				return 0
			}
			schemata = want.Groups[i].Schemata
		}
		if mask, found := schemata.Mask("L3", cache); found {
			return mask
		}
		return now
	}
	for _, cache := range rigCaches {
		for i, a := range state.Groups {
			for _, b := range state.Groups[:i] {
				mine, found := a.Schemata.Mask("L3", cache.ID)
				theirs, _ := b.Schemata.Mask("L3", cache.ID)
				if found && mine&theirs != 0 && a.CPUs.Overlaps(cache.CPUs) && b.CPUs.Overlaps(cache.CPUs) &&
					goal(a.Name, cache.ID, mine)&goal(b.Name, cache.ID, theirs) == 0 {
					pairs[fmt.Sprintf("in cache %d, %q and %q", cache.ID, a.Name, b.Name)] = mine & theirs
				}
			}
		}
	}
	return pairs
}

// repairKilled repairs the files until it is killed after some changes, and then again. It
// returns whether the first repair came to its end.
func repairKilled(t *testing.T, f *resctrlfs.FS, want Wanted, killAfter int) (done bool) {
	t.Helper()
	watch(t, f, want, killAfter)
	err := untilKilled(func() error {
		_, err := New(f, numa.ResctrlView{}).Repair(want)
		done = true
		return err
	})
	watch(t, f, want, -1)
	_, again := New(f, numa.ResctrlView{}).Repair(want)
	if err := errors.Join(err, again); err != nil {
		t.Error(err)
	}
	checkHas(t, f, want)
	return done
}

func TestKilledAfterAnyChangeConverges(t *testing.T) {
	for fromName, from := range states {
		for toName, to := range states {
			for killAfter, done := 0, fromName == toName; !done; killAfter++ {
				f := newFiles()
				mustRepair(t, f, from)
				done = repairKilled(t, f, to, killAfter)
				f.Around(nil)
				if t.Failed() {
					t.Fatalf("from %q to %q, killed after %d changes", fromName, toName, killAfter)
				}
			}
		}
	}
}

func TestRepairedWhateverHappened(t *testing.T) {
	want := states["claims"]
	for name, happens := range map[string]func(f *resctrlfs.FS) error{
		"a group is gone":        func(f *resctrlfs.FS) error { return f.Rmdir(Name(1)) },
		"the default group grew": func(f *resctrlfs.FS) error { return f.Write("schemata", "L3:0=fff;1=fff\n") },
		"all masks are full": func(f *resctrlfs.FS) error {
			return errors.Join(f.Write("schemata", "L3:0=fff;1=fff\n"), f.Write("dra-numa.0/schemata", "L3:0=fff;1=fff\n"), f.Write("dra-numa.1/schemata", "L3:0=fff;1=fff\n"))
		},
		"bandwidth":               func(f *resctrlfs.FS) error { return f.Write("dra-numa.0/schemata", "MB:0=100;1=10\n") },
		"CPUs went to the root":   func(f *resctrlfs.FS) error { return f.Write("dra-numa.0/cpus_list", "1\n") },
		"CPUs went to each other": func(f *resctrlfs.FS) error { return f.Write("dra-numa.0/cpus_list", "0-2,4-7\n") },
		"a group is exclusive":    func(f *resctrlfs.FS) error { return f.Write("dra-numa.1/mode", "exclusive\n") },
		"a CPU was offline":       func(f *resctrlfs.FS) error { f.SetOnline(1, false); f.SetOnline(1, true); return nil },
		"CPUs are offline":        func(f *resctrlfs.FS) error { f.SetOnline(1, false); f.SetOnline(4, false); return nil },
		"a cache was offline": func(f *resctrlfs.FS) error {
			for _, online := range []bool{false, true} {
				for cpu := range rigCaches[1].CPUs.All() {
					f.SetOnline(cpu, online)
				}
			}
			return nil
		},
		"a cache is offline": func(f *resctrlfs.FS) error {
			for cpu := range rigCaches[1].CPUs.All() {
				f.SetOnline(cpu, false)
			}
			return nil
		},
		"resctrl was mounted again": func(f *resctrlfs.FS) error {
			return errors.Join(f.Rmdir(Name(0)), f.Rmdir(Name(1)), f.Rmdir(Name(2)), f.Write("schemata", "MB:0=100;1=100\nL3:0=fff;1=fff\n"))
		},
	} {
		for killAfter, done := 0, false; !done; killAfter++ {
			f := newFiles()
			mustRepair(t, f, want)
			if err := happens(f); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			done = repairKilled(t, f, want, killAfter)
			for pair, ways := range overlaps(t, f, want) {
				t.Errorf("%s share ways %x", pair, ways)
			}
			if t.Failed() {
				t.Fatalf("%s, killed after %d changes", name, killAfter)
			}
		}
	}
}

func TestRefusedAtAnyChangeConverges(t *testing.T) {
	from, to := states["claims"], states["they change places"]
	for n, refused := 1, true; refused; n++ {
		f := newFiles()
		mustRepair(t, f, from)
		left := n
		f.Around(func(_ resctrlfs.Change, effect func() error) error {
			if left--; left == 0 {
				return errors.New("refused")
			}
			err := effect()
			for pair, ways := range overlaps(t, f, to) {
				t.Errorf("write %d is refused: %s share ways %x", n, pair, ways)
			}
			return err
		})
		_, err := New(f, numa.ResctrlView{}).Repair(to)
		if refused = left <= 0; refused != (err != nil) {
			t.Errorf("write %d is refused: %v", n, err)
		}
		if _, err := New(f, numa.ResctrlView{}).Repair(to); err != nil {
			t.Errorf("write %d was refused: %v", n, err)
		}
		checkHas(t, f, to)
	}
}

// randomWanted gives each cache to the default group and to up to four others, in any
// order, and CPUs to those that have ways of their own.
func randomWanted(random *rand.Rand) Wanted {
	const groups, ways = 4, 12
	want := Wanted{Caches: rigCaches}
	for n := range groups {
		want.Groups = append(want.Groups, group(n, numa.Schemata{}))
	}
	for id, cache := range rigCaches {
		var sizes [1 + groups]int // of the default group, then the others
		sizes[0] = 1
		for left := ways - 1; left > 0; left-- {
			if n := random.IntN(2 * len(sizes)); n < len(sizes) {
				sizes[n]++
			}
		}
		masks, low := [1 + groups]uint64{}, 0
		for _, n := range random.Perm(len(sizes)) {
			masks[n] = (1<<sizes[n] - 1) << low
			low += sizes[n]
		}
		want.Default.Masks = append(want.Default.Masks, numa.CacheMask{Resource: "L3", Cache: id, Mask: masks[0]})
		for n := range groups {
			g := &want.Groups[n]
			mask := masks[1+n]
			if mask == 0 {
				mask = masks[0] // it is idle there
			}
			g.Schemata.Masks = append(g.Schemata.Masks, numa.CacheMask{Resource: "L3", Cache: id, Mask: mask})
			g.Schemata.Bandwidths = append(g.Schemata.Bandwidths, numa.CacheBandwidth{Resource: "MB", Cache: id, Bandwidth: 10 * (1 + random.IntN(10))})
		}
		for cpu := range cache.CPUs.All() {
			if n := random.IntN(1 + groups); n > 0 && masks[n] != 0 {
				want.Groups[n-1].CPUs.Insert(cpu)
			}
		}
	}
	return want
}

func TestRandomChangesNeverOverlap(t *testing.T) {
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 0))
		f := newFiles()
		for range 20 {
			want := randomWanted(random)
			watch(t, f, want, random.IntN(20))
			err := untilKilled(func() error {
				_, err := New(f, numa.ResctrlView{}).Repair(want)
				return err
			})
			f.SetOnline(random.IntN(8), random.IntN(3) > 0)
			watch(t, f, want, -1)
			_, again := New(f, numa.ResctrlView{}).Repair(want)
			if err := errors.Join(err, again); err != nil {
				t.Error(err)
			}
			checkHas(t, f, want)
			if t.Failed() {
				t.Fatalf("seed %d: %+v", seed, want)
			}
		}
	}
}

// The fake has no separate masks for code and data, and no L2.
func TestPlanOfCodeAndData(t *testing.T) {
	info := numa.Resctrl{Caches: []numa.CacheAllocation{{Name: "L2", Mask: 0xff}, {Name: "L3CODE", Mask: 0xff}, {Name: "L3DATA", Mask: 0xff}}}
	masks := func(l2, code, data uint64) numa.Schemata {
		return numa.Schemata{Masks: []numa.CacheMask{{Resource: "L2", Cache: 3, Mask: l2}, {Resource: "L3CODE", Cache: 0, Mask: code}, {Resource: "L3DATA", Cache: 0, Mask: data}}}
	}
	state := numa.ResctrlState{Info: info, Groups: []numa.ResctrlGroup{
		{Mode: numa.ModeShareable, CPUs: cpuset.New(0, 1), Schemata: masks(0xff, 0x1, 0x1)},
		{Name: Name(0), Mode: numa.ModeShareable, CPUs: cpuset.New(2), Schemata: masks(0xff, 0x2, 0x4)},
		{Name: Name(1), Mode: numa.ModeShareable, CPUs: cpuset.New(3), Schemata: masks(0xff, 0x10, 0x20)},
	}}
	want := Wanted{Groups: []Group{
		{Name: Name(0), CPUs: cpuset.New(2), Schemata: masks(0xff, 0x4, 0x10)}, // data where the other has code
		{Name: Name(1), CPUs: cpuset.New(3), Schemata: masks(0x0f, 0x20, 0x40)},
	}}
	checkSteps := func(what string, steps []step, want ...string) {
		t.Helper()
		var got []string
		for _, s := range steps {
			got = append(got, s.name()+" <- "+oneLine(s.text))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: steps are %q, want %q", what, got, want)
		}
	}
	checkSteps("one after the other", newPlan(state, want, nil).steps,
		"dra-numa.1/schemata <- L2:3=f, L3CODE:0=20, L3DATA:0=40", "dra-numa.0/schemata <- L3CODE:0=4, L3DATA:0=10")

	swapped := Wanted{Groups: []Group{
		{Name: Name(0), CPUs: cpuset.New(2), Schemata: masks(0xff, 0x10, 0x20)},
		{Name: Name(1), CPUs: cpuset.New(3), Schemata: masks(0xff, 0x2, 0x4)},
	}}
	checkSteps("one is without CPUs meanwhile", newPlan(state, swapped, nil).steps,
		"dra-numa.0/cpus_list <- ", "dra-numa.0/schemata <- L3CODE:0=10, L3DATA:0=20", "dra-numa.1/schemata <- L3CODE:0=2, L3DATA:0=4", "dra-numa.0/cpus_list <- 2")

	swapped.Groups[0].Joined = true // its tasks are not seen
	checkSteps("the other is", newPlan(state, swapped, nil).steps,
		"dra-numa.1/cpus_list <- ", "dra-numa.0/schemata <- L3CODE:0=10, L3DATA:0=20", "dra-numa.1/schemata <- L3CODE:0=2, L3DATA:0=4", "dra-numa.1/cpus_list <- 3")

	state.Groups[2].Tasks = numa.HasTasks
	checkSteps("both have tasks", newPlan(state, swapped, nil).steps,
		"dra-numa.0/schemata <- L3CODE:0=10, L3DATA:0=20", "dra-numa.1/schemata <- L3CODE:0=2, L3DATA:0=4")

	p := newPlan(state, want, map[string]error{Name(1): errors.New("refused")})
	checkSteps("the one in the way was refused", p.steps)
	if err := p.errs[Name(0)]; err == nil || err.Error() != "L3 cache 0: group dra-numa.1 has ways 30: want 60" {
		t.Errorf("error of the other: %v", err)
	}
}
