package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/zones"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// picking is the command pick with its flags.
type picking struct {
	cli
	from   origin
	config nodeConfig
	cpus   int
	zone   string
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
	flags.StringVar(&p.zone, "zone", "", "`zone` that gives the CPUs, such as numa-1 or l3-3, or the list of its NUMA nodes, such as 1 or 0-3 (default: the first one with enough)")
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
	config, err := p.config.read(machine)
	if err != nil {
		return nil
	}
	for _, zone := range driver.Zones(machine, config, cpuset.Set{}) {
		names = append(names, zone.Device)
	}
	return names
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
	candidates, err := p.candidates(driver.Zones(machine, config, used))
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

// candidates returns the zones to try, in order. Isolated CPUs must be named, as in a claim.
func (p *picking) candidates(published []zones.Zone) (candidates []zones.Zone, err error) {
	named, err := cpuset.Parse(p.zone) // a list of NUMA nodes has the same form
	if err != nil {
		named = cpuset.Set{} // it may be the name of a zone
	}
	var names []string
	for _, zone := range published {
		names = append(names, zone.Device)
		ofNodes := cpuset.New(zone.Nodes...).IsSubsetOf(named) && !zone.Isolated
		if zone.Device == p.zone || ofNodes || p.zone == "" && !zone.Isolated {
			candidates = append(candidates, zone)
		}
	}
	if len(candidates) == 0 && p.zone != "" {
		return nil, fmt.Errorf("--zone %q: no zone has this name or only these NUMA nodes, allowed are %s", p.zone, strings.Join(names, ", "))
	}
	return candidates, nil
}

// firstThatFits tries the zones in order, as the scheduler does.
func (p *picking) firstThatFits(machine numa.Machine, free cpuset.Set, candidates []zones.Zone) (answer, error) {
	var tried []refusal
	for _, zone := range candidates {
		chosen, err := driver.Choose(machine, zone, p.policy.config, p.rounded(machine, zone), free)
		if err == nil {
			return newAnswer(machine, zone, chosen, tried), nil
		}
		if !errors.Is(err, driver.ErrNotEnough) {
			return answer{}, err
		}
		tried = append(tried, refusal{zone.Device, whyNot(err)})
	}
	return answer{}, p.noneFits(tried)
}

// rounded returns the CPUs of a claim of the zone: the scheduler rounds up to whole cores.
func (p *picking) rounded(machine numa.Machine, zone zones.Zone) int {
	step := max(1, zone.ThreadsPerCore(&machine))
	return (p.cpus + step - 1) / step * step
}

// whyNot returns what an error of the choice says of the zone, whose name the reader has.
func whyNot(err error) string {
	_, why, _ := strings.Cut(strings.TrimSuffix(err.Error(), ": "+driver.ErrNotEnough.Error()), ", which ")
	return why
}

// noneFits returns one error for all zones that were tried.
func (p *picking) noneFits(tried []refusal) error {
	if len(tried) == 0 {
		return fmt.Errorf("select %d cpus: no zone has CPUs for claims", p.cpus)
	}
	var reasons []string
	for _, t := range tried {
		reasons = append(reasons, t.Zone+" "+t.Why)
	}
	err := fmt.Errorf("select %d cpus of one zone: %w: %s", p.cpus, driver.ErrNotEnough, strings.Join(reasons, "; "))
	return &hintedError{err, []string{"a claim has CPUs of one zone; with zoneBy: socket or machine in the file of --config, zones have several NUMA nodes"}}
}
