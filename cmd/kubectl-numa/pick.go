package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/pick"
)

// picking is the command pick with its flags.
type picking struct {
	cli
	from   origin
	config nodeConfig
	cpus   int
	zones  string
	used   string
	policy policy
	output *printer
}

func pickCommand(c cli, command *cobra.Command) runner {
	p := picking{cli: c, output: newPrinter(formatTable, formatJSON, formatYAML, formatPath)}
	p.from.addTo(command)
	p.config.addTo(command)
	flags := command.Flags()
	flags.IntVar(&p.cpus, "cpus", 0, "`number` of CPUs that the claim requests; required")
	flags.StringVar(&p.zones, "zone", "", "`list` of NUMA nodes that give the CPUs, such as 0 or 0,1 (default: the first one with enough)")
	flags.StringVar(&p.used, "used", "", "`list` of CPUs that other claims hold, such as 4-7,36-39")
	flags.Var(&p.policy, "policy", "what else the claim requests")
	p.output.addTo(command)
	complete(command, "zone", func(*cobra.Command) []string { return p.zoneNames() })
	complete(command, "policy", func(*cobra.Command) (values []string) {
		for _, key := range policyKeys() {
			for _, value := range key.values {
				values = append(values, key.name+"="+value)
			}
		}
		return values
	})
	command.Long += "\n" + policyHelp()
	return func(context.Context, []string) error { return p.run() }
}

// policyHelp returns a line for each key.
func policyHelp() string {
	var lines []string
	for _, key := range policyKeys() {
		lines = append(lines, fmt.Sprintf("  %-9s  %s", key.name, strings.Join(key.values, ", ")))
	}
	return strings.Join(lines, "\n")
}

// zoneNames returns the zones for completion in shells. If the machine cannot be read,
// there are none.
func (p *picking) zoneNames() (names []string) {
	machine, err := p.from.read()
	if err != nil {
		return nil
	}
	for _, zone := range zonesWithCPUs(machine) {
		names = append(names, strconv.Itoa(zone))
	}
	return names
}

func zonesWithCPUs(machine numa.Machine) (zones []int) {
	for i := range machine.Zones {
		if !machine.Zones[i].CPUs.IsEmpty() {
			zones = append(zones, machine.Zones[i].ID)
		}
	}
	return zones
}

func (p *picking) run() error {
	if p.cpus < 1 {
		return fmt.Errorf("--cpus %d: want 1 or more", p.cpus)
	}
	machine, err := p.from.read()
	if err != nil {
		return err
	}
	config, err := p.config.read(machine)
	if err != nil {
		return err
	}
	used, err := parseUsed(p.used, machine)
	if err != nil {
		return err
	}
	candidates, err := p.candidates(machine)
	if err != nil {
		return err
	}
	free := machine.Online.Difference(config.Reserved).Difference(used)
	answer, err := p.firstThatFits(machine, free, candidates)
	if err != nil {
		return &failure{withReserved(err, config.Reserved)}
	}
	answer.Reserved, answer.Used = config.Reserved, used
	return p.output.print(p.stdout, document{
		what: "choice", kind: kindChoice, value: answer, text: func(style) string { return answer.text() },
	})
}

// withReserved adds a hint, because the user may not know that these CPUs are reserved.
func withReserved(err error, reserved cpuset.Set) error {
	hint := fmt.Sprintf("CPUs %s are reserved, so no claim gets them; set reservedCPUs in the file of --config to change them", reserved)
	var hinted *hintedError
	if errors.As(err, &hinted) {
		return &hintedError{hinted.error, append(hinted.hints, hint)}
	}
	return &hintedError{err, []string{hint}}
}

func parseUsed(list string, machine numa.Machine) (cpuset.Set, error) {
	used, err := cpuset.Parse(list)
	if err != nil {
		return cpuset.Set{}, fmt.Errorf("--used: %w; want a list such as 0-3,8", err)
	}
	if missing := used.Difference(machine.Present); !missing.IsEmpty() {
		return cpuset.Set{}, fmt.Errorf("--used %q: the machine has no CPUs %s, allowed are %s", list, missing, machine.Present)
	}
	return used, nil
}

// candidates returns the lists of zones to try, in order.
func (p *picking) candidates(machine numa.Machine) ([][]int, error) {
	all := zonesWithCPUs(machine)
	named, err := cpuset.Parse(p.zones) // a list of zone ids has the same form
	if err != nil || p.zones != "" && named.IsEmpty() {
		return nil, fmt.Errorf("--zone %q: want a list of NUMA nodes such as 0 or 0,1", p.zones)
	}
	var zones []int
	for id := range named.All() {
		if !slices.Contains(all, id) {
			return nil, fmt.Errorf("--zone %q: there is no NUMA node %d with CPUs, allowed are %s", p.zones, id, cpuset.New(all...))
		}
		zones = append(zones, id)
	}
	switch {
	case len(zones) > 0:
		return [][]int{zones}, nil
	case p.policy.distribute:
		return [][]int{all}, nil
	}
	return slices.Collect(slices.Chunk(all, 1)), nil
}

// firstThatFits tries the candidates in order, as the scheduler does.
func (p *picking) firstThatFits(machine numa.Machine, free cpuset.Set, candidates [][]int) (answer, error) {
	picker := pick.New(machine)
	var tried []refusal
	for _, zones := range candidates {
		request := p.policy.request
		request.CPUs, request.Zones = p.cpus, zones
		chosen, err := picker.Pick(free, request)
		if err == nil {
			return newAnswer(machine, chosen, tried), nil
		}
		if !errors.Is(err, pick.ErrNotEnough) || len(candidates) == 1 {
			return answer{}, err
		}
		tried = append(tried, refusal{zones[0], err.Error()})
	}
	return answer{}, p.noneFits(tried)
}

// noneFits returns one error for all zones that were tried.
func (p *picking) noneFits(tried []refusal) error {
	var reasons []string
	for _, t := range tried {
		reason := strings.TrimPrefix(t.Why, fmt.Sprintf("select %d cpus of ", p.cpus))
		reasons = append(reasons, strings.TrimSuffix(reason, ": "+pick.ErrNotEnough.Error()))
	}
	return &hintedError{
		fmt.Errorf("select %d cpus of one zone: %w: %s", p.cpus, pick.ErrNotEnough, strings.Join(reasons, "; ")),
		[]string{"name several NUMA nodes in --zone, or set --policy distribute: then each gives a part of the CPUs"},
	}
}
