package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

func down(name string) command { return command{args: []string{cluster, "down", "-name", name}} }

// withClusters runs the steps of a plan while its clusters are up. Whatever becomes of them,
// the clusters are stopped, unless they stay; if a step failed, their logs are copied first.
func (r *runner) withClusters(ctx context.Context, p plan) (times []timing, err error) {
	if p.stays || len(p.clusters) == 0 {
		return r.steps(ctx, p.steps)
	}
	for _, name := range p.clusters {
		release, err := r.hold(name)
		if err != nil {
			return nil, err
		}
		defer release()
		if err := r.command(ctx, down(name)); err != nil {
			return nil, fmt.Errorf("stop what is left of cluster %s: %w", name, err)
		}
	}
	defer func() {
		ctx := context.WithoutCancel(ctx)
		for _, name := range p.clusters {
			if err != nil {
				r.keepLogs(ctx, name)
			}
			if failed := r.command(ctx, down(name)); failed != nil {
				fmt.Fprintf(r.stderr, "suites: stop cluster %s: %v\n", name, failed)
			}
		}
	}()
	return r.steps(ctx, p.steps)
}

// hold takes a cluster until it is released or this process ends: the suites of another clone
// have the same cluster, and would stop it. The lock is beside the folder that the rig removes.
func (r *runner) hold(name string) (release func(), err error) {
	kubeconfig, err := r.host.ofCluster("kubeconfig", name)
	if err != nil {
		return nil, err
	}
	folder := filepath.Dir(kubeconfig)
	if err := os.MkdirAll(filepath.Dir(folder), 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(folder+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	release = func() { lock.Close() }
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		holder, _ := io.ReadAll(lock)
		err = fmt.Errorf("cluster %s is used by %s: wait until that has ended, or set RIG_DIR to another folder", name, or(string(holder), "another process"))
	} else if err == nil {
		err = os.WriteFile(lock.Name(), fmt.Appendf(nil, "process %d in %s", os.Getpid(), r.host.root()), 0o600)
	}
	if err != nil {
		release()
	}
	return release, err
}

// keepLogs copies the logs of a cluster to bin/logs, and prints what the rig says about nodes
// that restarted. A cluster that never started has none.
func (r *runner) keepLogs(ctx context.Context, name string) {
	from, err := r.host.ofCluster("logs", name)
	if err != nil {
		return
	}
	if _, err := os.Stat(from); err != nil {
		return
	}
	logs := filepath.Join("bin/logs", name)
	to := filepath.Join(r.host.root(), logs)
	if err := r.replace(ctx, to, from); err != nil {
		fmt.Fprintf(r.stderr, "suites: copy the logs of cluster %s: %v\n", name, err)
		return
	}
	files, _ := filepath.Glob(filepath.Join(to, "numa-node-*.log"))
	for _, file := range files {
		if !strings.HasSuffix(file, "-console.log") {
			fmt.Fprintf(r.stderr, "==> %s <==\n", filepath.Join(logs, filepath.Base(file)))
			_ = r.command(ctx, command{args: []string{"tail", "-n", "40", file}})
		}
	}
	fmt.Fprintf(r.stderr, "suites: the logs of cluster %s are in %s\n", name, logs)
}

// replace makes a folder a copy of another one.
func (r *runner) replace(ctx context.Context, to, from string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return r.command(ctx, command{args: []string{"cp", "-r", from, to}})
}
