package pin

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestQuotasThatAreLifted(t *testing.T) {
	for _, test := range []struct {
		name      string
		container []string // as the kernel shows them
		pod       string
		cpus      int
		podLimit  int64
		want      string // what is lifted
	}{
		{"as many CPUs", []string{"400000 100000"}, "500000 100000", 4, 5000, "c0 pod"},
		{"more", []string{"400001 100000"}, "500000 100000", 4, 5000, "c0 pod"},
		{"less", []string{"399999 100000"}, "500000 100000", 4, 5000, ""},
		{"another period", []string{"20000 5000"}, "20000 5000", 4, 4000, "c0 pod"},
		{"none", []string{"max 100000"}, "max 100000", 4, 4000, ""},
		{"only the pod's is left", []string{"max 100000"}, "400000 100000", 4, 4000, "pod"},
		{"process in a child", []string{"400000 100000", "max 100000"}, "400000 100000", 4, 4000, "c0 pod"},
		{"a child with less", []string{"400000 100000", "100000 100000"}, "400000 100000", 4, 4000, "c0"},
		{"no cpu controller", []string{""}, "", 4, 4000, ""},
		{"pod with a smaller one", []string{"400000 100000"}, "399999 100000", 4, 4000, "c0"},
		{"a container of the pod has none", []string{"400000 100000"}, "500000 100000", 4, 0, "c0"},
		{"limits that no machine has", []string{"400000 100000"}, "500000 100000", 4, 1 << 62, "c0"},
		{"pod without one", []string{"400000 100000"}, "max 100000", 4, 4000, "c0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			read := func(cgroup, line string) quota {
				if line == "" {
					return quota{}
				}
				q, err := parseQuota(line)
				if err != nil {
					t.Fatal(err)
				}
				q.file = cgroup
				return q
			}
			var container []quota
			for i, line := range test.container {
				container = append(container, read(fmt.Sprintf("c%d", i), line))
			}
			var got []string
			for _, w := range planQuota(container, read("pod", test.pod), test.cpus, test.podLimit) {
				got = append(got, w.File)
				if _, period, _ := strings.Cut(test.pod, " "); w.Value != "max "+period {
					t.Errorf("writes %q", w.Value)
				}
			}
			if want := strings.Fields(test.want); !slices.Equal(got, want) {
				t.Errorf("lifted %q, want %q", got, want)
			}
		})
	}
}

func TestRecordsWhoseQuotasAreLifted(t *testing.T) {
	job := liftable(claimed("job", "2-3", "1", PartitionRoot))
	memory := claimed("memory", "", "1", PartitionNone)
	for _, test := range []struct {
		name string
		r    record
		want bool
	}{
		{"container", record{Scope: ScopeContainer, Claims: []Claim{job}}, true},
		{"without a partition", record{Scope: ScopeContainer, Claims: []Claim{liftable(claimed("job", "2-3", "", PartitionNone))}}, true},
		{"node that keeps quotas", record{Scope: ScopeContainer, Claims: []Claim{claimed("job", "2-3", "1", PartitionRoot)}}, false},
		{"memory besides", record{Scope: ScopeContainer, Claims: []Claim{job, memory}}, true},
		{"memory only", record{Scope: ScopeContainer, Claims: []Claim{liftable(memory)}}, false},
		{"one claim that keeps it", record{Scope: ScopeContainer, Claims: []Claim{job, claimed("old", "5", "1", PartitionRoot)}}, false},
		{"pod: its containers have records, too", record{Scope: ScopePod, Claims: []Claim{job}}, false},
	} {
		if got := test.r.lifts(); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

func TestQuotaThatMakesNoSense(t *testing.T) {
	for _, line := range []string{"", "max", "400000", "0 100000", "400000 0", "-1 100000", "400000 x", "max max", "400000 100000 1"} {
		if q, err := parseQuota(line); err == nil {
			t.Errorf("%q is read as %+v", line, q)
		}
	}
}

// A hook says nothing of a quota that it cannot change: the container starts, and the keeper
// says what is wrong.
func TestQuotaThatCannotBeLiftedStopsNoContainer(t *testing.T) {
	m := newFake(t, false)
	running(m, ctrA)
	limit(m, map[string]string{ctrA: "200000 100000"})
	m.put(ctrA+"/"+quotaFile, "200000")
	mustPin(m, ctrA, ScopeContainer, liftable(claimed("job", "2-3", "1", PartitionRoot)))
	if lines := keep(m); len(lines) != 1 || !strings.Contains(lines[0], `read `+ctrA+`/cpu.max: "200000": want a time or max, and a period`) {
		t.Errorf("the keeper says %q", lines)
	}
}
