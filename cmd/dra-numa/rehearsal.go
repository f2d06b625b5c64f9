package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

const (
	// rehearsalDir is the scratch directory for a checkpoint, in the plugin directory.
	rehearsalDir = "rehearsal"
	// rehearsalSpecsDir is that for a CDI spec, in the directory of specs: the two may be on
	// different disks. Container runtimes read no directory there.
	rehearsalSpecsDir = driver.Name + "-rehearsal"

	// rehearsalPeriod is how long the daemon waits before it tries again.
	rehearsalPeriod = 30 * time.Second
	// rehearsalWait is how long the start waits for the first attempt, which takes some
	// milliseconds. A disk that hangs must not keep the daemon from registering.
	rehearsalWait = 5 * time.Second
	// hookTimeout bounds how long the hook takes to print its usage.
	hookTimeout = 10 * time.Second
)

var errNotRehearsed = errors.New("the daemon has not prepared a made-up claim yet: the disk or the pin hook hangs")

// rehearsal tries after the start whether the daemon could prepare a claim. A new version
// that could not stays unready, so that a rolling update stops.
type rehearsal struct {
	try     func(context.Context) error
	period  time.Duration
	problem atomic.Pointer[error] // why the last attempt failed; nil: there was none yet
	tried   chan struct{}         // closed after the first attempt
}

func newRehearsal(try func(context.Context) error) *rehearsal {
	return &rehearsal{try: try, period: rehearsalPeriod, tried: make(chan struct{})}
}

// run tries until an attempt succeeds or ctx ends. It logs each new problem.
func (r *rehearsal) run(ctx context.Context) {
	told := ""
	for first := true; ctx.Err() == nil; first = false {
		err := r.try(ctx)
		if ctx.Err() != nil {
			return
		}
		r.problem.Store(&err)
		if first {
			close(r.tried)
		}
		if err == nil {
			klog.FromContext(ctx).Info("Rehearsed to prepare a claim")
			return
		}
		if err.Error() != told {
			told = err.Error()
			klog.FromContext(ctx).Error(err, "The daemon could not prepare a claim, trying again")
		}
		select {
		case <-ctx.Done():
		case <-time.After(r.period):
		}
	}
}

// wait waits for the first attempt, but not for long.
func (r *rehearsal) wait(ctx context.Context) {
	select {
	case <-r.tried:
	case <-ctx.Done():
	case <-time.After(rehearsalWait):
	}
}

// err returns why the daemon could not prepare a claim, or nil if it could.
func (r *rehearsal) err() error {
	problem := r.problem.Load()
	if problem == nil {
		return errNotRehearsed
	}
	return *problem
}

// rehearse prepares a made-up claim in scratch directories, and runs the installed hook with
// the arguments that it would get. It also returns what the probe found wrong with partitions.
// It removes its directories, and those that a killed daemon left.
func (o options) rehearse(ctx context.Context, n node) (err error) {
	state, removeState, err := openScratch(o.pluginDir(), rehearsalDir, 0o750)
	if err != nil {
		return fmt.Errorf("rehearse to write a checkpoint: %w", err)
	}
	defer func() { err = errors.Join(err, removeState()) }()
	specs, removeSpecs, err := openScratch(o.cdiDir, rehearsalSpecsDir, 0o755)
	if err != nil {
		return fmt.Errorf("rehearse to write a CDI spec: %w", err)
	}
	defer func() { err = errors.Join(err, removeSpecs()) }()
	err = driver.Rehearse(n.machine, n.config, state, specs, func(args []string) error {
		return runHook(ctx, n.config.Hook.Path, args)
	})
	if err != nil {
		return err
	}
	return o.checkProbe(n.config.BootID)
}

// openScratch makes an empty directory in parent, and opens it. The caller calls remove, which
// removes it with everything in it.
func openScratch(parent, name string, mode fs.FileMode) (dir *os.Root, remove func() error, err error) {
	in, err := openDir(parent, mode)
	if err != nil {
		return nil, nil, err
	}
	if err = in.RemoveAll(name); err == nil {
		err = in.Mkdir(name, mode)
	}
	if err == nil {
		dir, err = in.OpenRoot(name)
	}
	if err != nil {
		return nil, nil, errors.Join(err, in.Close())
	}
	return dir, func() error { return errors.Join(dir.Close(), in.RemoveAll(name), in.Close()) }, nil
}

// runHook runs the hook with the arguments of a CDI spec and --help. The hook then checks the
// arguments before it prints its usage, and pins nothing. On a node where this container may
// not execute the file, the runtime still may: that is no error.
func runHook(ctx context.Context, path string, args []string) error {
	ctx, cancel := context.WithTimeout(ctx, hookTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, append(args[1:len(args):len(args)], "--help")...).CombinedOutput()
	switch {
	case errors.Is(err, fs.ErrPermission):
		klog.FromContext(ctx).Info("The pin hook is not tried: this container may not execute it", "path", path)
		return nil
	case err != nil && len(out) > 0:
		return fmt.Errorf("run %s: %w: %s", path, err, message.OneLine(string(out)))
	case err != nil:
		return fmt.Errorf("run %s: %w", path, err)
	}
	return nil
}

// removeScratch removes what a killed daemon left of a rehearsal in the directory of specs.
func removeScratch(cdiDir string) error {
	return os.RemoveAll(filepath.Join(cdiDir, rehearsalSpecsDir))
}
