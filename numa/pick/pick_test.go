package pick

import (
	"errors"
	"sync"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

func TestChoiceIsTheBestFit(t *testing.T) {
	type row struct {
		name    string
		machine string // see parseMachine
		held    string // not free
		r       Request
		want    string
		why     string
	}
	check := func(t *testing.T, row row, idle string) {
		m := parseMachine(t, row.machine)
		if row.r.Zones == nil {
			row.r.Zones = []int{0}
		}
		free := m.Online.Difference(parseSet(t, row.held))
		got, err := New(m).Pick(free, row.r)
		if err != nil || got.CPUs.String() != row.want || got.Idle.String() != idle {
			t.Errorf("Pick(%s without %q, %+v) = %s, idle %s, %v; want %s, idle %s",
				row.machine, row.held, row.r, got.CPUs, got.Idle, err, row.want, idle)
		}
		if why := got.Why.String(); why != row.why {
			t.Errorf("Pick(%s without %q, %+v) because %q, want %q", row.machine, row.held, row.r, why, row.why)
		}
	}
	for _, row := range []row{
		{"nothing", "0-1 2-3", "", Request{}, "", "no cpus"},
		{"one core", "0-1 2-3", "", Request{CPUs: 2}, "0-1", "1 whole core in L3 0, the tightest with 4 free"},
		{
			"the only L3 that fits", "0-1 2-3 | 4-5 6-7 8-9 10-11", "",
			Request{CPUs: 8},
			"4-11",
			"4 whole cores in L3 1, the tightest with 8 free",
		},
		{
			"the L3 that fits tightest", "0-1 2-3 4-5 | 6-7 8-9 | 10-11 12-13 14-15", "",
			Request{CPUs: 4},
			"6-9",
			"2 whole cores in L3 1, the tightest with 4 free",
		},
		{
			"an L3 that a claim has opened", "0-1 2-3 | 4-5 6-7", "4-5",
			Request{CPUs: 2},
			"6-7",
			"1 whole core in L3 1, the tightest with 2 free",
		},
		{
			"a die that a claim has opened", "0-1 2-3 | 4-5 6-7 || 8-9 10-11 | 12-13 14-15", "8-9",
			Request{CPUs: 4},
			"12-15",
			"2 whole cores in L3 3, the tightest with 4 free",
		},
		{
			"the largest L3, then the tightest", "0-1 2-3 4-5 | 6-7 | 8-9 10-11", "",
			Request{CPUs: 8},
			"0-7",
			"4 whole cores in 2 L3s because none has 8 free",
		},
		{
			"one die rather than two", "0-1 2-3 4-5 || 6-7 8-9 | 10-11 12-13", "",
			Request{CPUs: 8},
			"6-13",
			"4 whole cores in 2 L3s because none has 8 free",
		},
		{
			"the tightest die", "0-1 | 2-3 | 4-5 || 6-7 | 8-9", "",
			Request{CPUs: 4},
			"6-9",
			"2 whole cores in 2 L3s because none has 4 free",
		},
		{
			"the tightest of the dies that have it alone",
			"0-1 2-3 4-5 | 6-7 8-9 10-11 || 12-13 14-15 16-17 | 18-19 20-21 22-23 | 24-25 26-27 | 28-29 30-31 || " +
				"32-33 34-35 36-37 | 38-39 40-41 42-43 | 44-45 46-47", "",
			Request{CPUs: 16},
			"32-47",
			"8 whole cores in 3 L3s because none has 16 free",
		},
		{
			"the thread whose sibling is held, if odd", "0-1 2-3 4-5", "2",
			Request{CPUs: 3},
			"0-1,3",
			"1 whole core and 1 cpu on broken cores in L3 0, the tightest with 5 free",
		},
		{
			"the L3 with the odd thread", "0-1 2-3 | 4-5 6-7", "4",
			Request{CPUs: 3},
			"5-7",
			"1 whole core and 1 cpu on broken cores in L3 1, the tightest with 3 free",
		},
		{
			"the odd thread from elsewhere", "0-1 2-3 | 4-5", "4",
			Request{CPUs: 3},
			"0-1,5",
			"1 whole core and 1 cpu on broken cores in 2 L3s to share fewer cores",
		},
		{
			"no broken core while a whole one is free", "0-1 2-3 4-5", "0,2",
			Request{CPUs: 2},
			"4-5",
			"1 whole core in L3 0, the tightest with 4 free",
		},
		{
			"a whole core in another L3 over broken ones", "0-1 2-3 | 4-5", "0,2",
			Request{CPUs: 2},
			"4-5",
			"1 whole core in L3 1, the tightest with 2 free",
		},
		{
			"two L3s for whole cores", "0-1 2-3 4-5 | 6-7", "0,2",
			Request{CPUs: 4},
			"4-7",
			"2 whole cores in 2 L3s because none has 2 whole cores free",
		},
		{
			"one half core, if odd and all are whole", "0-1 2-3", "",
			Request{CPUs: 3},
			"0-2",
			"1 whole core and 1 cpu of 1 core that it breaks in L3 0, the tightest with 4 free",
		},
		{
			"broken cores when nothing else is left", "0-1 2-3 4-5", "0,2,4",
			Request{CPUs: 2},
			"1,3",
			"2 cpus on broken cores because no whole core is free in L3 0, the tightest with 3 free",
		},
		{
			"all", "0-1 2-3 | 4-5", "3",
			Request{CPUs: 5},
			"0-2,4-5",
			"2 whole cores and 1 cpu on broken cores because no other whole core is free in 2 L3s because none has 5 free",
		},
		{
			"siblings far apart", "0,256 1,257 | 2,258", "",
			Request{CPUs: 4},
			"0-1,256-257",
			"2 whole cores in L3 0, the tightest with 4 free",
		},
		{
			"a core of one for the odd CPU", "0-1 2-3 4", "",
			Request{CPUs: 3},
			"0-1,4",
			"2 whole cores in L3 0, the tightest with 5 free",
		},
		{"no L3 at all", "~ 0-1 2-3", "", Request{CPUs: 2}, "0-1", "1 whole core"},
		{"the other zone", "0-1 2-3 / 4-5 6-7", "", Request{CPUs: 2, Zones: []int{1}}, "4-5", "1 whole core in L3 1, the tightest with 4 free"},

		{
			"threads on broken cores", "0-1 2-3 4-5", "0,2",
			Request{CPUs: 2, Cores: SingleThreads},
			"1,3",
			"2 cpus on broken cores in L3 0, the tightest with 4 free",
		},
		{
			"threads on broken cores, then on fresh ones", "0-1 2-3 | 4-5", "4",
			Request{CPUs: 2, Cores: SingleThreads},
			"0,5",
			"1 cpu on broken cores and 1 cpu of 1 core that it breaks in 2 L3s to fill broken cores first",
		},
		{
			"threads on as few fresh cores as possible", "0-1 2-3 4-5", "",
			Request{CPUs: 4, Cores: SingleThreads},
			"0-3",
			"2 whole cores in L3 0, the tightest with 6 free",
		},

		{
			"preferring one L3 to whole cores", "0-1 2-3 4-5 | 6-7", "0,2",
			Request{CPUs: 4, L3: PreferOneL3},
			"1,3-5",
			"1 whole core and 2 cpus on broken cores in L3 0, the tightest with 4 free",
		},
		{
			"preferring one L3, but not to break a core", "0-1 2-3 | 4-5", "4",
			Request{CPUs: 3, L3: PreferOneL3},
			"0-1,5",
			"1 whole core and 1 cpu on broken cores in 2 L3s to break no core",
		},
		{
			"requiring one L3 and breaking a core for it", "0-1 2-3 | 4-5", "4",
			Request{CPUs: 3, L3: RequireOneL3},
			"0-2",
			"1 whole core and 1 cpu of 1 core that it breaks in L3 0, the tightest with 4 free",
		},
		{
			"requiring one L3, not no L3", "~ 0-1 2-3 | 4-5 6-7 8-9", "",
			Request{CPUs: 4, L3: RequireOneL3},
			"4-7",
			"2 whole cores in L3 1, the tightest with 6 free",
		},

		{
			"performance cores", "0-1p 2-3p 4e 5e", "",
			Request{CPUs: 2, CoreType: numa.PerformanceCores},
			"0-1",
			"1 whole core in L3 0, the tightest with 4 free",
		},
		{
			"efficient cores", "0-1p 2-3p 4e 5e", "",
			Request{CPUs: 2, CoreType: numa.EfficientCores},
			"4-5",
			"2 whole cores in L3 0, the tightest with 2 free",
		},

		{
			"spread over dies, then L3s", "0-1 2-3 | 4-5 6-7 || 8-9 10-11 | 12-13 14-15", "",
			Request{CPUs: 6, Placement: Spread},
			"0-1,4-5,8-9", "3 whole cores in 3 L3s, spread evenly",
		},
		{
			"spread where there is room", "0-1 2-3 | 4-5 6-7", "0-3",
			Request{CPUs: 4, Placement: Spread},
			"4-7",
			"2 whole cores in L3 1, spread evenly",
		},
		{
			"spread in the preferred L3", "0-1 2-3 | 4-5 6-7", "",
			Request{CPUs: 4, Placement: Spread, L3: PreferOneL3},
			"0-3",
			"2 whole cores in L3 0, spread evenly",
		},

		{
			"isolated ones avoided", "0-1* 2-3* | 4-5 6-7", "",
			Request{CPUs: 2, Isolated: AvoidIsolated},
			"4-5",
			"1 whole core in L3 1, the tightest with 4 free",
		},
		{
			"isolated ones first", "0-1 2-3* | 4-5", "",
			Request{CPUs: 4, Isolated: PreferIsolated},
			"0-3",
			"2 whole cores in L3 0",
		},

		{
			"isolated ones first, then others of their L3", "0-1 2-3 4-5* | 6-7", "",
			Request{CPUs: 4, Isolated: PreferIsolated},
			"0-1,4-5",
			"2 whole cores in L3 0",
		},
		{
			"the one L3 with more isolated ones", "0-1 2-3 | 4-5* 6-7 8-9", "",
			Request{CPUs: 4, Isolated: PreferIsolated, L3: RequireOneL3},
			"4-7",
			"2 whole cores in L3 1",
		},

		{
			"evenly over zones", "0-1 2-3 4-5 / 6-7 8-9 10-11", "6",
			Request{CPUs: 7, Zones: []int{1, 0}},
			"0-3,7-9",
			"3 whole cores and 1 cpu on broken cores in 2 L3s of 2 zones",
		},
		{
			"more cores of the zone with more free", "0-1 2-3 / 4-5 6-7", "0-1",
			Request{CPUs: 6, Zones: []int{0, 1}},
			"2-7",
			"3 whole cores in 2 L3s of 2 zones",
		},
	} {
		t.Run(row.name, func(t *testing.T) { check(t, row, "") })
	}
	t.Run("one thread per core", func(t *testing.T) {
		check(t, row{
			machine: "0-1 2-3 4-5 | 6-7 8-9", held: "0",
			r: Request{CPUs: 2, Cores: OneThreadPerCore}, want: "2,4",
			why: "2 cores with 2 cpus kept idle in L3 0, the tightest with 2 cores free",
		}, "3,5")
	})
}

func TestTooManyIsErrNotEnough(t *testing.T) {
	const machine = "0-1p 2-3p* | 4e 5e* / 6 7"
	for _, row := range []struct {
		r    Request
		held string
		want string
	}{
		{Request{CPUs: 7, Zones: []int{0}}, "", "select 7 cpus of zone 0, which has 6 free: not enough free cpus"},
		{Request{CPUs: 1, Zones: []int{1}}, "6-7", "select 1 cpus of zone 1, which has 0 free: not enough free cpus"},
		{Request{CPUs: 4, Zones: []int{0}, Cores: OneThreadPerCore}, "1", "select 4 cpus of zone 0, which has 3 whole cores free: not enough free cpus"},
		{Request{CPUs: 5, Zones: []int{0}, L3: RequireOneL3}, "", "select 5 cpus of zone 0, which has 4 free in one L3: not enough free cpus"},
		{
			Request{CPUs: 5, Zones: []int{0}, CoreType: numa.PerformanceCores},
			"",
			"select 5 cpus of zone 0, which has 4 free on performance cores: not enough free cpus",
		},
		{
			Request{CPUs: 4, Zones: []int{0}, Isolated: AvoidIsolated},
			"",
			"select 4 cpus of zone 0, which has 3 free that are not isolated: not enough free cpus",
		},
		{
			Request{CPUs: 2, Zones: []int{0}, Isolated: AvoidIsolated, L3: RequireOneL3, Cores: OneThreadPerCore, CoreType: numa.EfficientCores},
			"",
			"select 2 cpus of zone 0, which has 1 whole core free in one L3 on efficient cores that are not isolated: not enough free cpus",
		},
		{Request{CPUs: 8, Zones: []int{0, 1}}, "", "select 4 cpus of zone 1, which has 2 free: not enough free cpus"},
	} {
		m := parseMachine(t, machine)
		got, err := New(m).Pick(m.Online.Difference(parseSet(t, row.held)), row.r)
		if !errors.Is(err, ErrNotEnough) || err.Error() != row.want || got != (Choice{}) {
			t.Errorf("Pick(%s without %q, %+v) = %s, %q; want %q", machine, row.held, row.r, got.CPUs, err, row.want)
		}
	}
}

func TestRequestThatMakesNoSenseIsAnError(t *testing.T) {
	m := parseMachine(t, "0-1 / 2-3")
	m.Zones[1].ID, m.Cores[1].Zone = 3, 3
	for want, r := range map[string]Request{
		"select -1 cpus of zone 0: the number is negative":                   {CPUs: -1, Zones: []int{0}},
		"select 1 cpus: no zone is named":                                    {CPUs: 1},
		"select 1 cpus of zone 7: no zone 7, the machine has zones 0, 3":     {CPUs: 1, Zones: []int{7}},
		"select 2 cpus of zones 0, 1: no zone 1, the machine has zones 0, 3": {CPUs: 2, Zones: []int{0, 1}},
		"select 2 cpus of zones 3, 3: zone 3 is named twice":                 {CPUs: 2, Zones: []int{3, 3}},
		"select 1 cpus of zone 0: cores 3: allowed are whole, thread, one-thread-per-core": {
			CPUs: 1, Zones: []int{0}, Cores: 3,
		},
		"select 1 cpus of zone 0: l3 9: allowed are any, prefer, require":     {CPUs: 1, Zones: []int{0}, L3: 9},
		"select 1 cpus of zone 0: placement 2: allowed are pack, spread":      {CPUs: 1, Zones: []int{0}, Placement: 2},
		"select 1 cpus of zone 0: isolated 3: allowed are any, avoid, prefer": {CPUs: 1, Zones: []int{0}, Isolated: 3},
		`select 1 cpus of zone 0: core type "mixed": allowed are standard, performance, efficient`: {
			CPUs: 1, Zones: []int{0}, CoreType: numa.MixedCores,
		},
	} {
		got, err := New(m).Pick(m.Online, r)
		if err == nil || err.Error() != want || errors.Is(err, ErrNotEnough) || got != (Choice{}) {
			t.Errorf("Pick(%+v) = %s, %v; want %s", r, got.CPUs, err, want)
		}
	}
}

func TestCPUsOfNoMachineAreIgnored(t *testing.T) {
	m := parseMachine(t, "0-1 / 2-3")
	p := New(m)
	all := parseSet(t, "0-8191")
	if got, err := p.Pick(all, Request{CPUs: 2, Zones: []int{1}}); err != nil || got.CPUs != cpuset.New(2, 3) {
		t.Errorf("Pick(2 of all CPUs that can be) = %s, %v; want 2-3", got.CPUs, err)
	}
	if got, err := p.Pick(all, Request{CPUs: 3, Zones: []int{1}}); !errors.Is(err, ErrNotEnough) {
		t.Errorf("Pick(3 of all CPUs that can be) = %s, %v; want ErrNotEnough", got.CPUs, err)
	}
}

func TestZoneWithoutCPUsHasNone(t *testing.T) {
	m := parseMachine(t, "0-1")
	m.Zones = append(m.Zones, numa.Zone{ID: 1, Kind: numa.CXLZone})
	p := New(m)
	if got, err := p.Pick(m.Online, Request{Zones: []int{1}}); err != nil || !got.CPUs.IsEmpty() {
		t.Errorf("Pick(0) = %s, %v; want none", got.CPUs, err)
	}
	if _, err := p.Pick(m.Online, Request{CPUs: 1, Zones: []int{1}}); !errors.Is(err, ErrNotEnough) {
		t.Errorf("Pick(1) = %v, want ErrNotEnough", err)
	}
}

func TestGrantsAreDisjointAndFillTheZone(t *testing.T) {
	m := uniform{1, 1, 1, 4, 4, 2}.machine()
	p, free, grants := New(m), m.Online, 0
	for {
		got, err := p.Pick(free, Request{CPUs: 4, Zones: []int{0}})
		if err != nil {
			break
		}
		if got.Why.WholeCores != 2 || got.Why.L3s != 1 {
			t.Errorf("grant %s is %s, want 2 whole cores in one L3", got.CPUs, got.Why)
		}
		free, grants = free.Difference(got.CPUs), grants+1
	}
	if grants != 8 || !free.IsEmpty() {
		t.Errorf("%d grants of 4, %s left; want 8 and none", grants, free)
	}
}

func TestPickerMayBeUsedConcurrently(t *testing.T) {
	m := uniform{2, 1, 2, 2, 8, 2}.machine()
	p, r := New(m), Request{CPUs: 13, Zones: []int{0, 1}}
	want, err := p.Pick(m.Online, r)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 100 {
				if got, err := p.Pick(m.Online, r); err != nil || got != want {
					t.Errorf("Pick = %s, %v; want %s", got.CPUs, err, want.CPUs)
				}
			}
		})
	}
	all.Wait()
}
