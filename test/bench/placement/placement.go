// Package placement compares where this driver, the kubelet and first fit place the
// claims of one trace, on several machines.
package placement

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/fake"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/kubelet"
	"github.com/dra-driver-numa/dra-driver-numa/test/bench/trace"
)

// machines are the generated machines of the comparison. The Topology Manager takes at
// most eight NUMA nodes.
var machines = []string{"xeon-max-cache", "intel-2s", "intel-2s-snc3", "epyc-2s-nps1", "epyc-2s-nps4", "epyc-mi300x"}

// Machines returns the names of the machines.
func Machines() []string { return machines }

// Program is one of those that are compared.
type Program struct {
	Name  string
	Ours  bool // this driver
	Spans bool // a claim may be on several NUMA nodes
	place func(m numa.Machine, c kubelet.Config) (trace.Placer, error)
}

// Programs returns the programs, those of one kind of claim after the other, ours first.
// The option full-pcpus-only is not among them: it refuses each claim of half a core.
func Programs() []Program {
	return []Program{
		{"this driver", true, false, func(m numa.Machine, c kubelet.Config) (trace.Placer, error) {
			return trace.NewDriver(m, c.Reserved), nil
		}},
		{"kubelet", false, false, static(true)},
		{"kubelet, `prefer-align-cpus-by-uncorecache`", false, false, static(true, "prefer-align-cpus-by-uncorecache")},
		{"first fit", false, false, func(m numa.Machine, c kubelet.Config) (trace.Placer, error) {
			return trace.NewFirstFit(m, c.Reserved), nil
		}},
		{"this driver, with alternatives", true, true, func(m numa.Machine, c kubelet.Config) (trace.Placer, error) {
			return trace.NewSpanning(m, c.Reserved), nil
		}},
		{"kubelet without Topology Manager", false, true, static(false)},
	}
}

// static is the static policy with these options.
func static(single bool, options ...string) func(numa.Machine, kubelet.Config) (trace.Placer, error) {
	return func(m numa.Machine, c kubelet.Config) (trace.Placer, error) {
		c.Options = map[string]string{}
		if single {
			c.Policy = "single-numa-node"
		}
		for _, option := range options {
			c.Options[option] = "true"
		}
		node, err := kubelet.New(m, c)
		return kubelet.Placer{Node: node}, err
	}
}

// Result is what the programs made of the trace on one machine, in the order of Programs.
type Result struct {
	Machine string
	CPUs    int
	Zones   int
	L3s     int
	Scores  []trace.Score
	Took    []time.Duration
}

// Run has all programs place the claims on all machines. It takes two CPUs.
func Run(claims int, progress func(line string)) ([]Result, error) {
	results := make([]Result, len(machines))
	errs := make([]error, len(machines))
	var running sync.WaitGroup
	slots := make(chan struct{}, 2)
	for i, name := range machines {
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			began := time.Now()
			results[i], errs[i] = on(name, claims)
			progress(fmt.Sprintf("placed %d claims on %s in %s", claims, name, time.Since(began).Round(time.Second)))
		})
	}
	running.Wait()
	return results, errors.Join(errs...)
}

func on(name string, claims int) (r Result, err error) {
	m, err := read(name)
	if err != nil {
		return r, err
	}
	r = Result{Machine: name, CPUs: m.Online.Size(), L3s: len(m.L3s)}
	for _, zone := range m.Zones {
		if !zone.CPUs.IsEmpty() {
			r.Zones++
		}
	}
	config := kubelet.Config{Reserved: m.Cores[0].CPUs}
	events := trace.New(m, claims)
	for _, program := range Programs() {
		placer, err := program.place(m, config)
		if err != nil {
			return r, fmt.Errorf("%s on %s: %w", program.Name, name, err)
		}
		began := time.Now()
		score, err := trace.Run(m, config.Reserved, events, placer)
		if err == nil && score.WrongPlacing > 0 {
			err = fmt.Errorf("%d claims have CPUs of others", score.WrongPlacing)
		}
		if err != nil {
			return r, fmt.Errorf("%s on %s: %w", program.Name, name, err)
		}
		r.Scores, r.Took = append(r.Scores, score), append(r.Took, time.Since(began))
	}
	return r, nil
}

func read(name string) (numa.Machine, error) {
	for _, preset := range fake.Presets() {
		if preset.Name == name {
			return numa.Read(preset.Machine.FS())
		}
	}
	return numa.Machine{}, fmt.Errorf("no generated machine %s", name)
}
