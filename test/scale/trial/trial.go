// Package trial publishes a shape on every node of a cluster, has the scheduler place
// pods, and measures that. It starts no program, and judges nothing.
package trial

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	pprof "github.com/google/pprof/profile"
	"k8s.io/client-go/kubernetes"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/proc"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/profile"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/shape"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/stats"
)

// Cluster is where trials run, one after the other.
type Cluster struct {
	Client    kubernetes.Interface
	Processes Processes
	Scheduler profile.Source // only Profile needs it
	Metrics   Metrics        // of the scheduler
	Proc      fs.FS          // /proc
	Nodes     []string       // that Prepare creates
	Machine   numa.Machine
	// Stall is for how long no pod may make progress before a trial fails.
	Stall time.Duration

	foreign int // claims of another driver
}

// Processes are the ids of the measured programs.
type Processes struct{ Scheduler, APIServer, Etcd int }

// Load is what the pods of a trial are.
type Load struct {
	Pods    int // that fit
	TooMuch int // that fit nowhere, created before the others
	Fill    int // NUMA nodes that other claims hold before
	Left    int // CPUs of each of them that are left
	Foreign int // claims of another driver, of nodes that the cluster does not have
}

// Result is what one trial measured.
type Result struct {
	Shape          string
	Nodes          int
	Load           Load
	PodsPerSecond  float64       // from the first creation to the last pod with a node
	P50, P99       time.Duration // from the creation of a pod until it has a node
	SchedulerCPU   time.Duration // for each pod that fits
	PreFilter      time.Duration // in which the scheduler ran these plugins, for each pod that fits
	APIServerBytes int64         // in memory when the last pod had a node
	EtcdBytes      int64         // likewise
	Timeouts       int           // pods for which the scheduler ran out of time at least once
}

// warmUp is how many pods the scheduler places before it is measured. So it knows the
// slices and what others hold, and has compiled the selectors.
const warmUp = 10

// Run measures the shape. It leaves the cluster as it was, but with claims of another driver.
func (c *Cluster) Run(ctx context.Context, s shape.Shape, load Load) (Result, error) {
	r, err := c.run(ctx, s, load)
	if err != nil {
		return Result{}, fmt.Errorf("%s, %d nodes: %w", s.Name, len(c.Nodes), err)
	}
	return r, nil
}

func (c *Cluster) run(ctx context.Context, s shape.Shape, load Load) (r Result, err error) {
	err = c.published(ctx, s, load, func() (err error) {
		r, err = c.measured(ctx, s, load)
		return err
	})
	return r, err
}

// measured places the pods of a load.
func (c *Cluster) measured(ctx context.Context, s shape.Shape, load Load) (r Result, err error) {
	before, err := c.spent(ctx)
	if err != nil {
		return r, err
	}
	placed, err := c.place(ctx, s, load.batches()...)
	if err != nil {
		return r, err
	}
	after, err := c.spent(ctx)
	if err != nil {
		return r, err
	}
	pods := time.Duration(load.Pods)
	r = placed.result()
	r.Shape, r.Nodes, r.Load = s.Name, len(c.Nodes), load
	r.SchedulerCPU, r.PreFilter = (after.cpu-before.cpu)/pods, (after.preFilter-before.preFilter)/pods
	if r.APIServerBytes, err = proc.Memory(c.Proc, c.Processes.APIServer); err != nil {
		return r, err
	}
	r.EtcdBytes, err = proc.Memory(c.Proc, c.Processes.Etcd)
	return r, err
}

// spent is the scheduler's time since it started.
type spent struct{ cpu, preFilter time.Duration }

func (c *Cluster) spent(ctx context.Context) (s spent, err error) {
	if s.preFilter, err = c.Metrics.preFilter(ctx); err != nil {
		return s, err
	}
	s.cpu, err = proc.CPUTime(c.Proc, c.Processes.Scheduler)
	return s, err
}

// Profile is what the scheduler's CPU time went to while it placed pods of a shape.
type Profile struct {
	Shape string
	Nodes int
	Pods  int
	CPU   *pprof.Profile
	Parts []profile.Part // of CPU
}

// Profile runs the shape as Run does, but profiles the scheduler, which makes it slower.
func (c *Cluster) Profile(ctx context.Context, s shape.Shape, pods int) (Profile, error) {
	p, load := Profile{Shape: s.Name, Nodes: len(c.Nodes), Pods: pods}, Load{Pods: pods}
	err := c.published(ctx, s, load, func() (err error) {
		p.CPU, err = c.Scheduler.During(ctx, func() error {
			_, err := c.place(ctx, s, load.batches()...)
			return err
		})
		return err
	})
	if err == nil {
		p.Parts, err = profile.Split(p.CPU)
	}
	if err != nil {
		return Profile{}, fmt.Errorf("profile %s, %d nodes: %w", s.Name, len(c.Nodes), err)
	}
	return p, nil
}

// published calls do while the shape is published, others hold what the load says, and the
// scheduler knows of both.
func (c *Cluster) published(ctx context.Context, s shape.Shape, load Load, do func() error) error {
	if err := c.have(ctx, load.Foreign); err != nil {
		return err
	}
	if err := c.publish(ctx, s, load); err != nil {
		return err
	}
	if _, err := c.place(ctx, s, Load{Pods: min(warmUp, load.Pods)}.batches()...); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	if err := c.removePods(ctx); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return c.withdraw(ctx, s, load)
}

// result computes what can be known from the pods alone.
func (p placed) result() Result {
	latencies := make([]time.Duration, 0, len(p.bound))
	var first, last time.Time
	for name, bound := range p.bound {
		created := p.created[name]
		latencies = append(latencies, bound.Sub(created))
		if first.IsZero() || created.Before(first) {
			first = created
		}
		if bound.After(last) {
			last = bound
		}
	}
	return Result{
		PodsPerSecond: float64(len(p.bound)) / last.Sub(first).Seconds(),
		P50:           stats.Percentile(latencies, 0.5),
		P99:           stats.Percentile(latencies, 0.99),
		Timeouts:      len(p.timedOut),
	}
}

// objects are the classes, templates and slices of the shape, and what others hold.
func (c *Cluster) objects(s shape.Shape, load Load) (list []object) {
	resources := c.Client.ResourceV1()
	for i := range s.Classes {
		list = append(list, objectOf(resources.DeviceClasses(), &s.Classes[i]))
	}
	for _, template := range s.Templates() {
		list = append(list, objectOf(resources.ResourceClaimTemplates(namespace), template))
	}
	for i, node := range c.Nodes {
		for _, slice := range s.Filled(&c.Machine, load.full(i, len(c.Nodes))).Slices(node) {
			list = append(list, objectOf(resources.ResourceSlices(), slice))
		}
	}
	return append(list, c.fill(s, load)...)
}

func (c *Cluster) publish(ctx context.Context, s shape.Shape, load Load) error {
	var calls []call
	for _, o := range c.objects(s, load) {
		calls = append(calls, o.create)
	}
	return parallel(ctx, calls)
}

// withdraw removes the pods, and what publish has created. One request to delete all
// slices of thousands of nodes could take longer than the minute that the API server
// gives it.
func (c *Cluster) withdraw(ctx context.Context, s shape.Shape, load Load) error {
	if err := c.removePods(ctx); err != nil {
		return err
	}
	var calls []call
	for _, o := range c.objects(s, load) {
		calls = append(calls, o.remove)
	}
	return parallel(ctx, calls)
}
