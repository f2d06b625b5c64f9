// Command scale has a real control plane place pods on nodes that are only objects, with
// the same machine published in several ways, and writes docs/scale.md. With -growth, it
// runs fewer of these ways on more nodes, and writes docs/scale-growth.md. With -order, it
// measures zoneOrder instead, and writes docs/scale-order.md. With -daemons, it runs the
// daemons of so many nodes, and writes docs/api-load.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/test/bench/host"
	"github.com/dra-driver-numa/dra-driver-numa/test/rig/build"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/fleet"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/page"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/shape"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/trial"
)

// config is what the flags say.
type config struct {
	repository string
	pages      string
	profiles   string
	name       string
	kubernetes string
	sizes      numbers
	pairs      int
	goalPairs  int
	pods       int
	tooMuch    int
	foreign    int
	attributes numbers
	growth     bool
	order      bool
	wait       time.Duration

	part    bool
	daemons int // 0: trials run
	claims  int
	during  fleet.Settings
	starts  int // pairs
	helm    string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	switch {
	case err != nil:
	case c.part:
		err = part()
	case c.daemons > 0:
		err = c.load(ctx)
	case c.order:
		err = c.orders(ctx)
	default:
		err = c.run(ctx)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "scale: error: %v\n", err)
		os.Exit(1)
	}
}

func parse(args []string) (config, error) {
	c := config{sizes: numbers{100, 500, 2000}}
	f := flag.NewFlagSet("scale", flag.ContinueOnError)
	f.StringVar(&c.repository, "repository", "../..", "`folder` of the repository, with bin/cluster")
	f.StringVar(&c.pages, "pages", "", "`folder` for the page and its figures; default: docs of the repository")
	f.StringVar(&c.profiles, "profiles", "", "`folder` for the CPU profiles of the scheduler, which go tool pprof shows; default: none is kept")
	f.StringVar(&c.name, "name", "scale", "name of the cluster of the rig, which must not be up")
	f.StringVar(&c.kubernetes, "kubernetes", build.DefaultKubernetes, "version of Kubernetes")
	f.Var(&c.sizes, "sizes", "numbers of nodes, ascending; each has a control plane of its own")
	f.IntVar(&c.pairs, "pairs", 5, "how often each shape runs, in turn with the others")
	f.IntVar(&c.goalPairs, "goal-pairs", 10, "how often the two shapes of each goal run besides, one after the other")
	f.IntVar(&c.pods, "pods", 500, "how many pods each trial places; at most 16 fit on a node, and 2 where one of four NUMA nodes is left")
	f.IntVar(&c.tooMuch, "too-much", 2, "pods that fit nowhere in the trials of the smallest size that have such pods; 0: there are no such trials")
	f.IntVar(&c.foreign, "foreign", 5000, "claims of another driver in the trials that have such claims; 0: there are no such trials")
	f.Var(&c.attributes, "attributes", "also run this driver with only so many attributes of each zone, such as 1,4")
	f.BoolVar(&c.growth, "growth", false, "run only what shows how time grows with the number of nodes, and write a page of its own; default of -sizes: 500 5000")
	f.BoolVar(&c.order, "order", false, "measure what zoneOrder costs instead, and write a page of its own; default of -sizes: 50 500, and of -pods, which is also how many are Pending: 1000")
	f.DurationVar(&c.wait, "wait", host.Patience, "how long to wait for a load average of 1 or less, which a build exceeds; above it, scale judges no goal")
	f.IntVar(&c.daemons, "daemons", 0, "run the daemons of so many nodes instead, and measure what they ask of the API server")
	f.BoolVar(&c.part, "part", false, "run some of the daemons for another process, which talks over standard input and output")
	f.IntVar(&c.claims, "claims", 4, "with -daemons: claims of each node; 16 at most")
	f.IntVar(&c.during.Reboots, "reboots", 1000, "with -daemons: how many nodes reboot, if there are as many")
	f.DurationVar(&c.during.Quiet, "quiet", time.Minute, "with -daemons: how long nothing happens")
	f.DurationVar(&c.during.Flicker, "flicker", time.Minute, "with -daemons: how long partitions come and go")
	f.IntVar(&c.starts, "starts", 4, "with -daemons: how many pairs of starts of all daemons run, without and with the chart's flow control")
	f.StringVar(&c.helm, "helm", "helm", "with -daemons: `program` that renders the chart")
	if err := f.Parse(args); err != nil {
		return c, err
	}
	if f.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	given := map[string]bool{}
	f.Visit(func(flag *flag.Flag) { given[flag.Name] = true })
	if c.growth { // it has no goals
		c.goalPairs = 0
	}
	switch {
	case c.growth && !given["sizes"]:
		c.sizes = numbers{page.SmallGrowth, page.LargeGrowth}
	case c.order && !given["sizes"]:
		c.sizes = numbers{50, 500}
	}
	if c.order && !given["pods"] {
		c.pods = 1000
	}
	if len(c.sizes) == 0 {
		return c, errors.New("-sizes: it has no number of nodes")
	}
	if c.daemons < 0 {
		return c, fmt.Errorf("-daemons %d: 0 or more are allowed", c.daemons)
	}
	if c.claims < 0 || c.claims > page.PodsPerNode {
		return c, fmt.Errorf("-claims %d: 0 to %d are allowed", c.claims, page.PodsPerNode)
	}
	if c.during.Reboots < 0 || c.during.Quiet < time.Second || c.during.Flicker < time.Second {
		return c, fmt.Errorf("-reboots %d -quiet %s -flicker %s: allowed are 0 or more reboots, and a second or more", c.during.Reboots, c.during.Quiet, c.during.Flicker)
	}
	if c.starts < 2 {
		return c, fmt.Errorf("-starts %d: a ratio with its interval needs 2 or more", c.starts)
	}
	if c.pairs < 2 {
		return c, fmt.Errorf("-pairs %d: a ratio with its interval needs 2 or more", c.pairs)
	}
	if c.goalPairs < 0 {
		return c, fmt.Errorf("-goal-pairs %d: 0 or more are allowed", c.goalPairs)
	}
	for _, nodes := range c.sizes {
		room := nodes * page.PodsPerNode
		switch {
		case c.order:
			room *= shape.PodCPUs / page.OrderCPUs
		case !c.growth && nodes == page.OneSize(c.sizes):
			room = nodes * shape.GPUsPerNode / page.ZonesPerNode // three quarters are taken
		}
		if c.pods < 1 || c.pods > room {
			return c, fmt.Errorf("-pods %d: %d nodes have room for 1 to %d", c.pods, nodes, room)
		}
	}
	if c.tooMuch < 0 || c.foreign < 0 {
		return c, fmt.Errorf("-too-much %d -foreign %d: 0 or more are allowed", c.tooMuch, c.foreign)
	}
	if c.pages == "" {
		c.pages = filepath.Join(c.repository, "docs")
	}
	return c, nil
}

