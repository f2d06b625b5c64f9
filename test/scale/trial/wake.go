package trial

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/test/scale/proc"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/shape"
)

// Woken is what was measured from one moment on, until no pod was left that the scheduler tries by
// itself. An ordinary pod, without a claim, was created at the beginning.
type Woken struct {
	Nodes        int
	Pending      int           // pods whose claims fit nowhere
	Write        bool          // before the ordinary pod, one slice was written with another order
	Attempts     int           // to find a node for pods, in vain
	SchedulerCPU time.Duration // for all pods
	Wait         time.Duration // of the ordinary pod, until it had a node
}

const (
	// longestBackoff is how long the scheduler waits at most before it tries a pod again that an
	// event has woken (podMaxBackoffSeconds).
	longestBackoff = 10 * time.Second
	// lookPeriod is how often the scheduler is asked for its queues, which takes CPU time of it.
	lookPeriod = time.Second
)

// Wake has so many pods Pending whose claims fit nowhere, and measures with and without a write, in
// this order or the other one. Each time, it first leaves the pods alone until no backoff is left.
func (c *Cluster) Wake(ctx context.Context, s shape.Shape, pending int, writeFirst bool) (list []Woken, err error) {
	err = c.published(ctx, s, Load{Pods: warmUp}, func() error {
		if _, err := c.place(ctx, s, batch{"too-much", shape.TemplateTooMuch, pending, false}); err != nil {
			return err
		}
		for i, write := range []bool{writeFirst, !writeFirst} {
			w, err := c.wake(ctx, s, pending, write, fmt.Sprintf("ordinary-%d", i))
			if err != nil {
				return err
			}
			list = append(list, w)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%d nodes, %d Pending pods: %w", len(c.Nodes), pending, err)
	}
	return list, nil
}

func (c *Cluster) wake(ctx context.Context, s shape.Shape, pending int, write bool, name string) (w Woken, err error) {
	attempts, err := c.tried(ctx, pending)
	if err != nil {
		return w, err
	}
	select {
	case <-ctx.Done():
		return w, ctx.Err()
	case <-time.After(longestBackoff):
	}
	cpu, err := proc.CPUTime(c.Proc, c.Processes.Scheduler)
	if err != nil {
		return w, err
	}
	if write {
		if err := c.reorder(ctx, s); err != nil {
			return w, err
		}
	}
	placed, err := c.place(ctx, shape.Shape{CPUs: s.CPUs}, batch{name: name, pods: 1, fit: true})
	if err != nil {
		return w, err
	}
	after, err := c.tried(ctx, pending)
	if err != nil {
		return w, err
	}
	w = Woken{Nodes: len(c.Nodes), Pending: pending, Write: write, Attempts: after - attempts, Wait: placed.result().P50}
	cpuAfter, err := proc.CPUTime(c.Proc, c.Processes.Scheduler)
	w.SchedulerCPU = cpuAfter - cpu
	return w, err
}

// reorder writes the slice of the first node with its first zone last.
func (c *Cluster) reorder(ctx context.Context, s shape.Shape) error {
	client := c.Client.ResourceV1().ResourceSlices()
	slice, err := client.Get(ctx, s.Slices(c.Nodes[0])[0].Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	slice.Spec.Devices = append(slice.Spec.Devices[1:], slice.Spec.Devices[0])
	_, err = client.Update(ctx, slice, metav1.UpdateOptions{})
	return err
}

// tried waits until so many pods wait for an event and none is to be tried, in two looks: an event may
// be under way in the first. It returns the attempts until then that found no node.
func (c *Cluster) tried(ctx context.Context, pending int) (attempts int, err error) {
	var last waiting
	for since := time.Now(); ; {
		now, err := c.Metrics.waiting(ctx)
		switch {
		case err != nil:
			return 0, err
		case now == last && now.due == 0 && now.idle == pending:
			return now.attempts, nil
		case now != last:
			last, since = now, time.Now()
		case time.Since(since) > c.Stall:
			return 0, fmt.Errorf("%d of %d pods are Pending, %d are to be tried, and nothing happens for %s", now.idle, pending, now.due, c.Stall)
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(lookPeriod):
		}
	}
}
