package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/test/cluster/topology"
)

const (
	bootAttempts = 3 // QEMU's emulator crashes now and then
	bootTime     = 90 * time.Second
	readyTime    = 240 * time.Second
)

// errNoBoot is a virtual machine that ended, or did not answer in time, before it was of use.
var errNoBoot = errors.New("virtual machine does not boot")

// StartNodes makes every node's disk, boots its machine and waits for kubelet to report it ready. What a failed node
// printed is part of the error.
func (r *Rig) StartNodes(ctx context.Context, machine topology.Topology, b Boot, p Programs) error {
	disks := make([]string, len(r.Nodes))
	for i, n := range r.Nodes {
		if err := os.MkdirAll(r.Path("nodes", n.Name), 0o700); err != nil {
			return err
		}
		var err error
		if disks[i], err = r.makeDisk(n, machine, p); err != nil {
			return err
		}
	}
	begin := time.Now()
	for i, n := range r.Nodes {
		if err := r.startMachine(n, machine, b, disks[i]); err != nil {
			return fmt.Errorf("start node %s: %w", n.Name, err)
		}
	}
	for i, n := range r.Nodes {
		if err := r.waitNode(ctx, n, func() error { return r.startMachine(n, machine, b, disks[i]) }); err != nil {
			return fmt.Errorf("node %s: %w\n%s", n.Name, err, tail(r.Console(n), 40))
		}
		r.logf("%s ready after %.0f s (%s)", n.Name, time.Since(begin).Seconds(), b.Accelerator)
	}
	return nil
}

// waitNode waits for a node to be ready and starts its machine again when it does not boot.
func (r *Rig) waitNode(ctx context.Context, n Node, again func() error) error {
	err := r.waitReady(ctx, n)
	for attempt := 2; errors.Is(err, errNoBoot) && attempt <= bootAttempts; attempt++ {
		r.logf("%s: %v, attempt %d of %d", n.Name, err, attempt, bootAttempts)
		if err := r.stop(pidFile(10+n.Subnet, n.Name)); err != nil {
			return err
		}
		if err := again(); err != nil {
			return err
		}
		err = r.waitReady(ctx, n)
	}
	return err
}

func (r *Rig) waitReady(ctx context.Context, n Node) error {
	err := r.eventually(ctx, n, bootTime, func() error {
		_, err := r.Exec(ctx, n, strings.NewReader(""), io.Discard, "/bin/true")
		return err
	})
	if err != nil {
		if !errors.Is(err, errNoBoot) {
			err = fmt.Errorf("%w: %w", errNoBoot, err)
		}
		return err
	}
	c, err := r.Client()
	if err != nil {
		return err
	}
	return r.eventually(ctx, n, readyTime, func() error {
		node, err := c.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("node %s is not ready", n.Name)
	})
}

// eventually gives up at once when the node's machine has ended.
func (r *Rig) eventually(ctx context.Context, n Node, within time.Duration, try func() error) error {
	var ended error
	err := eventually(within, 300*time.Millisecond, func() error {
		if ended = ctx.Err(); ended != nil {
			return nil
		}
		if _, alive := r.alive(pidFile(10+n.Subnet, n.Name)); !alive {
			ended = fmt.Errorf("%w: its process ended", errNoBoot)
			return nil
		}
		return try()
	})
	if ended != nil {
		return ended
	}
	return err
}
