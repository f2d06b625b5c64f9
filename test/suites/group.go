package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// group runs the members of a suite one after the other, to the first that fails. Beside them
// runs another suite, which is looked at before each; only if it passes, what is Then follows.
func (r *runner) group(ctx context.Context, s suite, v values) (times []timing, err error) {
	if len(s.Needs) > 0 {
		if err := r.command(ctx, makes(s.Needs, v.given)); err != nil {
			return nil, err
		}
	}
	var beside *background
	if s.Beside != "" {
		if beside, err = r.beside(s.Beside, v); err != nil {
			return nil, fmt.Errorf("start %s: %w", s.Beside, err)
		}
		defer beside.end()
		fmt.Fprintf(r.stdout, "suites: %s runs beside what follows; it writes to %s\n", s.Beside, besideLog)
	}
	for i, name := range slices.Concat(s.Members, s.Then) {
		if beside != nil {
			if err := beside.passes(ctx, i == len(s.Members)); err != nil {
				return times, err
			}
		}
		t, err := r.stage(ctx, name, v)
		times = append(times, t)
		if err != nil {
			return times, err
		}
	}
	if beside != nil {
		return times, beside.passes(ctx, true)
	}
	return times, nil
}

// stage runs a member of a group.
func (r *runner) stage(ctx context.Context, name string, v values) (timing, error) {
	fmt.Fprintf(r.stdout, "suites: stage %s\n", name)
	return r.timed(name, func() ([]timing, error) {
		member, isSuite := r.table.suite(name)
		if !isSuite {
			return nil, r.command(ctx, makes([]string{name}, v.given))
		}
		times, err := r.run(ctx, member, v)
		if err != nil {
			return times, fmt.Errorf("stage %s: %w", name, err)
		}
		return times, nil
	})
}

const besideLog = "bin/logs/programs.log"

// background is a suite that runs beside others, in a session of its own.
type background struct {
	runner  *runner
	name    string
	cmd     *exec.Cmd
	done    chan struct{} // closed when it has ended
	err     error         // valid then
	printed bool
}

// beside starts a suite that needs no cluster at the lowest priority: the emulated CPUs of
// clusters idle now and then. A kernel with autogroups compares priorities within a session
// only, so the session as a whole gets the lowest one, too.
func (r *runner) beside(name string, v values) (*background, error) {
	path := filepath.Join(r.host.root(), besideLog)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	log, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command("nice", append([]string{"-n", "19", r.self, name}, assignments(v.given)...)...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = r.host.root(), r.environment, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	_ = os.WriteFile("/proc/"+strconv.Itoa(cmd.Process.Pid)+"/autogroup", []byte("19"), 0) // where there is one
	b := &background{runner: r, name: name, cmd: cmd, done: make(chan struct{})}
	go func() {
		b.err = cmd.Wait()
		close(b.done)
	}()
	return b, nil
}

// passes returns an error if the suite has failed, or when it does. It prints what the suite
// has written when it has ended, and waits for that if it should.
func (b *background) passes(ctx context.Context, wait bool) error {
	if wait {
		select {
		case <-b.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	select {
	case <-b.done:
	default:
		return nil
	}
	if (wait || b.err != nil) && !b.printed {
		b.printed = true
		text, err := os.ReadFile(filepath.Join(b.runner.host.root(), besideLog))
		fmt.Fprintf(b.runner.stdout, "%s", text)
		if err != nil {
			return err
		}
	}
	if b.err != nil {
		return fmt.Errorf("%s: %w", b.name, b.err)
	}
	return nil
}

// end has the suite end what it started, and waits for it.
func (b *background) end() {
	_ = b.cmd.Process.Signal(syscall.SIGTERM) // no error counts: it may have ended
	<-b.done
}
