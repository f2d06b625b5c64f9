package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// made is a repository whose programs only write their names and arguments to the file calls.
type made struct {
	t      *testing.T
	folder string
	runner *runner
}

func (m made) root() string                      { return m.folder }
func (m made) static() ([]string, error)         { return []string{"STATIC=1"}, nil }
func (m made) helm() (string, error)             { return m.folder + "/bin/helm", nil }
func (m made) packages(string) ([]string, error) { return nil, nil }
func (m made) ofCluster(what, name string) (string, error) {
	return filepath.Join(m.folder, "rig", name, what), nil
}

const rows = `
variables:
- {variable: FOCUS, what: w}
- {variable: KUBERNETES, what: w, default: "1.37"}
- {variable: KERNEL, what: w, default: "6.12"}
- {variable: BOOT, what: w}
- {variable: INIT, what: w, default: busybox}
- {variable: CRI, what: w, default: containerd}
- {variable: NODES, what: w, default: "1"}
- {variable: SPEED, what: w, default: "100"}
- {variable: TOPOLOGY, what: w}
- {variable: LAYOUT, what: w}
targets:
- {target: image, what: w}
- {target: suite, what: w}
- {target: lint, what: w}
suites:
- suite: nodes
  what: w
  before: [{args: [bin/tool, before]}]
  cluster: c
  images: [more]
  inNode: [{package: ./a/pin, env: {X: "1"}}]
  chart: {values: [--set, a=b]}
  steps: [{label: one}, {label: two, tag: next}]
  after: [{name: rules, args: [bin/tool, after]}]
- suite: memory
  what: w
  memory: true
  run: [{args: [sh, -c, 'printenv TMPDIR >memory']}]
- suite: stays
  what: w
  cluster: c
  stays: true
- {suite: programs, what: w, run: [{args: ["true"]}]}
- {suite: last, what: w, run: [{args: [bin/tool, last]}]}
- {suite: waits, what: w, run: [{args: [sh, -c, "until [ -s ended ] && ! kill -0 $(cat ended) 2>/dev/null; do sleep 0.01; done"]}]}
- {suite: pair, what: w, members: [nodes, lint]}
- {suite: both, what: w, members: [nodes], beside: programs}
- {suite: all, what: w, members: [waits, nodes], beside: programs, then: [last]}
`

