package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/cmd/internal/cli"
	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// rehearsing is a node on which the installed hook is a script.
func rehearsing(t *testing.T, script string) (options, node) {
	t.Helper()
	flags, _ := fakeMachine(t)
	o, err := parseFlags(cli.Call{Args: flags}, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	files.Write(t, o.hook().Path, script)
	n, err := readNode(o)
	if err != nil {
		t.Fatal(err)
	}
	return o, n
}

// The hook gets the arguments of the spec, and nothing remains on the disk, also of a daemon
// that was killed in its rehearsal.
func TestRehearsalLeavesNothing(t *testing.T) {
	o, n := rehearsing(t, "#!/bin/sh\necho \"$@\" >\"$0.args\"\n")
	before := files.Tree(t, o.pluginDir())
	files.Write(t, filepath.Join(o.pluginDir(), rehearsalDir, "checkpoint.json.new"), "half")
	files.Write(t, filepath.Join(o.cdiDir, rehearsalSpecsDir, "dra.numa-claim_x.json"), "{}")
	if err := o.rehearse(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	after := files.Tree(t, o.pluginDir())
	if len(after) != len(before) || after[rehearsalDir] != "" {
		t.Errorf("files %v, want %v", after, before)
	}
	if left, err := os.ReadDir(o.cdiDir); err != nil || len(left) > 0 {
		t.Errorf("left in the directory of specs: %v, %v", left, err)
	}
	const begin, end = "pin --uid=rehearsal --claim=rehearsal/rehearsal --cpus=1 ", "/pins --help\n"
	if args := files.Read(t, o.hook().Path+".args"); !strings.HasPrefix(args, begin) || !strings.HasSuffix(args, end) {
		t.Errorf("arguments %q, want %s … %s", args, begin, end)
	}
}

func TestRehearsalSaysWhatFails(t *testing.T) {
	const fine = "#!/bin/sh\n"
	for name, row := range map[string]struct {
		script string
		before func(options, node)
		want   string
	}{
		"older hook":           {"#!/bin/sh\necho 'not defined: -x'\necho 'usage: numa-pin' >&2\nexit 2\n", nil, "numa-pin: exit status 2: not defined: -x usage: numa-pin"},
		"hook of another CPU":  {"\x7fELF", nil, "exec format error"},
		"no plugin directory":  {fine, func(o options, _ node) { block(t, o.pluginDir()) }, "rehearse to write a checkpoint: mkdir "},
		"no directory of CDI":  {fine, func(o options, _ node) { block(t, o.cdiDir) }, "rehearse to write a CDI spec: mkdir "},
		"partitions are lost":  {fine, func(o options, n node) { files.Write(t, o.pluginDir()+"/"+probeProblemFile, n.config.BootID+" lost\n") }, "probe cpuset partitions: lost"},
		"lost in another boot": {fine, func(o options, _ node) { files.Write(t, o.pluginDir()+"/"+probeProblemFile, "older lost\n") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o, n := rehearsing(t, row.script)
			if row.before != nil {
				row.before(o, n)
			}
			err := o.rehearse(t.Context(), n)
			if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("error %v, want %q", err, row.want)
			}
			if _, err := os.Stat(filepath.Join(o.cdiDir, rehearsalSpecsDir)); err == nil {
				t.Error("the scratch directory of specs is left over")
			}
		})
	}
}

// block puts a file where a directory should be, as a test that runs as root cannot have a
// read-only disk.
func block(t *testing.T, dir string) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	files.Write(t, dir, "")
}

// A container that may not execute the hook cannot tell whether the runtime may.
func TestHookThatThisContainerMayNotExecute(t *testing.T) {
	path := filepath.Join(t.TempDir(), "numa-pin")
	files.Write(t, path, "#!/bin/sh\nexit 1\n")
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := runHook(t.Context(), path, []string{"numa-pin", "pin"}); err != nil {
		t.Error(err)
	}
}

func TestRehearsalIsRepeatedUntilItSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		r := newRehearsal(func(context.Context) error {
			if attempts++; attempts == 3 {
				return nil
			}
			return errors.New("disk full")
		})
		if err := r.err(); !errors.Is(err, errNotRehearsed) {
			t.Errorf("before the first attempt: %v", err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.run(t.Context())
		}()
		r.wait(t.Context())
		if err := r.err(); err == nil || err.Error() != "disk full" {
			t.Errorf("after the first attempt: %v", err)
		}
		<-done
		if err := r.err(); err != nil || attempts != 3 {
			t.Errorf("after %d attempts: %v", attempts, err)
		}
	})
}

// A disk that hangs does not keep the daemon from registering with the kubelet.
func TestStartDoesNotWaitForARehearsalThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r := newRehearsal(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.run(ctx)
		}()
		began := time.Now()
		r.wait(ctx)
		if took := time.Since(began); took != rehearsalWait || !errors.Is(r.err(), errNotRehearsed) {
			t.Errorf("waited %s, %v", took, r.err())
		}
		cancel()
		<-done
	})
}

func TestProblemOfAProbe(t *testing.T) {
	failed := errors.New("two\nlines")
	for name, row := range map[string]struct {
		before    driver.Exclusivity
		known     string
		supported bool
		err       error
		want      string
	}{
		"partitions":                {driver.ExclusivityNone, lostPartitions, true, nil, ""},
		"an old kernel":             {driver.ExclusivityNone, "", false, nil, ""},
		"lost":                      {driver.ExclusivityKernel, "", false, nil, lostPartitions},
		"still lost":                {driver.ExclusivityNone, lostPartitions, false, nil, lostPartitions},
		"failed":                    {driver.ExclusivityKernel, "", false, failed, "two lines"},
		"old kernel after a fault":  {driver.ExclusivityNone, "two lines", false, nil, ""},
		"no CPU left":               {driver.ExclusivityKernel, "", false, errNoIdleCPU, ""},
		"no CPU left after a fault": {driver.ExclusivityKernel, "two lines", false, errNoIdleCPU, "two lines"},
	} {
		got := probeProblem(row.before, row.known, row.supported, row.err)
		if got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
		state := files.OpenTemp(t)
		for range 2 { // the second one replaces or removes nothing
			if err := saveProbeProblem(state, "boot", got); err != nil {
				t.Fatal(err)
			}
			if read, err := readProbeProblem(state, "boot"); read != row.want || err != nil {
				t.Errorf("%s: read back %q, %v", name, read, err)
			}
		}
	}
}

func TestUnclearProbeIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := errors.New("busy")
		for name, row := range map[string]struct {
			answers   []error
			supported bool
			want      error
			tried     int
		}{
			"at once":     {[]error{nil}, true, nil, 1},
			"later":       {[]error{failed, failed, nil}, true, nil, 3},
			"never":       {[]error{failed, failed, failed}, false, failed, 3},
			"no idle CPU": {[]error{errNoIdleCPU}, false, errNoIdleCPU, 1},
			"damaged":     {[]error{ledger.ErrDamaged}, false, ledger.ErrDamaged, 1},
		} {
			tried := 0
			supported, err := probeAgain(t.Context(), func() (bool, error) {
				tried++
				return row.answers[tried-1] == nil, row.answers[tried-1]
			})
			if supported != row.supported || !errors.Is(err, row.want) || tried != row.tried {
				t.Errorf("%s: %t, %v after %d attempts", name, supported, err, tried)
			}
		}
	})
}

// Nodes that use no partitions are ready without them.
func TestProblemOfAProbeMattersWherePartitionsAreUsed(t *testing.T) {
	for mode, want := range map[string]bool{"auto": true, "kernel": true, "cooperative": false, "none": false} {
		o := options{kubeletRoot: t.TempDir(), exclusivityMode: mode}
		files.Write(t, o.pluginDir()+"/"+probeProblemFile, "boot "+lostPartitions+"\n")
		if err := o.checkProbe("boot"); (err != nil) != want {
			t.Errorf("%s: %v", mode, err)
		}
	}
}
