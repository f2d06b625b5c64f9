package main

import (
	"os"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

func TestGroupEndsWithTheFirstThatFails(t *testing.T) {
	m := newMade(t)
	calls, err := m.run(t.Context(), "pair", "FAIL=up -name c")
	if err == nil || !strings.Contains(err.Error(), "stage nodes: start of the cluster: ") {
		t.Errorf("the error is %v", err)
	}
	want(t, calls[len(calls)-2:], "cluster up", "cluster down")
	files.Contains(t, m.output(), "suites: stage nodes\n", "  nodes ", "    start of the cluster ", "  total ")
	m = newMade(t)
	calls, err = m.run(t.Context(), "pair")
	if err != nil {
		t.Fatal(err)
	}
	want(t, calls[len(calls)-1:], "make --no-print-directory lint")
}

func TestWhatRunsBesideIsPrintedAtTheEnd(t *testing.T) {
	m := newMade(t)
	calls, err := m.run(t.Context(), "all")
	if err != nil {
		t.Fatal(err)
	}
	want(t, calls[:1], "self programs")
	want(t, calls[len(calls)-2:], "tool after", "tool last")
	output := m.output()
	if said, stage := strings.Index(output, "said by programs"), strings.Index(output, "stage last"); said < 0 || said > stage {
		t.Errorf("what programs said is not before the last stage:\n%s", output)
	}
}

// It is looked at before each stage, so that a test run does not go on for nothing.
func TestFailureBesideIsNoticedAtTheNextStage(t *testing.T) {
	m := newMade(t)
	calls, err := m.run(t.Context(), "all", "SELF=exit 4")
	if err == nil || !strings.Contains(err.Error(), "programs: exit status 4") {
		t.Errorf("the error is %v", err)
	}
	want(t, calls, "self programs")
	files.Contains(t, m.output(), "said by programs")
}

func TestWhatRunsBesideEndsWithAFailure(t *testing.T) {
	m := newMade(t)
	if _, err := m.run(t.Context(), "both", "SELF=exec sleep 1000", "FAIL=up -name c"); err == nil || !strings.Contains(err.Error(), "stage nodes") {
		t.Errorf("the error is %v", err)
	}
}

func TestWhichPackagesTheRaceDetectorHas(t *testing.T) {
	const short = "var _ = testing." + "Short()\n" // in one piece, this package would have long tests
	folder := t.TempDir()
	for name, text := range map[string]string{
		"a/a.go":          "package a\n\nfunc A() {\n\tgo func() {}()\n}\n",
		"b/b.go":          "package b // go (no) goroutine\n",
		"b/b_test.go":     "package b\n\n" + short,
		"c/c.go":          "package c\n\nvar mutex sync.RWMutex\n",
		"c/c_test.go":     "package c\n\n" + short,
		"other/go.mod":    "module other\n",
		"other/o.go":      "package o\n\nvar mutex sync.Mutex\n",
		"bin/x/x.go":      "package x\n\nvar mutex sync.Mutex\n",
		"a/testdata/t.go": "package t\n\nvar mutex sync.Mutex\n",
	} {
		files.Write(t, folder+"/"+name, text)
	}
	goroutines, long, err := folders(folder)
	if err != nil || strings.Join(goroutines, " ") != "./a ./c" || strings.Join(long, " ") != "./b ./c" {
		t.Errorf("folders are %q and %q, %v", goroutines, long, err)
	}
}

// The machine answers what a shell would.
func TestMachineAnswers(t *testing.T) {
	folder := t.TempDir()
	files.Write(t, folder+"/go", "#!/bin/sh\necho -mod=mod -trimpath\n")
	files.Write(t, folder+"/bin/cluster", "#!/bin/sh\necho \"answer to $*\"\n")
	for _, program := range []string{"/go", "/bin/cluster"} {
		if err := os.Chmod(folder+program, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	m := newMachine(t.Context(), folder)
	if flags, err := m.static(); err != nil || strings.Join(flags, " ") != "CGO_ENABLED=0 GOFLAGS=-mod=mod -trimpath" {
		t.Errorf("flags are %q, %v", flags, err)
	}
	if logs, err := m.ofCluster("logs", "c"); err != nil || logs != "answer to path -name c logs" {
		t.Errorf("logs are in %q, %v", logs, err)
	}
}
