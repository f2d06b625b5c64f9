package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/test/rig/topology"
)

// readyTime is how long a node may take at pace 1 until kubelet reports it ready, if its
// first boot succeeds, and longestBoot how long until its last one has.
const (
	readyTime   = 240 * time.Second
	longestBoot = bootTime * bootAttempts * (bootAttempts + 1) / 2
)

// StartNodes makes every node's disk, boots its machine and waits for kubelet to report
// it ready. What a failed node printed is part of the error.
func (r *Cluster) StartNodes(ctx context.Context, machine topology.Topology, b Boot, p Programs) error {
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
	for _, n := range r.Nodes {
		if err := r.waitReady(ctx, n); err != nil {
			return fmt.Errorf("node %s: %w\n%s\n%s", n.Name, err, tail(r.Path("logs", n.Name+".log"), 10), tail(r.Console(n), 40))
		}
		r.logf("%s ready after %.0f s (%s)", n.Name, time.Since(begin).Seconds(), b.Accelerator)
	}
	return nil
}

// waitReady gives up at once when the node's machine has ended.
func (r *Cluster) waitReady(ctx context.Context, n Node) error {
	c, err := r.Client()
	if err != nil {
		return err
	}
	var ended error
	err = eventually(r.patiently(longestBoot+readyTime), 300*time.Millisecond, func() error {
		if ended = ctx.Err(); ended != nil {
			return nil
		}
		if _, alive := r.alive(pidFile(machineOrder(n), n.Name)); !alive {
			ended = errors.New("its virtual machine has ended")
			return nil
		}
		node, err := c.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return errors.New("it is not ready")
	})
	return cmp.Or(ended, err)
}
