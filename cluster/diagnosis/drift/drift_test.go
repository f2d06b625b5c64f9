package drift

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

func line(f Finding) string {
	return strings.Join([]string{string(f.Check), f.Claim, f.CPUs.String(), f.Where, f.Expected, f.Detected}, " | ")
}

func lines(findings []Finding) (lines []string) {
	for _, f := range findings {
		lines = append(lines, line(f))
	}
	return lines
}

func TestConsistentNodeHasNoFinding(t *testing.T) {
	if findings := consistent(t).compare(); len(findings) != 0 || findings == nil {
		t.Errorf("findings %v", lines(findings))
	}
}

// mutation changes one thing on a consistent node, and has the findings that are
// expected.
type mutation struct {
	what string
	do   func(*node)
	want []string
}

func claimMutations() []mutation {
	const noRecord = "claim-without-record | default/a |  | checkpoint | a record, because containers of pod default/p1 use the claim | none"
	return []mutation{
		{"record lost with its spec", func(n *node) {
			n.Checkpoint.Grants, n.Specs = n.Checkpoint.Grants[1:], n.Specs[1:]
		}, []string{noRecord, "partition-of-nobody | default/a | 4-5 | cgroup pods/p1/main | a record of the claim for which it is pinned | no record of uid uid-a"}},
		{"record lost", func(n *node) { n.Checkpoint.Grants, n.Pins, n.Partitions = n.Checkpoint.Grants[1:], n.Pins[1:], nil }, []string{
			noRecord, "spec-without-record | uid-a | 4-5 | CDI spec dra.numa-claim_uid-a.json | a record | none",
		}},
		{
			"claim gone", func(n *node) { n.Claims = n.Claims[1:] },
			[]string{"record-without-claim | default/a | 4-5 | checkpoint | a claim with uid uid-a | no such claim"},
		},
		{
			"claim gone, containers run", func(n *node) { n.Claims, n.Checkpoint.Grants[0].Unprepared = n.Claims[1:], true },
			[]string{"record-without-claim | default/a | 4-5 | checkpoint | a claim with uid uid-a | no such claim; the kubelet has unprepared it, and containers of it may still run"},
		},
		{
			"claim replaced", func(n *node) { n.Claims[0].UID = "uid-new"; n.Claims[0].Status.ReservedFor = nil },
			[]string{"record-without-claim | default/a | 4-5 | checkpoint | a claim with uid uid-a | the claim of this name has uid uid-new"},
		},
		{
			"claim not allocated", func(n *node) { n.Claims[0].Status.Allocation = nil },
			[]string{"record-without-claim | default/a | 4-5 | checkpoint | allocated on the node | not allocated on the node"},
		},
		{
			"claim allocated elsewhere", func(n *node) { n.Claims[0].Status.Allocation.Devices.Results[0].Pool = "n2" },
			[]string{"record-without-claim | default/a | 4-5 | checkpoint | allocated on the node | not allocated on the node"},
		},
		{
			"claim allocated anew", func(n *node) { n.Claims[0].Status.Allocation.Devices.Results[0].Device = "numa-1" },
			[]string{"record-differs | default/a | 4-5 | checkpoint | as allocated: r numa-1 s | r numa-0 s"},
		},
		{
			"pod runs early", func(n *node) {
				n.Pod("default", "p3").Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
			},
			[]string{"claim-without-record | default/early |  | checkpoint | a record, because containers of pod default/p3 use the claim | none"},
		},
	}
}

