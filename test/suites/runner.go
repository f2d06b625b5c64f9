package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// runner runs plans.
type runner struct {
	table table
	host  host
	// memory says where tests write small files, and removes it.
	memory func() (folder string, remove func(), err error)
	// self is this program, which runs suites beside others.
	self string
	// patience is how long what was started may take to end, when it is told to.
	patience    time.Duration
	stdout      *os.File
	stderr      *os.File
	environment []string
}

// timing is how long something took, and the parts of it.
type timing struct {
	name  string
	took  time.Duration
	parts []timing
}

// timed runs something, and says how long it took when it is done.
func (r *runner) timed(name string, do func() ([]timing, error)) (timing, error) {
	started := time.Now()
	parts, err := do()
	t := timing{name: name, took: time.Since(started), parts: parts}
	if err == nil {
		fmt.Fprintf(r.stdout, "suites: %s: %s\n", name, seconds(t.took))
	}
	return t, err
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.0f s", d.Seconds()) }

// writeTimes writes a line for each timing, and below it one for each part.
func writeTimes(w io.Writer, indent string, times []timing) {
	for _, t := range times {
		fmt.Fprintf(w, "%-32s %7s\n", indent+t.name, seconds(t.took))
		writeTimes(w, indent+"  ", t.parts)
	}
}

// run runs a suite. The timings are those of what it ran, also if it fails.
func (r *runner) run(ctx context.Context, s suite, v values) ([]timing, error) {
	if len(s.Members) > 0 {
		return r.group(ctx, s, v.within(s.Set))
	}
	if s.Memory {
		folder, remove, err := r.memory()
		if err != nil {
			return nil, err
		}
		defer remove()
		inMemory := *r
		inMemory.environment = append(slices.Clone(r.environment), "TMPDIR="+folder)
		r = &inMemory
	}
	builds, err := builds(s, v, r.host)
	if err != nil {
		return nil, fmt.Errorf("plan %s: %w", s.Name, err)
	}
	times, err := r.steps(ctx, []step{builds})
	if err != nil {
		return times, err
	}
	p, err := r.table.plan(s, v, r.host)
	if err != nil {
		return times, fmt.Errorf("plan %s: %w", s.Name, err)
	}
	for _, part := range []func() ([]timing, error){
		func() ([]timing, error) { return r.steps(ctx, p.before) },
		func() ([]timing, error) { return r.withClusters(ctx, p) },
		func() ([]timing, error) { return r.steps(ctx, p.after) },
	} {
		more, err := part()
		times = append(times, more...)
		if err != nil {
			return times, err
		}
	}
	return times, nil
}

// steps runs one step after the other, to the first that fails.
func (r *runner) steps(ctx context.Context, steps []step) (times []timing, err error) {
	for _, s := range steps {
		if len(s.commands) == 0 {
			continue
		}
		t, err := r.timed(s.name, func() ([]timing, error) {
			for _, c := range s.commands {
				if err := r.command(ctx, c); err != nil {
					return nil, fmt.Errorf("%s: %w", s.name, err)
				}
			}
			return nil, nil
		})
		times = append(times, t)
		if err != nil {
			return times, err
		}
	}
	return times, nil
}

// command runs a command in a process group of its own. When ctx ends, so does the group.
func (r *runner) command(ctx context.Context, c command) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	cmd.Dir = filepath.Join(r.host.root(), c.in)
	cmd.Env = slices.Concat(r.environment, c.env)
	cmd.Stdout, cmd.Stderr = r.stdout, r.stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = r.patience
	if c.input != "" {
		input, err := os.Open(filepath.Join(r.host.root(), c.input))
		if err != nil {
			return err
		}
		defer input.Close()
		cmd.Stdin = input
	}
	err := cmd.Run()
	if ctx.Err() != nil && cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what has not ended by itself
	}
	if err == nil {
		return nil
	}
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(c.args[0]), err)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("%s: %w", c, err)
	}
	return fmt.Errorf("start %s: %w", c, err)
}

// suite runs a suite, and says at its end where the time went.
func (r *runner) suite(ctx context.Context, s suite, v values) error {
	started := time.Now()
	times, err := r.run(ctx, s, v)
	fmt.Fprintln(r.stdout, "suites: where the time went:")
	writeTimes(r.stdout, "  ", append(times, timing{name: "total", took: time.Since(started)}))
	return err
}
