package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/dra-driver-numa/dra-driver-numa/test/occupied"
)

func TestCellsAreSortedBySizeAndNumber(t *testing.T) {
	for _, want := range [][]string{
		{"worker-2", "worker-10"},
		{"0", "2", "10", "-"},
		{"cpu 4 of 4, memory 512Mi of 2Gi", "cpu 4 of 4, memory 1Gi of 2Gi", "cpu 10 of 16"},
		{"900 KiB", "1.5 MiB", "2 GiB", "-"},
		{"4-7", "4-10", "10-13", "10-13,20"},
		{"worker-2/numa-10", "worker-10/numa-2"},
		{"pci-0000-3b-00-0", "pci-0000-41-00-0", "pci-0000-c1-00-0"},
		{"default/a", "default/a,default/b", "team/a"},
		{"1", "1e300000000", "a"}, // no amount to compute with
	} {
		for i, cell := range want {
			for j, other := range want {
				if got, order := compareCells(cell, other), i-j; (got < 0) != (order < 0) || (got > 0) != (order > 0) {
					t.Errorf("%q and %q: %d", cell, other, got)
				}
			}
		}
	}
}

func TestRowsAreSortedByAColumn(t *testing.T) {
	pods, caches := clusterFolder(t, "cpu: 4, memory: 512Mi", "cpu: 2, memory: 128Mi", "cpu: 4, memory: 128Mi"), folderOf(t, occupied.Divided(t))
	for args, want := range map[string]string{
		"simulate --sort-by capacity -f " + pods: `POD        NODE      CLAIM  REQUEST  DEVICE                    CAPACITY
default/b  worker-1  b      zone     dra.numa/worker-1/numa-0  cpu 2, memory 128Mi
default/c  worker-1  c      zone     dra.numa/worker-1/numa-2  cpu 4, memory 128Mi
default/a  worker-1  a      zone     dra.numa/worker-1/numa-1  cpu 4, memory 512Mi
`,
		"status --cache --sort-by ways-free -f " + caches: `NODE      L3  POOL        WAYS FREE  CLASSES FREE  MEMBERS FREE  CLAIMS
worker-1  1   guaranteed  0 of 10    7 of 8        -             prod/gold-c
worker-1  0   guaranteed  4 of 10    6 of 8        -             prod/gold-a,prod/gold-b
worker-1  0   besteffort  5 of 7     4 of 5        -             prod/silver
worker-1  1   besteffort  7 of 7     5 of 5        -             -
worker-1  0   shared      -          -             7 of 10       prod/bronze-0,prod/bronze-1,prod/bronze-2
worker-1  1   shared      -          -             10 of 10      -
`,
	} {
		if diff := cmp.Diff(want, mustCall(t, strings.Fields(args)...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", args, diff)
		}
		_, rows, _ := strings.Cut(want, "\n")
		if without := mustCall(t, append(strings.Fields(args), "--no-headers")...); len(strings.Fields(without)) != len(strings.Fields(rows)) {
			t.Errorf("%s --no-headers says\n%s", args, without)
		}
	}
}

// Without --sort-by, lint has findings below their objects, and not in rows.
func TestLintSortsFindings(t *testing.T) {
	_, sorted, _ := call("lint", "-f", file(t, wrongManifests), "--sort-by", "severity")
	_, wide, _ := call("lint", "-f", file(t, wrongManifests), "-o", "wide")
	rows := slices.Collect(strings.Lines(sorted))
	if len(rows) < 3 || rows[0] != strings.SplitAfterN(wide, "\n", 2)[0] {
		t.Fatalf("sorted:\n%s\nwide:\n%s", sorted, wide)
	}
	severity := func(row string) string { return strings.Fields(row)[2] }
	if !slices.IsSortedFunc(rows[1:], func(a, b string) int { return strings.Compare(severity(a), severity(b)) }) || severity(rows[1]) == severity(rows[len(rows)-1]) {
		t.Errorf("not sorted:\n%s", sorted)
	}
}

func TestSortingThatMakesNoSense(t *testing.T) {
	found := 0
	eachCommand(func(command *cobra.Command) {
		flag := command.Flags().Lookup("sort-by")
		if flag == nil {
			return
		}
		found++
		_, allowed, _ := strings.Cut(flag.Usage, ": ")
		for _, row := range []struct{ args, want string }{
			{"--sort-by nonsense", `--sort-by "nonsense": allowed are ` + allowed},
			{"--sort-by=", `--sort-by "": allowed are ` + allowed},
			{"--sort-by node -o json", "--sort-by node: only tables have columns, want no --output json"},
		} {
			exitCode, stdout, stderr := call(append([]string{pathOf(command)}, strings.Fields(row.args)...)...)
			if want := "kubectl-numa: error: " + row.want + "\n"; exitCode != exitUsage || stdout != "" || stderr != want {
				t.Errorf("%s %s: exit code %d, stdout %q, stderr %q, want %q", pathOf(command), row.args, exitCode, stdout, stderr, want)
			}
		}
		for _, name := range strings.Split(allowed, ", ") {
			if _, _, stderr := call(pathOf(command), "--sort-by", name, "--kubeconfig", "none"); !strings.Contains(stderr, `"none"`) && !strings.Contains(stderr, " none:") {
				t.Errorf("%s --sort-by %s: %s", pathOf(command), name, stderr)
			}
		}
	})
	if found != 7 {
		t.Errorf("%d commands have --sort-by", found)
	}
	for args, want := range map[string]string{
		"status --cache --sort-by free":             `--sort-by "free": allowed are node, l3, pool, ways-free, classes-free, members-free, claims`,
		"status --cache --ask-nodes --sort-by pool": `--sort-by "pool": allowed are node, l3, claim, occupied, all-memory, near-memory, group, not-counted`,
		"explain pod a --sort-by answer":            "--sort-by is for a list: remove it, or the name",
	} {
		if exitCode, _, stderr := call(strings.Fields(args)...); exitCode != exitUsage || stderr != "kubectl-numa: error: "+want+"\n" {
			t.Errorf("%s: exit code %d, stderr %q", args, exitCode, stderr)
		}
	}
}