func specMutations() []mutation {
	return []mutation{
		{
			"spec removed", func(n *node) { n.Specs = slices.Delete(n.Specs, 1, 2) },
			[]string{"record-without-spec | default/b-made | 6-9 | CDI specs | a CDI spec: without it, the claim's containers do not start | none"},
		},
		{
			"spec left over", func(n *node) { n.Specs = append(n.Specs, n.Specs[0]); n.Specs[len(n.Specs)-1].ClaimUID = "uid-c" },
			[]string{"spec-without-record | uid-c | 4-5 | CDI spec dra.numa-claim_uid-a.json | a record | none"},
		},
		{
			"spec torn", func(n *node) { n.Specs[0].Problem = "unexpected end" },
			[]string{"spec-differs | default/a | 4-5 | CDI spec dra.numa-claim_uid-a.json | readable | unexpected end"},
		},
		{
			"environment", func(n *node) { n.Specs[0].CPUs = cpuset.New(4, 5, 6) },
			[]string{"spec-differs | default/a | 4-5 | CDI spec dra.numa-claim_uid-a.json | CPUs 4-5 | CPUs 4-6"},
		},
		{
			"hook's CPUs", func(n *node) { n.Specs[0].Devices[0].CPUs = cpuset.New(4, 5, 6) },
			[]string{"spec-differs | default/a | 4-5 | CDI spec dra.numa-claim_uid-a.json | r: CPUs 4-5, mems 0 | CPUs 4-6, mems 0"},
		},
		{
			"hook's mems", func(n *node) { n.Specs[0].Devices[0].Mems = cpuset.New(3) },
			[]string{"spec-differs | default/a | 4-5 | CDI spec dra.numa-claim_uid-a.json | r: CPUs 4-5, mems 0 | CPUs 4-5, mems 3"},
		},
		{
			"idle CPUs without partition", func(n *node) { n.Specs[1].Devices[0].CPUs = cpuset.New(6, 7) },
			[]string{"spec-differs | default/b-made | 6-9 | CDI spec dra.numa-claim_uid-b.json | x/sub: CPUs 6, mems 0 | CPUs 6-7, mems 0"},
		},
		{
			"mixed CPUs", func(n *node) { n.Specs[1].Devices[1].CPUs = cpuset.New(8, 9) },
			[]string{"spec-differs | default/b-made | 6-9 | CDI spec dra.numa-claim_uid-b.json | mix: no CPUs, mems 1 | CPUs 8-9, mems 1"},
		},
		{
			"hook of no function", func(n *node) { n.Specs[1].Devices[2].Function = true },
			[]string{"spec-differs | default/b-made | 6-9 | CDI spec dra.numa-claim_uid-b.json | z: a hook that pins | no hook"},
		},
		{
			"function with a hook", func(n *node) { n.Specs[2].Devices[0].Function = false },
			[]string{"spec-differs | default/f |  | CDI spec dra.numa-claim_uid-f.json | drive: no hook | a hook that pins"},
		},
		{
			"device nodes", func(n *node) { n.Specs[1].Devices[3].Nodes = n.Specs[1].Devices[3].Nodes[:1] },
			[]string{`spec-differs | default/b-made | 6-9 | CDI spec dra.numa-claim_uid-b.json | drive: device nodes ["/dev/nvme0" "/dev/nvme0n1"] | ["/dev/nvme0"]`},
		},
		{
			"device missing", func(n *node) { n.Specs[1].Devices = n.Specs[1].Devices[:2] },
			[]string{"spec-differs | default/b-made | 6-9 | CDI spec dra.numa-claim_uid-b.json | 4 devices | 2"},
		},
		{
			"other device", func(n *node) { n.Specs[0].Devices[0].ID = "dra.numa/claim=other" },
			[]string{"spec-differs | default/a | 4-5 | CDI spec dra.numa-claim_uid-a.json | dra.numa/claim=uid-a_r_numa-0 | dra.numa/claim=other"},
		},
	}
}

