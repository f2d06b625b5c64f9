package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/rpc"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
)

// remote is a part in its process.
type remote struct {
	nodes   []string
	process *exec.Cmd
	client  *rpc.Client
}

// pipes are the two directions of a connection with a process.
type pipes struct {
	io.ReadCloser
	io.WriteCloser
}

func (p pipes) Close() error { return errors.Join(p.WriteCloser.Close(), p.ReadCloser.Close()) }

// Standard is the connection of a process with the one that has started it.
func Standard() io.ReadWriteCloser { return pipes{os.Stdin, os.Stdout} }

// startParts starts the processes, and spreads the nodes over them.
func (f *Fleet) startParts(ctx context.Context, user *rest.Config) error {
	if err := rest.LoadTLSFiles(user); err != nil {
		return err
	}
	size := (len(f.Nodes) + f.Processes - 1) / f.Processes
	for i, nodes := range slices.Collect(slices.Chunk(f.Nodes, size)) {
		part, err := startPart(ctx, f.Program)
		if err != nil {
			return err
		}
		part.nodes = nodes
		f.parts = append(f.parts, part)
		options := PartOptions{
			Host: user.Host, CA: user.CAData, Token: user.BearerToken, Folder: filepath.Join(f.Folder, fmt.Sprint(i)), Nodes: nodes,
			Workers: max(1, workers/f.Processes), Stall: f.Stall,
		}
		if err := part.call(ctx, "Open", options, &None{}); err != nil {
			return err
		}
	}
	return nil
}

func startPart(ctx context.Context, program []string) (*remote, error) {
	process := exec.CommandContext(ctx, program[0], program[1:]...)
	process.Stderr = os.Stderr
	in, err := process.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := process.Start(); err != nil {
		return nil, fmt.Errorf("start the process of some daemons: %w", err)
	}
	return &remote{process: process, client: rpc.NewClient(pipes{out, in})}, nil
}

// call calls a method of the part.
func (r *remote) call(ctx context.Context, method string, argument, answer any) error {
	call := r.client.Go("Part."+method, argument, answer, make(chan *rpc.Call, 1))
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-call.Done:
		return call.Error
	}
}

// close ends the process: it stops its daemons when the connection ends.
func (r *remote) close() {
	_ = r.client.Close()
	_ = r.process.Wait()
}

// of returns those of the nodes that the part has.
func (r *remote) of(nodes []string) []string {
	wanted := sets.New(nodes...)
	return slices.DeleteFunc(slices.Clone(r.nodes), func(node string) bool { return !wanted.Has(node) })
}

// call calls a method of all parts that have some of the nodes, at once. The method gets
// those nodes. Took gets all answers; nil if the method has none.
func (f *Fleet) call(ctx context.Context, nodes []string, method string, took *[]time.Duration) error {
	return f.ask(func(part *remote) (func(), error) {
		its := part.of(nodes)
		if took == nil {
			return func() {}, part.call(ctx, method, its, &None{})
		}
		var answer []time.Duration
		err := part.call(ctx, method, its, &answer)
		return func() { *took = append(*took, answer...) }, err
	})
}

// ask asks all parts at once, then takes what each has answered.
func (f *Fleet) ask(one func(*remote) (take func(), err error)) error {
	takes, failed := make([]func(), len(f.parts)), make([]error, len(f.parts))
	var group sync.WaitGroup
	for i, part := range f.parts {
		group.Go(func() { takes[i], failed[i] = one(part) })
	}
	group.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	for _, take := range takes {
		take()
	}
	return nil
}

// start starts the daemons of the nodes at once, and waits until all of them are ready. It
// returns how long each took.
func (f *Fleet) start(ctx context.Context, nodes []string) (took []time.Duration, err error) {
	err = f.call(ctx, nodes, "Start", &took)
	return took, err
}

func (f *Fleet) stop(ctx context.Context, nodes []string) error {
	return f.call(ctx, nodes, "Stop", nil)
}

// prepare has the daemons prepare the claims of their nodes. It returns how long each
// claim took.
func (f *Fleet) prepare(ctx context.Context, nodes []string) (took []time.Duration, err error) {
	err = f.ask(func(part *remote) (func(), error) {
		var claims []Claim
		for _, node := range part.of(nodes) {
			claims = append(claims, f.claims[node]...)
		}
		var answer []time.Duration
		err := part.call(ctx, "Prepare", claims, &answer)
		return func() { took = append(took, answer...) }, err
	})
	return took, err
}

// counts returns the requests so far of each daemon.
func (f *Fleet) counts(ctx context.Context) (all []Counts, err error) {
	err = f.ask(func(part *remote) (func(), error) {
		var answer []Counts
		err := part.call(ctx, "Counts", None{}, &answer)
		return func() { all = append(all, answer...) }, err
	})
	return all, err
}

// traces forgets what the daemons have done so far. What each of them did in its window is
// the work of the phase.
func (f *Fleet) traces(ctx context.Context, windows map[string]Window) error {
	f.work = nil
	return f.ask(func(part *remote) (func(), error) {
		var answer map[string]Work
		err := part.call(ctx, "Work", windows, &answer)
		return func() { f.work = slices.AppendSeq(f.work, maps.Values(answer)) }, err
	})
}

// sum returns the requests so far of all daemons together.
func (f *Fleet) sum(ctx context.Context) (map[Kind]uint64, error) {
	sums := make(map[Kind]uint64)
	err := f.ask(func(part *remote) (func(), error) {
		var answer map[Kind]uint64
		err := part.call(ctx, "Sum", None{}, &answer)
		return func() {
			for kind, count := range answer {
				sums[kind] += count
			}
		}, err
	})
	return sums, err
}
