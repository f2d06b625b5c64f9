package main

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// command is a program that runs in a folder of the repository, with some variables on top
// of the environment and a file as its input, if there is one.
type command struct {
	in    string
	env   []string
	input string
	args  []string
}

// step is what one line in the list of times is about.
type step struct {
	name     string
	commands []command
}

// plan is what a suite runs that is no group: builds, then what comes before the clusters,
// the steps while they are up, and what comes after them. The clusters are stopped before
// and after the steps, unless they stay.
type plan struct {
	builds   step
	before   []step
	clusters []string
	stays    bool
	steps    []step
	after    []step
}

const (
	cluster     = "bin/cluster"
	driver      = "dra-driver-numa"
	driverChart = "deployments/helm/" + driver
)

// planner makes the commands of one suite.
type planner struct {
	suite suite
	texts
	failed error // the first error of its texts
}

// plan returns what a suite runs with these values.
func (t table) plan(s suite, v values, h host) (plan, error) {
	p := newPlanner(s, v, h)
	made := plan{
		builds:   p.builds(),
		before:   p.runs(s.Before),
		clusters: slices.Clone(s.Stops),
		stays:    s.Stays,
		after:    p.runs(s.After),
	}
	for _, c := range s.ControlPlanes {
		made.clusters = append(made.clusters, c.Name)
		made.steps = add(made.steps, step{"start of the cluster", []command{p.controlPlane(c)}})
	}
	if s.Cluster != "" {
		made.clusters = append(made.clusters, s.Cluster)
		made.steps = append(made.steps, step{"start of the cluster", []command{p.up()}}, step{"image", p.loads()})
	}
	if inNode := p.inNode(); len(inNode) > 0 {
		made.steps = append(made.steps, step{"tests in the node", inNode})
	}
	if s.Chart != nil {
		made.steps = append(made.steps, step{"chart", p.install()})
	}
	made.steps = append(made.steps, p.runs(s.Run)...)
	for _, specs := range s.Steps {
		if p.hold(specs.condition) {
			made.steps = append(made.steps, step{strings.TrimSpace("end-to-end suite " + specs.Tag), []command{p.specs(specs)}})
		}
	}
	return made, p.failed
}

// builds returns what is built for a suite. Only then can the host answer all that its plan asks.
func builds(s suite, v values, h host) (step, error) {
	p := newPlanner(s, v, h)
	return p.builds(), p.failed
}

func newPlanner(s suite, v values, h host) *planner {
	return &planner{suite: s, texts: texts{values: v.within(s.Set), host: h, cluster: s.Cluster}}
}

// builds makes the targets that a suite needs. Nodes have the driver's image. They take the
// CPUs, so what runs on them is built before they start.
func (p *planner) builds() step {
	s := p.suite
	needs := s.Needs
	if s.Cluster != "" {
		needs = append([]string{"image"}, s.Needs...)
	}
	if len(s.Steps) > 0 {
		needs = slices.Insert(slices.Clone(needs), 1, "suite")
	}
	made := step{name: "builds"}
	if len(needs) > 0 {
		made.commands = append(made.commands, makes(needs, p.given))
	}
	if len(s.InNode) > 0 {
		args := []string{"go", "test", "-c", "-o", "bin/"}
		for _, n := range s.InNode {
			args = append(args, n.Package)
		}
		made.commands = append(made.commands, command{env: p.environment(false), args: args})
	}
	return made
}

// makes returns the command that makes targets with the variables that were given.
func makes(targets []string, given map[string]string) command {
	args := append([]string{"make", "--no-print-directory"}, targets...)
	for _, assignment := range assignments(given) {
		args = append(args, strings.ReplaceAll(assignment, "$", "$$")) // what make reads as $
	}
	return command{args: args}
}

// assignments are NAME=value, by name.
func assignments(values map[string]string) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list = append(list, name+"="+values[name])
	}
	return list
}

func (p *planner) note(err error) {
	if p.failed == nil {
		p.failed = err
	}
}

// ask returns an answer of the host, or notes that there is none.
func ask[T any](p *planner) func(T, error) T {
	return func(answer T, err error) T {
		p.note(err)
		return answer
	}
}

func (p *planner) text(text string) string     { return ask[string](p)(p.expand(text)) }
func (p *planner) list(list []string) []string { return ask[[]string](p)(p.all(list)) }
func (p *planner) variable(name string) string { return p.text("$" + name) }
func (p *planner) path(what string) string     { return ask[string](p)(p.ofCluster(what, p.cluster)) }

// environment is that of a command, in which the race detector works or not.
func (p *planner) environment(race bool) []string {
	if race {
		return nil
	}
	return ask[[]string](p)(p.static())
}