func cgroupMutations() []mutation {
	return []mutation{
		{
			"not pinned", func(n *node) { n.Pins = slices.Delete(n.Pins, 1, 2) },
			[]string{"container-not-pinned | default/b-made | 6-9 | cgroups of pod default/p2 | a cgroup that is pinned for the claim | none"},
		},
		{
			"pinned by another record", func(n *node) { n.Pins[1].CPUs = cpuset.New(6, 12) },
			[]string{"partition-differs | default/b-made | 6-9 | cgroup pods/p2/sidecar | only CPUs 6-9, as in the checkpoint | CPUs 6,12"},
		},
		{
			"partition of other CPUs", func(n *node) {
				n.Partitions[0].CPUs, n.Pins[0].Fault = cpuset.New(4), "cpuset.cpus.effective is wrong"
			},
			[]string{"partition-differs | default/a | 4-5 | cgroup pods/p1/main | CPUs 4-5 | CPUs 4"},
		},
		{
			"partition invalid", func(n *node) { n.Pins[0].Fault = `cpuset.cpus.partition reads "root invalid (x)"` },
			[]string{`partition-invalid | default/a | 4-5 | cgroup pods/p1/main | CPUs 4-5, mems 0, partition root | cpuset.cpus.partition reads "root invalid (x)"`},
		},
		{
			"partition gone", func(n *node) {
				n.Partitions, n.Pins[0].Fault = nil, `cpuset.cpus.partition reads "member", want "root"`
			},
			[]string{`partition-invalid | default/a | 4-5 | cgroup pods/p1/main | CPUs 4-5, mems 0, partition root | cpuset.cpus.partition reads "member", want "root"`},
		},
		{
			"memory policy ignored", func(n *node) {
				n.IgnoredPolicies = []nodestate.IgnoredPolicy{{Cgroup: "pods/p1/main", Claim: nodestate.Claim{UID: "uid-a", Name: "default/a"}, Want: "bind:0", Seen: "default"}}
			},
			[]string{"policy-ignored | default/a | 4-5 | cgroup pods/p1/main | memory policy bind:0 | default"},
		},
		{
			"somebody's partition", func(n *node) {
				n.Partitions = append(n.Partitions, nodestate.Partition{Cgroup: "system.slice/x", CPUs: cpuset.New(0), State: "isolated"})
			},
			[]string{"partition-of-nobody |  | 0 | cgroup system.slice/x | a container of a claim | no record of the hook, partition isolated"},
		},
		{
			"partition of a claim by nobody", func(n *node) {
				n.Partitions = append(n.Partitions, nodestate.Partition{Cgroup: "pods/p1/mainly", CPUs: cpuset.New(6), State: "root"})
			},
			[]string{"partition-of-nobody | default/b-made | 6 | cgroup pods/p1/mainly | a container of the claim that has CPUs 6-9 | no record of the hook, partition root"},
		},
	}
}

func taskMutations() []mutation {
	return []mutation{
		{
			"task left the group", func(n *node) { n.Tasks[1].Group = "" },
			[]string{"task-in-other-group | default/w | 11 | container joined of pod default/p5 | tasks in group dra-numa.7 | 2 in no group"},
		},
		{
			"task of own CPUs moved", func(n *node) { n.Tasks[2].Group = "other" },
			[]string{"task-in-other-group | default/v | 10 | container own of pod default/p5 | tasks in group dra-numa.2, or in none | 3 in group other"},
		},
		{"task of own CPUs in its own group", func(n *node) { n.Tasks[2].Group = "dra-numa.2" }, nil},
		{
			"container that does not join", func(n *node) { n.Specs[4].Devices[1].Group = "" },
			[]string{"spec-differs | default/w | 11 | CDI spec dra.numa-claim_uid-w.json | cache: group dra-numa.7 to join | no group to join"},
		},
		{"tasks are not read", func(n *node) {
			n.Tasks[1].Group = ""
			n.Problems = []nodestate.Problem{{Part: nodestate.TasksPart, Why: "why"}}
		}, []string{"unreadable |  |  | tasks | readable | why"}},
	}
}