// numbers is a flag: whole numbers above 0, ascending, with commas or spaces in between.
type numbers []int

func (n *numbers) String() string { return strings.Trim(fmt.Sprint(*n), "[]") }

// Set replaces the numbers.
func (n *numbers) Set(text string) error {
	*n = nil
	last := 0
	for _, field := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		number, err := strconv.Atoi(field)
		if err != nil {
			return err
		}
		if number <= last {
			return fmt.Errorf("%d follows %d: ascending numbers above 0 are allowed", number, last)
		}
		*n, last = append(*n, number), number
	}
	return nil
}

func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, "scale: "+format+"\n", args...) }

func (c config) run(ctx context.Context) error {
	if _, _, err := c.build(ctx); err != nil {
		return err
	}
	host.Settle(ctx, c.wait, func(line string) { progress("%s", line) })
	began := time.Now()
	m, err := shape.Machine()
	if err != nil {
		return err
	}
	p := page.Page{Conditions: page.Conditions{Machine: host.Describe(), Kubernetes: c.kubernetes, Pods: c.pods, Pairs: c.pairs, GoalPairs: c.goalPairs}}
	if p.Shapes, err = shape.All(m); err != nil {
		return err
	}
	if p.Mixes, err = shape.Mixes(); err != nil {
		return err
	}
	for _, count := range c.attributes {
		s, err := shape.WithAttributes(m, count)
		if err != nil {
			return err
		}
		p.Shapes = append(p.Shapes, s)
	}
	if c.growth {
		p.Shapes, p.Mixes = only(p.Shapes, page.InGrowth), nil
	}
	for _, nodes := range c.sizes {
		results, profiles, err := c.measure(ctx, trial.Cluster{Machine: m, Nodes: nodeNames(nodes), Proc: os.DirFS("/proc"), Stall: stall}, only(p.Shapes, func(s shape.Shape) bool { return page.Runs(s, nodes, c.sizes) }), p.Mixes)
		if err != nil {
			return err
		}
		p.Results, p.Profiles = append(p.Results, results...), append(p.Profiles, profiles...)
	}
	p.LoadAfter, p.Took = host.Load(), time.Since(began)
	if c.growth {
		return p.WriteGrowth(c.pages)
	}
	return p.Write(c.pages)
}

// stall is for how long nothing may happen. A scheduler that has no time left for a pod
// tries again after 10 s, and a control plane may be slow for other reasons.
const stall = 5 * time.Minute

func nodeNames(count int) (names []string) {
	for i := range count {
		names = append(names, fmt.Sprintf("node-%d", i))
	}
	return names
}

