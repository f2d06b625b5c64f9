package kernel

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

func TestParseTasks(t *testing.T) {
	const text = `task 653 4194368 /kubepods/podA/x dra numa
task 33 69238848 / ksoftirqd/4
task 151 2162752 / kcompactd1
task 160 - - kworker/5:1
task 277 - - psimon
task 278 4194368 /kubepods/podA/x psimon
task 743 - - runc:[2:INIT]
lost 0
`
	got, err := parseTasks(text)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`false dra numa (task 653 of "/kubepods/podA/x")`,
		`true ksoftirqd/4 (task 33 of "/")`,
		`true kcompactd1 (task 151 of "/")`,
		`true kworker/5:1 (task 160 of "")`,
		`true psimon (task 277 of "")`,
		`false psimon (task 278 of "/kubepods/podA/x")`,
		`false runc:[2:INIT] (task 743 of "")`,
	}
	var list []string
	for _, task := range got {
		list = append(list, map[bool]string{true: "true ", false: "false "}[task.Kernel()]+task.String())
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("Kernel and task (-want +got):\n%s", diff)
	}
	for _, damaged := range []string{"", "task 160 - - kworker/5:1\n", "lost 3\n", "task x 0 / a\n", "task 1 x / a\n", "task 1\n", "sh: not found\n"} {
		if tasks, err := parseTasks(damaged); err == nil {
			t.Errorf("parseTasks(%q) = %v, want an error", damaged, tasks)
		}
	}
}

func TestParseAllowed(t *testing.T) {
	got, err := parseAllowed("allowed 0-3,8-15 90 1 init\nallowed 4-7 1 742 sleep\n")
	want := []Allowed{
		{CPUs: cpuset.New(0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15), Tasks: 90, One: "1 init"},
		{CPUs: cpuset.New(4, 5, 6, 7), Tasks: 1, One: "742 sleep"},
	}
	if diff := cmp.Diff(want, got, sets); diff != "" || err != nil {
		t.Errorf("parseAllowed (-want +got), %v:\n%s", err, diff)
	}
	for _, damaged := range []string{"", "allowed 0-x 1 1 a\n", "allowed 0 many 1 a\n", "allowed 0 1\n", "find: x\n"} {
		if sets, err := parseAllowed(damaged); err == nil {
			t.Errorf("parseAllowed(%q) = %v, want an error", damaged, sets)
		}
	}
}
