package uncore

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/sysfs"
)

// cores returns those of two packages with two dies each. A die has two CPUs.
func cores() (list []numa.Core) {
	for id := range 4 {
		list = append(list, numa.Core{Socket: new(id / 2), Die: new(id % 2), CPUs: cpuset.New(2*id, 2*id+1)})
	}
	return list
}

// machine returns a host with these dies.
func machine(uncore sysfs.Uncore) (*sysfs.PowerHost, *Host) {
	kernel := sysfs.NewPowerHost(sysfs.Power{CPUs: 8, Uncore: uncore})
	return kernel, New(kernel, kernel.Write)
}

func dies(t testing.TB, host *Host) []numa.UncoreDie {
	t.Helper()
	read, err := host.Read()
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestEachDieOfTheCPUsHasADemand(t *testing.T) {
	first, last := ID{0, 0}, ID{1, 1}
	for name, row := range map[string]struct {
		uncore sysfs.Uncore
		cpus   cpuset.Set
		text   string
		want   []Demand
		err    string
	}{
		"one die":                  {sysfs.Uncore{Packages: 2, Dies: 2}, cpuset.New(0, 1), "2GHz", []Demand{{first, 2_000_000, 0}}, ""},
		"two packages":             {sysfs.Uncore{Packages: 2, Dies: 2}, cpuset.New(0, 7), "max", []Demand{{first, 2_400_000, 0}, {last, 2_400_000, 0}}, ""},
		"the lowest one":           {sysfs.Uncore{Packages: 2, Dies: 2}, cpuset.New(7), "min", []Demand{{last, 800_000, 0}}, ""},
		"up to the next multiple":  {sysfs.Uncore{Packages: 2, Dies: 2}, cpuset.New(7), "1.21GHz", []Demand{{last, 1_300_000, 0}}, ""},
		"a package as a whole":     {sysfs.Uncore{Packages: 2, Dies: 1}, cpuset.New(4, 6), "1GHz", []Demand{{ID{1, 0}, 1_000_000, 0}}, ""},
		"too fast":                 {sysfs.Uncore{Packages: 2, Dies: 2}, cpuset.New(7), "2.5GHz", nil, `"2.5GHz" is 2.5GHz, die 1 of package 1 has 800MHz to 2.4GHz`},
		"too slow":                 {sysfs.Uncore{Packages: 2, Dies: 2}, cpuset.New(7), "700MHz", nil, `"700MHz" is 700MHz, die 1 of package 1 has 800MHz to 2.4GHz`},
		"a multiple of base":       {sysfs.Uncore{Packages: 2, Dies: 2}, cpuset.New(7), "1x base", nil, `"1x base", want a frequency such as 2.4GHz or 800MHz, or min, max`},
		"a package without driver": {sysfs.Uncore{Packages: 1, Dies: 2}, cpuset.New(6, 7), "2GHz", nil, "the uncore driver of the kernel has no die for cpus 6-7"},
		"no driver":                {sysfs.Uncore{}, cpuset.New(7), "2GHz", nil, errNoDriver.Error()},
	} {
		_, host := machine(row.uncore)
		got, err := Resolve(dies(t, host), cores(), row.cpus, row.text)
		if !reflect.DeepEqual(got, row.want) || (err == nil) != (row.err == "") || err != nil && err.Error() != row.err {
			t.Errorf("%s: %+v, %v, want %+v, %s", name, got, err, row.want, row.err)
		}
	}
	if _, err := Resolve([]numa.UncoreDie{{LowestKHz: 1, HighestKHz: 2}}, []numa.Core{{CPUs: cpuset.New(3)}}, cpuset.New(3), "min"); err == nil || !strings.HasSuffix(err.Error(), "no die for cpus 3") {
		t.Errorf("a core of no known package: error %v", err)
	}
}

func TestPlan(t *testing.T) {
	id, other := ID{0, 1}, ID{1, 0}
	asks := func(kHz ...int) (demands []Demand) {
		for _, one := range kHz {
			demands = append(demands, Demand{ID: id, WantKHz: one})
		}
		return append(demands, Demand{ID: other, WantKHz: 1_000_000})
	}
	have := func(minimum, maximum int) numa.UncoreDie {
		return numa.UncoreDie{Die: 1, LowestKHz: 800_000, HighestKHz: 2_400_000, MinKHz: minimum, MaxKHz: maximum}
	}
	for name, row := range map[string]struct {
		die     numa.UncoreDie
		held    []Held
		demands []Demand
		want    []Held
		writes  []Write
	}{
		"nothing asked, nothing held": {die: have(800_000, 2_400_000), demands: asks()},
		"the first claim": {
			die: have(900_000, 2_400_000), demands: asks(2_000_000),
			want: []Held{{id, 900_000, 900_000, 2_000_000, 0}}, writes: []Write{{id, 2_000_000}},
		},
		"the highest of several": {
			die: have(1_200_000, 2_400_000), held: []Held{{id, 900_000, 0, 1_200_000, 1_200_000}}, demands: asks(1_200_000, 2_000_000, 1_500_000),
			want: []Held{{id, 900_000, 1_200_000, 2_000_000, 0}}, writes: []Write{{id, 2_000_000}},
		},
		"not above the highest frequency": {
			die: have(900_000, 1_800_000), demands: asks(2_000_000),
			want: []Held{{id, 900_000, 900_000, 1_800_000, 0}}, writes: []Write{{id, 1_800_000}},
		},
		"not below what it was": {die: have(1_400_000, 2_400_000), demands: asks(1_000_000), want: []Held{{id, 1_400_000, 0, 1_400_000, 1_400_000}}},
		"one of two ends, the other asks for less than it was": {
			die: have(2_000_000, 2_400_000), held: []Held{{id, 1_400_000, 0, 2_000_000, 2_000_000}}, demands: asks(1_000_000),
			want: []Held{{id, 1_400_000, 2_000_000, 1_400_000, 0}}, writes: []Write{{id, 1_400_000}},
		},
		"it is so already": {die: have(2_000_000, 2_400_000), demands: asks(2_000_000), want: []Held{{id, 2_000_000, 0, 2_000_000, 2_000_000}}},
		"the kernel makes less of it": {
			die: have(1_900_000, 2_400_000), held: []Held{{id, 900_000, 0, 2_000_000, 1_900_000}}, demands: asks(2_000_000),
			want: []Held{{id, 900_000, 0, 2_000_000, 1_900_000}},
		},
		"the last claim ends": {
			die: have(2_000_000, 2_400_000), held: []Held{{id, 900_000, 0, 2_000_000, 2_000_000}}, demands: asks(),
			want: []Held{{id, 900_000, 2_000_000, 900_000, 0}}, writes: []Write{{id, 900_000}},
		},
		"one ends before its write": {
			die: have(900_000, 2_400_000), held: []Held{{id, 900_000, 900_000, 2_000_000, 0}}, demands: asks(),
			want: []Held{{id, 900_000, 0, 900_000, 900_000}},
		},
		"another program's value stays": {
			die: have(1_400_000, 2_400_000), held: []Held{{id, 900_000, 0, 2_000_000, 2_000_000}}, demands: asks(),
			want: []Held{{id, 1_400_000, 0, 1_400_000, 1_400_000}},
		},
		"another program's value is the first one of the next claim": {
			die: have(1_400_000, 2_400_000), held: []Held{{id, 900_000, 0, 2_000_000, 2_000_000}}, demands: asks(2_000_000),
			want: []Held{{id, 1_400_000, 1_400_000, 2_000_000, 0}}, writes: []Write{{id, 2_000_000}},
		},
		"what was there before the last write is another program's": {
			die: have(1_200_000, 2_400_000), held: []Held{{id, 900_000, 0, 2_000_000, 2_000_000}}, demands: asks(),
			want: []Held{{id, 1_200_000, 0, 1_200_000, 1_200_000}},
		},
		"a die that is missing stays on record": {
			die: numa.UncoreDie{Package: 5, MinKHz: 1, MaxKHz: 1}, held: []Held{{id, 900_000, 0, 2_000_000, 2_000_000}}, demands: asks(),
			want: []Held{{id, 900_000, 0, 2_000_000, 2_000_000}},
		},
	} {
		next, writes := Plan([]numa.UncoreDie{row.die}, row.held, row.demands)
		if !slices.Equal(next, row.want) || !slices.Equal(writes, row.writes) {
			t.Errorf("%s: held %+v, writes %+v, want %+v, %+v", name, next, writes, row.want, row.writes)
		}
	}
}

func TestOnlyDiesWithADemandStayHeld(t *testing.T) {
	held := []Held{{ID{0, 0}, 800_000, 800_000, 1_000_000, 0}, {ID{0, 1}, 800_000, 1_000_000, 800_000, 0}, {ID{1, 0}, 800_000, 0, 1_000_000, 1_000_000}}
	now := []numa.UncoreDie{{MinKHz: 900_000}, {Die: 1, MinKHz: 800_000}}
	want := []Held{{ID{0, 0}, 800_000, 0, 1_000_000, 900_000}, held[2]}
	if got := Settled(now, held, []Demand{{ID: ID{0, 0}, WantKHz: 1_000_000}}); !slices.Equal(got, want) {
		t.Errorf("held %+v, want %+v", got, want)
	}
}

// A daemon that died after a write does not know what the kernel made of it.
func TestAfterACrashOnlyWhatTheKernelMadeOfTheWriteIsOurs(t *testing.T) {
	kernel, host := machine(sysfs.Uncore{Packages: 1, Dies: 1, LimitKHz: 1_900_000})
	held := []Held{{ID{}, 800_000, 800_000, 2_200_000, 0}}
	for shown, want := range map[string]int{"2200000": 1_900_000, "1700000": 0, "800000": 0} {
		if err := kernel.Write(numa.UncoreMinFile(0, 0), shown); err != nil {
			t.Fatal(err)
		}
		before := kernel.Values()
		probed, err := host.Probe(held, dies(t, host))
		if err != nil || probed[0].GotKHz != want || !reflect.DeepEqual(kernel.Values(), before) || held[0].GotKHz != 0 {
			t.Errorf("%s: %+v, %v, files %v, want %d kHz", shown, probed, err, kernel.Values(), want)
		}
	}
	held[0].GotKHz = 1_900_000
	writes := kernel.Writes()
	if probed, err := host.Probe(held, dies(t, host)); err != nil || !slices.Equal(probed, held) || kernel.Writes() != writes {
		t.Errorf("%+v, %v after %d writes, want none", probed, err, kernel.Writes()-writes)
	}
}

func TestARefusedWriteNamesTheDie(t *testing.T) {
	kernel, host := machine(sysfs.Uncore{Packages: 1, Dies: 2})
	err := host.Apply([]Write{{ID{0, 1}, 20_000_000}})
	if err == nil || !strings.HasPrefix(err.Error(), "uncore of die 1 of package 0: write 20000000: write ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v", err)
	}
	broken := errors.New("broken")
	failing := New(kernel, func(string, string) error { return broken })
	held := []Held{{ID{}, 900_000, 900_000, 2_000_000, 0}}
	if _, err := failing.Probe(held, dies(t, host)); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}

