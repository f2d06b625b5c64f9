package pick

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// parseRequest reads a number of CPUs and what else is asked for, such as "4
// zones=0,1 l3=prefer"; it is of zone 0 where no zones are named.
func parseRequest(t *testing.T, text string) Request {
	t.Helper()
	fields := strings.Fields(text)
	count, err := strconv.Atoi(fields[0])
	r := Request{CPUs: count, Zones: []int{0}}
	for _, field := range fields[1:] {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "zones":
			err = errors.Join(err, json.Unmarshal([]byte("["+value+"]"), &r.Zones))
		case "cores":
			err = errors.Join(err, r.Cores.UnmarshalText([]byte(value)))
		case "l3":
			err = errors.Join(err, r.L3.UnmarshalText([]byte(value)))
		case "placement":
			err = errors.Join(err, r.Placement.UnmarshalText([]byte(value)))
		case "isolated":
			err = errors.Join(err, r.Isolated.UnmarshalText([]byte(value)))
		case "type":
			r.CoreType = numa.CoreType(value)
		default:
			err = errors.Join(err, fmt.Errorf("no field %q", key))
		}
	}
	if err != nil {
		t.Fatalf("request %q: %v", text, err)
	}
	return r
}

// TestChoiceIsTheBestFit goes through testdata/choices.txt. Each paragraph is a
// name and what a request gets of a machine: the machine as parseMachine draws it,
// the CPUs that are held, the request as parseRequest reads it, the CPUs that are
// chosen, those that are kept idle, and why.
func TestChoiceIsTheBestFit(t *testing.T) {
	text := files.Read(t, "testdata/choices.txt")
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		name, lines, _ := strings.Cut(paragraph, "\n")
		t.Run(name, func(t *testing.T) {
			row := map[string]string{}
			for line := range strings.SplitSeq(lines, "\n") {
				key, value, _ := strings.Cut(line, ":")
				row[key] = strings.TrimSpace(value)
			}
			m := parseMachine(t, row["machine"])
			free := m.Online.Difference(parseSet(t, row["held"]))
			got, err := New(m).Pick(free, parseRequest(t, row["request"]))
			if err != nil {
				t.Fatalf("%v for\n%s", err, lines)
			}
			if got.CPUs.String() != row["choice"] || got.Idle.String() != row["idle"] || got.Why.String() != row["why"] {
				t.Errorf("choice %q, idle %q, why %q; want\n%s", got.CPUs, got.Idle, got.Why, lines)
			}
		})
	}
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
		{Request{CPUs: 9, Zones: []int{0, 1}}, "", "select 9 cpus of zones 0, 1, which have 8 free: not enough free cpus"},
		{
			Request{CPUs: 9, Zones: []int{0, 1}, Cores: OneThreadPerCore},
			"6",
			"select 9 cpus of zones 0, 1, which have 5 whole cores free: not enough free cpus",
		},
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
