package trial

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/shape"
)

// Ordered is what a trial measured while nodes wrote their slices again in another order.
type Ordered struct {
	Result
	Every  int // as of Order
	Writes int // of slices
	Evenness
}

// Order measures pods of this driver's shape. After every so many claims that have devices, the
// slices of the nodes whose zones then begin with another one by zoneOrder: spread are written. With
// 0, none is, which is zoneOrder: static.
func (c *Cluster) Order(ctx context.Context, s shape.Shape, load Load, every int) (o Ordered, err error) {
	o.Every = every
	err = c.published(ctx, s, load, func() error {
		w, version, err := c.orders(ctx, s, every)
		if err != nil {
			return err
		}
		following, stop := context.WithCancel(ctx)
		defer stop()
		done := make(chan error, 1)
		go func() { done <- w.follow(following, version, load.Pods) }()
		if o.Result, err = c.measured(ctx, s, load); err != nil {
			return err
		}
		if err := <-done; err != nil {
			return err
		}
		o.Writes, o.Evenness = w.writes, w.evenness()
		return nil
	})
	if err != nil {
		return o, fmt.Errorf("%d nodes, a write after every %d claims: %w", len(c.Nodes), every, err)
	}
	return o, nil
}

// orders is what all nodes know of their claims, and write.
type orders struct {
	cluster *Cluster
	shape   shape.Shape
	every   int
	writing map[string]chan struct{} // by node: full while it writes

	mu     sync.Mutex                // guards what follows
	claims map[types.UID]bool        // that have devices
	count  map[string]int            // of them, by node
	held   map[string]map[string]int // CPUs, by node and device
	due    map[string]bool           // nodes with more claims since the last writes
	slices map[string]*resourceapi.ResourceSlice
	writes int
}

// orders also returns the version of the claims from which on they are followed.
func (c *Cluster) orders(ctx context.Context, s shape.Shape, every int) (_ *orders, version string, err error) {
	published, err := c.Client.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, "", err
	}
	claims, err := c.Client.ResourceV1().ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, "", err
	}
	w := &orders{
		cluster: c, shape: s, every: every, writing: map[string]chan struct{}{},
		claims: map[types.UID]bool{}, count: map[string]int{}, held: map[string]map[string]int{}, due: map[string]bool{}, slices: map[string]*resourceapi.ResourceSlice{},
	}
	for i := range published.Items {
		node := published.Items[i].Spec.Pool.Name
		w.slices[node], w.writing[node] = &published.Items[i], make(chan struct{}, 1)
	}
	return w, claims.ResourceVersion, nil
}

// follow has nodes write their slices until so many claims have devices. Nodes do not wait for each
// other: those of a cluster do not.
func (w *orders) follow(ctx context.Context, version string, claims int) error {
	writers, ctx := errgroup.WithContext(ctx)
	err := w.events(ctx, version, claims, func(node string) {
		writers.Go(func() error { return w.write(ctx, node) })
	})
	if failed := writers.Wait(); failed != nil {
		return failed
	}
	return err
}

// events calls due with each node whose slice is to be written, until so many claims have devices.
func (w *orders) events(ctx context.Context, version string, claims int, due func(node string)) error {
	events := &following[*resourceapi.ResourceClaim]{client: w.cluster.Client.ResourceV1().ResourceClaims(namespace), version: version}
	defer events.stop()
	for known := 0; known < claims; {
		coming, err := events.events(ctx)
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event, open := <-coming:
			claim, err := events.object(event, open)
			if err != nil {
				return err
			}
			if claim == nil {
				continue
			}
			var nodes []string
			nodes, known = w.note(claim)
			for _, node := range nodes {
				due(node)
			}
		}
	}
	return nil
}

// note takes in a claim, and returns the nodes that are to write now, and how many claims have devices.
func (w *orders) note(claim *resourceapi.ResourceClaim) (nodes []string, claims int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if claim.Status.Allocation == nil || w.claims[claim.UID] {
		return nil, len(w.claims)
	}
	w.claims[claim.UID] = true
	for _, result := range claim.Status.Allocation.Devices.Results {
		if w.held[result.Pool] == nil {
			w.held[result.Pool] = map[string]int{}
		}
		cpus := result.ConsumedCapacity[deviceclasses.CapacityCPU]
		w.held[result.Pool][result.Device] += int(cpus.Value())
		w.count[result.Pool]++
		w.due[result.Pool] = true
	}
	if w.every == 0 || len(w.claims)%w.every > 0 {
		return nil, len(w.claims)
	}
	nodes = slices.Sorted(maps.Keys(w.due))
	clear(w.due)
	return nodes, len(w.claims)
}

// next is the slice of a node as it shall be, or nil if the same device comes first.
func (w *orders) next(node string) *resourceapi.ResourceSlice {
	w.mu.Lock()
	defer w.mu.Unlock()
	devices := w.shape.Ordered(&w.cluster.Machine, w.held[node], deviceclasses.ZoneOrderSpread)
	last := w.slices[node]
	if last.Spec.Devices[0].Name == devices[0].Name {
		return nil
	}
	next := last.DeepCopy()
	next.Spec.Devices = devices
	return next
}

// write updates the slice of a node, after a write of it that is under way, with what is known by then.
// Like the kubelet helper, it keeps the generation of a slice whose devices are in another order.
func (w *orders) write(ctx context.Context, node string) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case w.writing[node] <- struct{}{}:
	}
	defer func() { <-w.writing[node] }()
	slice := w.next(node)
	if slice == nil {
		return nil
	}
	written, err := w.cluster.Client.ResourceV1().ResourceSlices().Update(ctx, slice, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slices[node] = written
	w.writes++
	return nil
}

// Evenness is how even claims are on the zones of their nodes.
type Evenness struct {
	Several    int     // nodes with several claims
	OneZone    int     // of them, those whose claims are all on one zone
	Difference float64 // CPUs that claims hold of the fullest zone of a node less those of the emptiest: the mean of nodes with claims
}

// evenness is that of all claims, each of one device.
func (w *orders) evenness() (e Evenness) {
	difference := 0
	for node, devices := range w.held {
		if w.count[node] > 1 {
			e.Several++
			if len(devices) == 1 {
				e.OneZone++
			}
		}
		cpus := slices.Collect(maps.Values(devices))
		if len(cpus) < len(w.cluster.Machine.Zones) {
			cpus = append(cpus, 0)
		}
		difference += slices.Max(cpus) - slices.Min(cpus)
	}
	e.Difference = float64(difference) / float64(max(len(w.held), 1))
	return e
}
