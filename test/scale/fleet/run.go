package fleet

import (
	"context"
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

// The names of the phases that have goals.
const (
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
	all := len(f.daemons)
	for _, step := range []struct {
		phase Phase
		do    func(context.Context) ([]time.Duration, error)
	}{
		{
			Phase{Name: "no daemon runs", Means: "Only the control plane runs: what another user waits for without this driver."},
			func(ctx context.Context) ([]time.Duration, error) { return nil, sleep(ctx, s.Quiet/2) },
		},
		{
			Phase{Name: "all daemons start", Means: "The driver is installed on all nodes at once.", Daemons: all},
			func(ctx context.Context) ([]time.Duration, error) { return f.start(ctx, f.daemons) },
		},
		{
			Phase{Name: "claims are prepared", Means: fmt.Sprintf("The daemons prepare the claims of their nodes, %d nodes at a time. Each claim has %d CPUs.", workers, shape.PodCPUs), Daemons: all},
			func(ctx context.Context) ([]time.Duration, error) { return f.prepare(ctx, f.daemons) },
		},
		{
			Phase{Name: PhaseQuiet, Means: "All claims run, and no fact of any node changes.", Daemons: all},
			func(ctx context.Context) ([]time.Duration, error) { return nil, sleep(ctx, s.Quiet) },
		},
		{
			Phase{Name: PhaseRestart, Means: "All daemons end and start again, with nothing changed.", Daemons: all},
			func(ctx context.Context) ([]time.Duration, error) { return f.restart(ctx, f.daemons) },
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
			func(ctx context.Context) ([]time.Duration, error) { return f.reboot(ctx, f.daemons[:s.Reboots]) },
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

func (f *Fleet) restart(ctx context.Context, daemons []*daemon) ([]time.Duration, error) {
	f.stop(daemons)
	return f.start(ctx, daemons)
}

// restartKubelets restarts some kubelets at a time. It returns how long the slices of each
// node were away.
func (f *Fleet) restartKubelets(ctx context.Context) (away []time.Duration, err error) {
	began := time.Now()
	err = f.each(ctx, f.daemons, func(ctx context.Context, d *daemon) error {
		if err := f.deleteSlices(ctx, d); err != nil {
			return err
		}
		return f.waitForSlices(ctx, []*daemon{d}, began)
	})
	return f.away(), err
}

// restartAllKubelets does not wait in between.
func (f *Fleet) restartAllKubelets(ctx context.Context) (away []time.Duration, err error) {
	began := time.Now()
	if err := f.each(ctx, f.daemons, f.deleteSlices); err != nil {
		return nil, err
	}
	err = f.waitForSlices(ctx, f.daemons, began)
	return f.away(), err
}

// waitForSlices waits until slices that were deleted after a time are back.
func (f *Fleet) waitForSlices(ctx context.Context, daemons []*daemon, after time.Time) error {
	_, err := f.wait(ctx, daemons, after, func(d *daemon) bool {
		written, deleted := f.slices.times(d.node)
		return deleted.After(after) && written.After(deleted)
	})
	return err
}

// away returns how long the slices of each node were away, the last time.
func (f *Fleet) away() (away []time.Duration) {
	for _, d := range f.daemons {
		written, deleted := f.slices.times(d.node)
		away = append(away, written.Sub(deleted))
	}
	return away
}

func (f *Fleet) reboot(ctx context.Context, daemons []*daemon) (took []time.Duration, err error) {
	f.stop(daemons)
	if err := f.each(ctx, daemons, f.deleteSlices); err != nil {
		return nil, err
	}
	for _, d := range daemons {
		if err := d.reboot("second"); err != nil {
			return nil, err
		}
	}
	if took, err = f.start(ctx, daemons); err != nil {
		return nil, err
	}
	_, err = f.prepare(ctx, daemons)
	return took, err
}

// unplugged are the CPUs of one core of the machine.
const unplugged = "31,63"

// unplug takes a core of all machines away, and returns when the slices of each node say
// so.
func (f *Fleet) unplug(ctx context.Context) ([]time.Duration, error) {
	machine, err := shape.MachineWithout(unplugged)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	for _, d := range f.daemons {
		d.machine = machine
		d.life.core.SetMachine(machine)
	}
	return f.wait(ctx, f.daemons, began, func(d *daemon) bool {
		written, _ := f.slices.times(d.node)
		return written.After(began)
	})
}

func (f *Fleet) flicker(ctx context.Context, during time.Duration) error {
	faulty := true
	for began := time.Now(); time.Since(began) < during; faulty = !faulty {
		for _, d := range f.daemons {
			d.faulty.Store(faulty)
		}
		if err := sleep(ctx, flickerPeriod); err != nil {
			return err
		}
	}
	for _, d := range f.daemons {
		d.faulty.Store(false)
	}
	return nil
}