func unreadMutations() []mutation {
	unread := func(part nodestate.Part, do func(*node)) func(*node) {
		return func(n *node) {
			n.Problems = append(n.Problems, nodestate.Problem{Part: part, Why: "damaged"})
			do(n)
		}
	}
	return []mutation{
		{
			"checkpoint unread", unread(nodestate.CheckpointPart, func(n *node) { n.Checkpoint = nodestate.Checkpoint{} }),
			[]string{"unreadable |  |  | checkpoint | readable | damaged"},
		},
		{
			"specs unread", unread(nodestate.SpecsPart, func(n *node) { n.Specs = nil }),
			[]string{"unreadable |  |  | CDI specs | readable | damaged"},
		},
		{
			"pins unread", unread(nodestate.PinsPart, func(n *node) { n.Pins = nil }),
			[]string{"unreadable |  |  | pins | readable | damaged"},
		},
		{
			"partitions unread", unread(nodestate.PartitionsPart, func(n *node) { n.Partitions = nil }),
			[]string{"unreadable |  |  | partitions | readable | damaged"},
		},
		{
			"checkpoint unread, partition invalid", unread(nodestate.CheckpointPart, func(n *node) { n.Checkpoint = nodestate.Checkpoint{}; n.Pins[0].Fault = "invalid" }),
			[]string{
				"unreadable |  |  | checkpoint | readable | damaged",
				"partition-invalid | default/a | 4-5 | cgroup pods/p1/main | CPUs 4-5, mems 0, partition root | invalid",
			},
		},
	}
}

// Each mutation gives exactly its findings, and every check is found by some mutation.
func TestEveryMutationIsItsFindings(t *testing.T) {
	found := make(map[Check]bool)
	for _, m := range slices.Concat(claimMutations(), specMutations(), cgroupMutations(), taskMutations(), unreadMutations()) {
		n := consistent(t)
		m.do(n)
		findings := n.compare()
		for _, finding := range findings {
			found[finding.Check] = true
			if finding.Node != "n1" {
				t.Errorf("%s: node %q", m.what, finding.Node)
			}
		}
		if diff := cmp.Diff(m.want, lines(findings)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", m.what, diff)
		}
	}
	for _, check := range Checks() {
		if !found[check] {
			t.Errorf("no mutation is %s", check)
		}
	}
}

// A claim is in the checkpoint before its containers start, and until after they end.
func TestNothingIsFoundOfWhatDoesNotRunYet(t *testing.T) {
	for what, do := range map[string]func(*corev1.Pod){
		"ended":           func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State = corev1.ContainerState{} },
		"on another node": func(p *corev1.Pod) { p.Spec.NodeName = "n2" },
		"replaced":        func(p *corev1.Pod) { p.UID = "uid-of-another" },
	} {
		n := consistent(t)
		n.Checkpoint.Grants, n.Specs, n.Pins, n.Partitions = n.Checkpoint.Grants[1:], n.Specs[1:], n.Pins[1:], nil
		do(n.Pod("default", "p1"))
		n.Pod("default", "p1").Spec.Containers = n.Pod("default", "p1").Spec.Containers[:1]
		if findings := n.compare(); len(findings) > 0 {
			t.Errorf("%s: findings %v", what, lines(findings))
		}
	}
}

func TestLastingAreThoseOfBothLooks(t *testing.T) {
	one := Finding{Node: "n1", Check: SpecDiffers, Claim: "a", Where: "w", Detected: "before"}
	other := []Finding{{Node: "n2"}, {Check: RecordDiffers}, {Claim: "b"}, {Where: "x"}}
	for i := range other {
		full := one
		switch {
		case other[i].Node != "":
			full.Node = other[i].Node
		case other[i].Check != "":
			full.Check = other[i].Check
		case other[i].Claim != "":
			full.Claim = other[i].Claim
		default:
			full.Where = other[i].Where
		}
		other[i] = full
	}
	now := one
	now.Detected = "now"
	got := Lasting(append(other, one), []Finding{now, {Node: "n3"}})
	if len(got) != 1 || got[0].Detected != "now" {
		t.Errorf("lasting %v", lines(got))
	}
	if got := Lasting(other, []Finding{now}); len(got) != 0 || got == nil {
		t.Errorf("lasting %v, want none", lines(got))
	}
}

// docs/drift.md has a row for every check, and no other rows.
func TestEveryCheckIsDocumented(t *testing.T) {
	text := files.Read(t, "../../../docs/drift.md")
	table, _, _ := strings.Cut(text, "## Rights")
	var documented []Check
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllStringSubmatch(table, -1) {
		documented = append(documented, Check(row[1]))
	}
	if diff := cmp.Diff(Checks(), documented); diff != "" {
		t.Errorf("rows of docs/drift.md (-checks +rows):\n%s", diff)
	}
}