func TestAMissingDieHasNothing(t *testing.T) {
	kernel, host := machine(sysfs.Uncore{Packages: 1, Dies: 2})
	demands := []Demand{{ID: ID{0, 1}, WantKHz: 800_000}}
	got, err := Got(dies(t, host), demands)
	if want := []Demand{{ID{0, 1}, 800_000, 800_000}}; err != nil || !slices.Equal(got, want) || demands[0].GotKHz != 0 {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	kernel.SetDieOnline(0, 1, false)
	if _, err := Got(dies(t, host), demands); err == nil || err.Error() != "the uncore driver of the kernel has no die 1 of package 0 any more" {
		t.Errorf("error %v", err)
	}
}

func TestRecordsThatPlanNeverMakes(t *testing.T) {
	for _, held := range []Held{{}, {ID{-1, 0}, 1, 0, 1, 0}, {ID{0, -1}, 1, 0, 1, 0}, {ID{}, 1, 0, 0, 0}, {ID{}, 1, -1, 1, 0}, {ID{}, 1, 0, 1, -1}} {
		if held.Validate() == nil {
			t.Errorf("%+v is valid", held)
		}
	}
	for _, demand := range []Demand{{}, {ID{-1, 0}, 1, 0}, {ID{0, -1}, 1, 0}, {ID{}, 1, -1}} {
		if demand.Validate() == nil {
			t.Errorf("%+v is valid", demand)
		}
	}
	if err := errors.Join((Held{ID{1, 1}, 1, 0, 1, 1}).Validate(), (Demand{ID{}, 1, 0}).Validate()); err != nil {
		t.Error(err)
	}
}