func (p *planner) controlPlane(c controlPlane) command {
	args := []string{cluster, "up", "-name", c.Name, "-kubernetes", p.variable("KUBERNETES"), "-nodes", "0"}
	if c.Gate != "" {
		args = append(args, "-feature-gates", c.Gate)
	}
	return command{args: args}
}

func (p *planner) up() command {
	args := []string{cluster, "up", "-name", p.cluster}
	for _, flag := range []string{"kubernetes", "kernel", "boot", "init", "cri", "nodes", "speed"} {
		args = append(args, "-"+flag, p.variable(strings.ToUpper(flag)))
	}
	for _, flag := range []string{"topology", "layout"} {
		if value := p.variable(strings.ToUpper(flag)); value != "" {
			args = append(args, "-"+flag, value)
		}
	}
	var gates []string
	for _, g := range p.suite.Gates {
		if p.hold(g.condition) {
			gates = append(gates, g.Gate)
		}
	}
	if len(gates) > 0 {
		args = append(args, "-feature-gates", strings.Join(gates, ","))
	}
	return command{args: args}
}

// loads imports the driver's image and others.
func (p *planner) loads() (commands []command) {
	for _, image := range append([]string{driver}, p.suite.Images...) {
		commands = append(commands, command{args: []string{cluster, "load", "-name", p.cluster, "bin/images/" + image + ".tar"}})
	}
	return commands
}

// inNode runs in the node the tests of packages whose names begin with TestKernel.
func (p *planner) inNode() (commands []command) {
	for _, n := range p.suite.InNode {
		if !p.hold(n.condition) {
			continue
		}
		binary := path.Base(n.Package) + ".test"
		script := "cat >/tmp/" + binary + " && chmod +x /tmp/" + binary + " && " + strings.Join(assignments(n.Env), " ") +
			" exec /tmp/" + binary + " -test.run ^TestKernel -test.v"
		commands = append(commands, command{input: "bin/" + binary, args: []string{cluster, "exec", "-name", p.cluster, "--", "sh", "-c", script}})
	}
	return commands
}

// install installs the driver in nodes that have its image: this chart and image, or others.
func (p *planner) install() (commands []command) {
	c := p.suite.Chart
	if c.Namespace != "" {
		commands = append(commands, command{args: []string{p.path("kubectl"), "--kubeconfig", p.path("kubeconfig"), "apply", "-f", c.Namespace}})
	}
	args := []string{
		ask[string](p)(p.helm()), "upgrade", "--install", driver, or(c.Folder, driverChart), "--kubeconfig", p.path("kubeconfig"),
		"--namespace", "dra-numa", "--create-namespace", "--set", "image.tag=" + or(c.Tag, "dev"), "--set", "kubelet.configFile=/var/lib/kubelet/config.yaml",
	}
	return append(commands, command{args: slices.Concat(args, p.list(c.Values), []string{"--wait", "--timeout", "20m"})})
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// specs runs the end-to-end suite. It has no limit of its own: its waits have.
func (p *planner) specs(s specs) command {
	args := []string{
		p.root() + "/bin/e2e.test", "-test.v", "-test.timeout", "0", "-ginkgo.no-color", "-ginkgo.silence-skips", "-ginkgo.timeout", "24h",
		"-e2e.reports", p.root() + "/bin/logs/" + p.cluster + "-specs", "-kubeconfig", p.path("kubeconfig"),
	}
	if !p.suite.MaySkip {
		args = append(args, "-e2e.require")
	}
	args = slices.Concat(args, p.list(p.suite.Flags), p.list(s.Flags))
	if s.Tag != "" {
		args = append(args, "-e2e.tag", s.Tag)
	}
	if p.suite.Focus {
		args = append(args, "-ginkgo.focus", p.variable("FOCUS"))
	}
	if s.Label != "" {
		args = append(args, "-ginkgo.label-filter", p.text(s.Label))
	}
	return command{in: "test/e2e", args: args}
}

// runs returns the commands of the table that are to run. Those without a name of their own
// are counted together.
func (p *planner) runs(list []run) (steps []step) {
	for _, r := range list {
		if !p.hold(r.condition) {
			continue
		}
		c := command{in: r.In, env: p.environment(r.Race), args: p.list(r.Args)}
		for _, name := range slices.Sorted(maps.Keys(r.Env)) {
			c.env = append(slices.Clip(c.env), name+"="+p.text(r.Env[name]))
		}
		steps = add(steps, step{or(r.Name, p.suite.Name), []command{c}})
	}
	return steps
}

// add appends a step, or its commands to the last one if that has the same name.
func add(steps []step, next step) []step {
	if last := len(steps) - 1; last >= 0 && steps[last].name == next.name {
		steps[last].commands = append(steps[last].commands, next.commands...)
		return steps
	}
	return append(steps, next)
}
