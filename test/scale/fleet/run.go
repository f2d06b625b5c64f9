package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/test/scale/shape"
)

// Settings are what Run does to the daemons.
type Settings struct {
	Quiet   time.Duration // for which nothing happens
	Reboots int           // how many nodes reboot; at most all
	Flicker time.Duration // for which the partitions of all claims come and go
}

// flickerPeriod is how long partitions are valid, and how long they are not, while they
// flicker. The daemon waits for a second before it believes that one is invalid.
const flickerPeriod = 3 * time.Second

// The names of the phases that the page looks for.
const (
	PhaseNone     = "no daemon runs"
	PhaseQuiet    = "nothing happens"
	PhaseRestart  = "all daemons restart"
	PhaseKubelets = "kubelets restart, some at a time"
	PhaseFlicker  = "partitions flicker"
)

// Run goes through all phases. Creating the claims is none: that is not the daemons' work.
func (f *Fleet) Run(ctx context.Context, s Settings) (phases []Phase, err error) {
	if err := f.createClaims(ctx); err != nil {
		return nil, err
	}
	all := len(f.Nodes)
	for _, step := range []struct {
		phase Phase
		do    func(context.Context) ([]time.Duration, error)
	}{
		{
			Phase{Name: PhaseNone, Means: "Only the control plane runs: what another user waits for without this driver."},
			func(ctx context.Context) ([]time.Duration, error) { return nil, sleep(ctx, s.Quiet/2) },
		},
		{
			Phase{Name: "all daemons start", Means: "The driver is installed on all nodes at once.", Daemons: all},
			func(ctx context.Context) ([]time.Duration, error) { return f.start(ctx, f.Nodes) },
		},
		{
			Phase{Name: "claims are prepared", Means: fmt.Sprintf("The daemons prepare the claims of their nodes, %d nodes at a time. Each claim has %d CPUs.", workers, shape.PodCPUs), Daemons: all},
			func(ctx context.Context) ([]time.Duration, error) { return f.prepare(ctx, f.Nodes) },
		},
		{
			Phase{Name: PhaseQuiet, Means: "All claims run, and no fact of any node changes.", Daemons: all},
			func(ctx context.Context) ([]time.Duration, error) { return nil, sleep(ctx, s.Quiet) },
		},
		{
			Phase{Name: PhaseRestart, Means: "All daemons end and start again, with nothing changed.", Daemons: all},
			func(ctx context.Context) ([]time.Duration, error) { return f.restart(ctx, f.Nodes) },
		},
		{
			Phase{Name: PhaseKubelets, Means: fmt.Sprintf("The slices of a node are deleted, as its kubelet does when it starts. The next node's turn is when they are back. %d nodes at a time have theirs.", workers), Daemons: all},
			f.restartKubelets,
		},
		{
			Phase{Name: "all kubelets restart at once", Means: "The slices of all nodes are deleted as fast as the API server can.", Daemons: all},
			f.restartAllKubelets,
		},
		{
			Phase{Name: "nodes reboot", Means: "The slices of these nodes are deleted, their daemons start in another boot, and the kubelets ask for their claims again.", Daemons: s.Reboots},
			func(ctx context.Context) ([]time.Duration, error) { return f.reboot(ctx, f.Nodes[:s.Reboots]) },
		},
		{
			Phase{Name: "a core goes offline on each node", Means: "The machine of every node changes at once, so all slices are written.", Daemons: all},
			f.unplug,
		},
		{
			Phase{Name: PhaseFlicker, Means: fmt.Sprintf("The kernel makes the partitions of all claims invalid, for %s of every %s.", flickerPeriod, 2*flickerPeriod), Daemons: all},
			func(ctx context.Context) ([]time.Duration, error) { return nil, f.flicker(ctx, s.Flicker) },
		},
	} {
		phase, err := f.measure(ctx, step.phase, step.do)
		if err != nil {
			return nil, err
		}
		phases = append(phases, phase)
	}
	return phases, nil
}

func (f *Fleet) restart(ctx context.Context, nodes []string) ([]time.Duration, error) {
	if err := f.stop(ctx, nodes); err != nil {
		return nil, err
	}
	return f.start(ctx, nodes)
}

// restartKubelets restarts some kubelets at a time. It returns how long the slices of each
// node were away.
func (f *Fleet) restartKubelets(ctx context.Context) (away []time.Duration, err error) {
	began := time.Now()
	err = f.each(ctx, f.Nodes, func(ctx context.Context, node string) error {
		if err := f.deleteSlices(ctx, node); err != nil {
			return err
		}
		return f.waitForSlices(ctx, []string{node}, began)
	})
	return f.away(), errors.Join(err, f.noteWork(ctx))
}

// restartAllKubelets does not wait in between.
func (f *Fleet) restartAllKubelets(ctx context.Context) (away []time.Duration, err error) {
	began := time.Now()
	if err := f.each(ctx, f.Nodes, f.deleteSlices); err != nil {
		return nil, err
	}
	err = f.waitForSlices(ctx, f.Nodes, began)
	return f.away(), errors.Join(err, f.noteWork(ctx))
}

// noteWork notes what each daemon did until the slices of its node were back.
func (f *Fleet) noteWork(ctx context.Context) error {
	windows := make(map[string]Window)
	for _, node := range f.Nodes {
		windows[node] = f.slices.window(node)
	}
	return f.traces(ctx, windows)
}

// waitForSlices waits until slices that were deleted after a time are back.
func (f *Fleet) waitForSlices(ctx context.Context, nodes []string, after time.Time) error {
	_, err := wait(ctx, nodes, after, f.Stall, func(node string) bool {
		written, deleted := f.slices.times(node)
		return deleted.After(after) && written.After(deleted)
	}, noSlices)
	return err
}

func noSlices(node string) string { return "node " + node + " has no new slices" }

// away returns how long the slices of each node were away, the last time.
func (f *Fleet) away() (away []time.Duration) {
	for _, node := range f.Nodes {
		written, deleted := f.slices.times(node)
		away = append(away, written.Sub(deleted))
	}
	return away
}

func (f *Fleet) reboot(ctx context.Context, nodes []string) (took []time.Duration, err error) {
	if err := f.stop(ctx, nodes); err != nil {
		return nil, err
	}
	if err := f.each(ctx, nodes, f.deleteSlices); err != nil {
		return nil, err
	}
	if err := f.call(ctx, nodes, "Reboot", nil); err != nil {
		return nil, err
	}
	if took, err = f.start(ctx, nodes); err != nil {
		return nil, err
	}
	_, err = f.prepare(ctx, nodes)
	return took, err
}

// unplug takes a core of all machines away, and returns when the slices of each node say
// so.
func (f *Fleet) unplug(ctx context.Context) ([]time.Duration, error) {
	began := time.Now()
	if err := f.call(ctx, f.Nodes, "Unplug", nil); err != nil {
		return nil, err
	}
	return wait(ctx, f.Nodes, began, f.Stall, func(node string) bool {
		written, _ := f.slices.times(node)
		return written.After(began)
	}, noSlices)
}

func (f *Fleet) flicker(ctx context.Context, during time.Duration) error {
	method := map[bool]string{true: "Break", false: "Mend"}
	faulty := true
	for began := time.Now(); time.Since(began) < during; faulty = !faulty {
		if err := f.call(ctx, f.Nodes, method[faulty], nil); err != nil {
			return err
		}
		if err := sleep(ctx, flickerPeriod); err != nil {
			return err
		}
	}
	return f.call(ctx, f.Nodes, method[false], nil)
}