// newMade returns such a repository. The programs hang or fail if the text of the variable is
// in their arguments.
func newMade(t *testing.T) made {
	t.Helper()
	m := made{t: t, folder: t.TempDir()}
	const program = `#!/bin/sh
echo "${0##*/} $*" >>"$CALLS"
case "$*" in *"${HANG:-no such text}"*) sleep 1000 & echo $! >"$CALLS.pid"; wait;; esac
case "$*" in *"${DEAF:-no such text}"*) trap '' TERM; echo $$ >"$CALLS.pid"; while :; do sleep 0.01; done;; esac
case "$*" in *"${FAIL:-no such text}"*) exit 3;; esac
`
	for _, name := range []string{"bin/cluster", "bin/e2e.test", "bin/helm", "bin/tool", "path/make", "path/go"} {
		m.program(name, program)
	}
	m.program("bin/self", "#!/bin/sh\necho \"self $*\" >>\"$CALLS\"; echo said by programs; echo $$ >ended; ${SELF:-true}\n")
	files.Write(t, m.folder+"/bin/pin.test", "")
	for _, folder := range []string{"test/e2e", "rig/c/logs"} {
		if err := os.MkdirAll(filepath.Join(m.folder, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	files.Write(t, m.folder+"/rig/c/logs/numa-node-0.log", "the node restarted\n")
	files.Write(t, m.folder+"/rig/c/logs/numa-node-0-console.log", "much of the console\n")
	read, err := parse([]byte(rows))
	if err != nil {
		t.Fatal(err)
	}
	output, err := os.Create(m.folder + "/output")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { output.Close() })
	t.Setenv("PATH", m.folder+"/path:"+os.Getenv("PATH"))
	m.runner = &runner{
		table: read, host: m, memory: inMemory, self: m.folder + "/bin/self", patience: 10 * time.Second, stdout: output, stderr: output,
		environment: append(os.Environ(), "CALLS="+m.folder+"/calls"),
	}
	return m
}

func (m made) program(name, text string) {
	m.t.Helper()
	files.Write(m.t, filepath.Join(m.folder, name), text)
	if err := os.Chmod(filepath.Join(m.folder, name), 0o755); err != nil {
		m.t.Fatal(err)
	}
}

// run runs a suite with more in the environment, and returns what was called.
func (m made) run(ctx context.Context, name string, env ...string) (calls []string, err error) {
	m.t.Helper()
	m.runner.environment = append(m.runner.environment, env...)
	s, found := m.runner.table.suite(name)
	if !found {
		m.t.Fatalf("no suite %s", name)
	}
	err = m.runner.suite(ctx, s, newValues(m.runner.table, nil, nil))
	if _, missing := os.Stat(m.folder + "/calls"); missing == nil {
		calls = strings.Split(strings.TrimSpace(files.Read(m.t, m.folder+"/calls")), "\n")
	}
	return calls, err
}

func (m made) output() string { return files.Read(m.t, m.folder+"/output") }

// want fails the test unless calls begin as they should, one after the other, and none is left.
func want(t *testing.T, calls []string, beginnings ...string) {
	t.Helper()
	for i := range max(len(calls), len(beginnings)) {
		if i >= len(calls) || i >= len(beginnings) || !strings.HasPrefix(calls[i], beginnings[i]) {
			t.Fatalf("called\n%s\nwant\n%s", strings.Join(calls, "\n"), strings.Join(beginnings, "\n"))
		}
	}
}

func TestSuiteRunsItsPlan(t *testing.T) {
	m := newMade(t)
	calls, err := m.run(t.Context(), "nodes")
	if err != nil {
		t.Fatal(err)
	}
	want(t, calls, "make --no-print-directory image suite", "go test -c -o bin/ ./a/pin", "tool before", "cluster down -name c", "cluster up -name c",
		"cluster load -name c bin/images/dra-driver-numa.tar", "cluster load -name c bin/images/more.tar", "cluster exec -name c -- sh -c cat >/tmp/pin.test",
		"helm upgrade", "e2e.test", "e2e.test", "cluster down -name c", "tool after")
	var steps []string
	for line := range strings.Lines(m.output()[strings.Index(m.output(), "where the time went"):]) {
		if name, took, isStep := strings.Cut(strings.TrimSpace(line), "   "); isStep && strings.HasSuffix(strings.TrimSpace(took), " s") {
			steps = append(steps, name)
		}
	}
	want(t, steps, "builds", "nodes", "start of the cluster", "image", "tests in the node", "chart", "end-to-end suite", "end-to-end suite next", "rules", "total")
	if _, err := os.Stat(m.folder + "/bin/logs"); err == nil {
		t.Error("logs were kept of a suite that passed")
	}
}

func TestFailureKeepsTheLogsAndStopsTheCluster(t *testing.T) {
	m := newMade(t)
	files.Write(t, m.folder+"/bin/logs/c/numa-node-1.log", "of an earlier run\n")
	calls, err := m.run(t.Context(), "nodes", "FAIL=-ginkgo.label-filter two")
	if err == nil || !strings.Contains(err.Error(), "end-to-end suite next: ") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("the error is %v", err)
	}
	want(t, calls[len(calls)-3:], "e2e.test", "e2e.test", "cluster down -name c")
	if got := files.Read(t, m.folder+"/bin/logs/c/numa-node-0.log"); got != "the node restarted\n" {
		t.Errorf("the log of the node is %q", got)
	}
	output := m.output()
	files.Contains(t, output, "the node restarted", "suites: the logs of cluster c are in bin/logs/c", "  end-to-end suite next ", "  total ")
	if _, err := os.Stat(m.folder + "/bin/logs/c/numa-node-1.log"); err == nil {
		t.Error("logs of an earlier run are still there")
	}
	if strings.Contains(output, "much of the console") || strings.Contains(output, "  rules ") {
		t.Errorf("the output has what it should not:\n%s", output)
	}
}

// Before the cluster was started, it has no logs; what an earlier run has left is stopped.
func TestFailureOfABuildStartsNothing(t *testing.T) {
	m := newMade(t)
	calls, err := m.run(t.Context(), "nodes", "FAIL=image")
	if err == nil {
		t.Error("no error")
	}
	want(t, calls, "make --no-print-directory image suite")
}

func TestClusterThatStaysIsNotStopped(t *testing.T) {
	m := newMade(t)
	calls, err := m.run(t.Context(), "stays", "FAIL=load")
	if err == nil {
		t.Error("no error")
	}
	want(t, calls, "make --no-print-directory image", "cluster up -name c", "cluster load -name c")
}

// Another clone has the same folder of clusters.
func TestSuiteLeavesTheClusterOfAnotherProcessAlone(t *testing.T) {
	m := newMade(t)
	release, err := m.runner.hold("c")
	if err != nil {
		t.Fatal(err)
	}
	calls, err := m.run(t.Context(), "nodes")
	want(t, calls[len(calls)-1:], "tool before")
	if err == nil || err.Error() != fmt.Sprintf("cluster c is used by process %d in %s: wait until that has ended, or set RIG_DIR to another folder", os.Getpid(), m.folder) {
		t.Errorf("the error is %v", err)
	}
	release()
	if _, err := m.run(t.Context(), "nodes"); err != nil {
		t.Errorf("after the other process: %v", err)
	}
}

// The interrupt ends what was started, whether it listens or not, and the clusters.
func TestInterruptEndsEverything(t *testing.T) {
	for _, how := range []string{"HANG=up -name c", "DEAF=up -name c"} {
		m := newMade(t)
		m.runner.patience = time.Second
		ctx, interrupt := context.WithCancelCause(t.Context())
		go func() {
			for ctx.Err() == nil {
				if text, err := os.ReadFile(m.folder + "/calls.pid"); err == nil && len(text) > 1 {
					interrupt(errors.New("interrupted"))
				}
				time.Sleep(10 * time.Millisecond)
			}
		}()
		calls, err := m.run(ctx, "nodes", how)
		if err == nil || !strings.Contains(err.Error(), "interrupted") {
			t.Errorf("%s: the error is %v", how, err)
		}
		want(t, calls[len(calls)-2:], "cluster up -name c", "cluster down -name c")
		pid, err := strconv.Atoi(strings.TrimSpace(files.Read(t, m.folder+"/calls.pid")))
		if err != nil {
			t.Fatal(err)
		}
		if !ended(pid) {
			t.Errorf("%s: process %d is still there", how, pid)
		}
	}
}

// ended reports whether a process ends in time. One that nobody has waited for has ended.
func ended(pid int) bool {
	for range 1000 {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return true
		}
		if stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil && strings.Contains(string(stat), ") Z ") {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

func TestTemporaryFilesAreRemoved(t *testing.T) {
	m := newMade(t)
	if _, err := m.run(t.Context(), "memory"); err != nil {
		t.Fatal(err)
	}
	folder := strings.TrimSpace(files.Read(t, m.folder+"/memory"))
	if _, err := os.Stat(folder); !strings.Contains(folder, "dra-numa.") || !os.IsNotExist(err) {
		t.Errorf("TMPDIR was %q, which is there: %v", folder, err)
	}
}
