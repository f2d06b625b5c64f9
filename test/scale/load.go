package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/host"
	"github.com/dra-driver-numa/dra-driver-numa/test/rig/cluster"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/fleet"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/page"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/shape"
)

// filesOfDaemon is how many files a daemon has open, at most: folders, sockets, and its
// connections to the API server.
const filesOfDaemon = 12

// processes is over how many processes the daemons are spread: a process may open only so
// many files.
func processes(daemons int) (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	of := max(limit.Cur/filesOfDaemon, 1)
	return int((uint64(daemons) + of - 1) / of), nil
}

// part runs some of the daemons for another process.
func part() error {
	klog.SetLogger(klog.Logger{}) // thousands of daemons would say the same
	signal.Ignore(os.Interrupt)   // the other process ends first
	return fleet.Serve(fleet.Standard())
}

// flowControl is what the chart installs for the daemons, if it is asked to.
func (c config) flowControl(ctx context.Context) (fleet.FlowControl, error) {
	helm := exec.CommandContext(ctx, c.helm, "template", "dra-driver-numa", filepath.Join(c.repository, "deployments/helm/dra-driver-numa"), "--namespace", fleet.Namespace,
		"--set", "flowControl.enabled=true,serviceAccount.name="+fleet.Account, "--show-only", "templates/flowcontrol.yaml")
	helm.Stderr = os.Stderr
	text, err := helm.Output()
	if err != nil {
		return fleet.FlowControl{}, fmt.Errorf("%s: %w", helm, err)
	}
	return fleet.ReadFlowControl(string(text))
}

// load runs the daemons of many nodes against a control plane.
func (c config) load(ctx context.Context) (err error) {
	if _, _, err := c.build(ctx); err != nil {
		return err
	}
	host.Settle(ctx, c.wait, func(line string) { progress("%s", line) })
	began := time.Now()
	program, err := os.Executable()
	if err != nil {
		return err
	}
	count, err := processes(c.daemons)
	if err != nil {
		return err
	}
	machine, err := shape.Machine()
	if err != nil {
		return err
	}
	control, err := c.flowControl(ctx)
	if err != nil {
		return err
	}
	during := c.during
	during.Reboots = min(during.Reboots, c.daemons)
	p := page.LoadPage{Machine: host.Describe(), Kubernetes: c.kubernetes, Nodes: c.daemons, Claims: c.claims, Settings: during}
	r, err := c.startCluster(ctx)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "load")
	if err != nil {
		return err
	}
	f := fleet.Fleet{Folder: folder, Machine: machine, Nodes: nodeNames(c.daemons), Program: []string{program, "-part"}, Processes: count, Claims: c.claims, Proc: os.DirFS("/proc"), Stall: stall, Progress: progress}
	defer func() {
		f.Close()
		err = errors.Join(err, os.RemoveAll(folder))
	}()
	if f.Config, err = configOf(r); err != nil {
		return err
	}
	if f.APIServer, err = r.Process("apiserver"); err != nil {
		return err
	}
	if err := f.Open(ctx); err != nil {
		return err
	}
	if p.Phases, err = f.Run(ctx, during); err != nil {
		return err
	}
	if p.Starts, err = f.Starts(ctx, control, c.starts); err != nil {
		return err
	}
	p.LoadAfter, p.Took = host.Load(), time.Since(began)
	if err := p.Write(c.pages); err != nil {
		return err
	}
	f.Close()
	return cluster.Down(r.Dir, os.Stderr)
}