// measure starts a control plane, runs all trials of a size, and profiles the scheduler with
// each shape.
func (c config) measure(ctx context.Context, on trial.Cluster, shapes, mixes []shape.Shape) (results []trial.Result, profiles []trial.Profile, err error) {
	down, err := c.start(ctx, &on)
	if err != nil {
		return nil, nil, err
	}
	if err := on.Prepare(ctx); err != nil {
		return nil, nil, err
	}
	for _, round := range c.rounds(len(on.Nodes), shapes, mixes) {
		for pair := range round.pairs {
			for _, i := range order(len(round.trials), pair, round.pairs) {
				s, load := round.trials[i].shape, round.trials[i].load
				r, err := on.Run(ctx, s, load)
				if err != nil {
					return nil, nil, err
				}
				progress("%d nodes, pair %d of %d, %s: %s", len(on.Nodes), pair+1, round.pairs, s.Name, page.Line(r))
				results = append(results, r)
			}
		}
	}
	if c.growth {
		return results, nil, down()
	}
	for _, s := range only(shapes, page.InProfiles) {
		profile, err := on.Profile(ctx, s, c.pods)
		if err != nil {
			return nil, nil, err
		}
		if err := c.keep(profile); err != nil {
			return nil, nil, err
		}
		progress("%d nodes, profile of %s", len(on.Nodes), s.Name)
		profiles = append(profiles, profile)
	}
	return results, profiles, down()
}

// run is one trial of a pair.
type run struct {
	load  trial.Load
	shape shape.Shape
}

// round is trials that run in turn, so many times.
type round struct {
	trials []run
	pairs  int
}

// rounds are what runs with so many nodes. The two shapes of a goal run again, without others in between.
func (c config) rounds(nodes int, shapes, mixes []shape.Shape) (list []round) {
	var next []run
	add := func(load trial.Load, shapes []shape.Shape) {
		for _, s := range shapes {
			next = append(next, run{load, s})
		}
	}
	repeat := func(pairs int) { list, next = append(list, round{next, pairs}), nil }
	end := func() { repeat(c.pairs) }
	add(trial.Load{Pods: c.pods}, shapes)
	if nodes == page.OneSize(c.sizes) && !c.growth {
		add(trial.Load{Pods: c.pods, Fill: takenZones * nodes}, only(shapes, page.InFilled))
		if c.foreign > 0 {
			add(trial.Load{Pods: c.pods, Foreign: c.foreign}, only(shapes, page.InForeign))
		}
	}
	end()
	if c.goalPairs > 0 {
		for _, names := range page.Judged(nodes, c.sizes) {
			add(trial.Load{Pods: c.pods}, only(shapes, func(s shape.Shape) bool { return slices.Contains(names, s.Name) }))
			repeat(c.goalPairs)
		}
	}
	if nodes > c.sizes[0] || c.growth {
		return list
	}
	few := max(c.pods/5, 1)
	room := (few + podsOfZone - 1) / podsOfZone // NUMA nodes
	add(trial.Load{Pods: few, Fill: page.ZonesPerNode*nodes - room, Left: shape.PodCPUs / 2}, only(shapes, page.InTight))
	end()
	add(trial.Load{Pods: few}, mixes)
	end()
	if c.tooMuch > 0 {
		add(trial.Load{Pods: few, TooMuch: c.tooMuch}, only(shapes, page.InTight))
		end()
	}
	return list
}

// takenZones is how many NUMA nodes of a node have no room while three quarters are taken.
const takenZones = page.ZonesPerNode - 1

// order is that in which a pair runs so many trials. The pairs begin with different ones, and every
// other pair runs backwards, so that no trial always follows the same one.
func order(trials, pair, pairs int) (list []int) {
	first, step := pair*trials/pairs, 1
	if pair%2 == 1 {
		step = trials - 1
	}
	for i := range trials {
		list = append(list, (first+i*step)%trials)
	}
	return list
}

// podsOfZone is how many pods fit on a NUMA node.
const podsOfZone = page.PodsPerNode / page.ZonesPerNode

func only(shapes []shape.Shape, in func(shape.Shape) bool) (list []shape.Shape) {
	for _, s := range shapes {
		if in(s) {
			list = append(list, s)
		}
	}
	return list
}

// keep writes a profile to the folder that the flags name, if any.
func (c config) keep(p trial.Profile) error {
	if c.profiles == "" {
		return nil
	}
	if err := os.MkdirAll(c.profiles, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(c.profiles, fmt.Sprintf("%d-%s.pb.gz", p.Nodes, strings.ReplaceAll(p.Shape, " ", "-"))))
	if err != nil {
		return err
	}
	return errors.Join(p.CPU.Write(f), f.Close())
}
