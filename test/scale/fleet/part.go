package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/rpc"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/dra-driver-numa/dra-driver-numa/test/scale/shape"
)

// Part is the daemons of some nodes, in a process of their own: no process may open the
// files of thousands. Its methods are called by [net/rpc].
type Part struct {
	daemons []*daemon
	byNode  map[string]*daemon
	options PartOptions
}

// PartOptions are what a part needs to begin.
type PartOptions struct {
	Host, Token string // of the API server, and of the daemons' service account
	CA          []byte
	Folder      string
	Nodes       []string
	Workers     int           // how many nodes prepare claims at a time
	Stall       time.Duration // as in Fleet
}

// Claim is what a kubelet names to a daemon, and the node.
type Claim struct{ Node, Namespace, Name, UID string }

// None is the argument or the answer of a method that needs none.
type None struct{}

// Serve runs a part for the process at the other end, until it closes the connection.
func Serve(connection io.ReadWriteCloser) error {
	server := rpc.NewServer()
	p := &Part{byNode: make(map[string]*daemon)}
	if err := server.Register(p); err != nil {
		return err
	}
	server.ServeConn(connection)
	return p.Stop(p.options.Nodes, nil)
}

// Open prepares the folders of the daemons.
func (p *Part) Open(options PartOptions, _ *None) error {
	machine, err := shape.Machine()
	if err != nil {
		return err
	}
	p.options = options
	var now clock
	go now.run()
	config := &rest.Config{Host: options.Host, BearerToken: options.Token, TLSClientConfig: rest.TLSClientConfig{CAData: options.CA}}
	for i, node := range options.Nodes {
		d := &daemon{node: node, folder: filepath.Join(options.Folder, fmt.Sprint(i)), boot: "first", machine: machine, config: config, trace: trace{clock: &now}}
		if err := d.install(); err != nil {
			return err
		}
		p.daemons, p.byNode[node] = append(p.daemons, d), d
	}
	return nil
}

func (p *Part) of(nodes []string) (list []*daemon) {
	for _, node := range nodes {
		list = append(list, p.byNode[node])
	}
	return list
}

// Start starts the daemons of the nodes at once, and waits until all of them are ready. It
// answers how long each took.
func (p *Part) Start(nodes []string, took *[]time.Duration) (err error) {
	daemons, ctx := p.of(nodes), context.Background()
	began := time.Now()
	failed := make([]error, len(daemons))
	var group sync.WaitGroup
	for i, d := range daemons {
		group.Go(func() { failed[i] = d.start(ctx) })
	}
	group.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	*took, err = wait(ctx, daemons, began, p.options.Stall, (*daemon).ready, func(d *daemon) string {
		return fmt.Sprintf("that of %s: %v", d.node, d.life.readiness.Problems())
	})
	return err
}

// Stop stops the daemons of the nodes. A daemon keeps two folders open until its process ends.
// Here, all lives of a thousand daemons are one process: the garbage collector closes them.
func (p *Part) Stop(nodes []string, _ *None) error {
	var group sync.WaitGroup
	for _, d := range p.of(nodes) {
		group.Go(d.stop)
	}
	group.Wait()
	runtime.GC()
	return nil
}

// Reboot gives the nodes another boot. Their daemons must not run.
func (p *Part) Reboot(nodes []string, _ *None) error {
	for _, d := range p.of(nodes) {
		if err := d.reboot("second"); err != nil {
			return err
		}
	}
	return nil
}

// prepareAgain is how long the kubelet waits before it tries again to start a pod
// (backOffPeriod of its pod workers).
const prepareAgain = 10 * time.Second

// Prepare has the daemons prepare claims, one after the other on each node. What fails is
// repeated. It answers how long each took.
func (p *Part) Prepare(claims []Claim, took *[]time.Duration) error {
	byNode := make(map[string][]Claim)
	var nodes []string
	for _, claim := range claims {
		if byNode[claim.Node] == nil {
			nodes = append(nodes, claim.Node)
		}
		byNode[claim.Node] = append(byNode[claim.Node], claim)
	}
	var mu sync.Mutex
	return each(nodes, p.options.Workers, func(node string) error {
		for _, claim := range byNode[node] {
			began := time.Now()
			for {
				err := p.byNode[node].prepare(context.Background(), claim)
				if err == nil {
					break
				}
				if time.Since(began) > p.options.Stall {
					return fmt.Errorf("%s: prepare claim %s: %w", node, claim.Name, err)
				}
				time.Sleep(prepareAgain)
			}
			mu.Lock()
			*took = append(*took, time.Since(began))
			mu.Unlock()
		}
		return nil
	})
}

// unplugged are the CPUs of one core of the machine.
const unplugged = "31,63"

// Unplug takes a core of the nodes' machines away.
func (p *Part) Unplug(nodes []string, _ *None) error {
	machine, err := shape.MachineWithout(unplugged)
	if err != nil {
		return err
	}
	for _, d := range p.of(nodes) {
		d.machine = machine
		d.life.core.SetMachine(machine)
	}
	return nil
}

// Break makes the partitions of all claims of the nodes invalid.
func (p *Part) Break(nodes []string, _ *None) error { return p.setFaulty(nodes, true) }

// Mend makes them valid again.
func (p *Part) Mend(nodes []string, _ *None) error { return p.setFaulty(nodes, false) }

func (p *Part) setFaulty(nodes []string, faulty bool) error {
	for _, d := range p.of(nodes) {
		d.faulty.Store(faulty)
	}
	return nil
}

// Counts answers with the requests so far of each daemon.
func (p *Part) Counts(_ None, all *[]Counts) error {
	for _, d := range p.daemons {
		*all = append(*all, Counts{d.requests.Read(), d.trace.ends()})
	}
	return nil
}

// Work answers with what the daemons of some nodes did in their windows, which begin after the
// last call.
func (p *Part) Work(windows map[string]Window, all *map[string]Work) error {
	*all = make(map[string]Work)
	for _, d := range p.daemons {
		spans := d.trace.take()
		if window, ok := windows[d.node]; ok {
			(*all)[d.node] = workIn(spans, window)
		}
	}
	return nil
}

// Sum answers with the requests so far of all daemons together.
func (p *Part) Sum(_ None, sums *map[Kind]uint64) error {
	var all []Counts
	if err := p.Counts(None{}, &all); err != nil {
		return err
	}
	*sums = sum(all)
	return nil
}
