package tuning

import (
	"errors"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/cpufreq"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// frequencies is the frequencies and idle states of CPUs: each claim decides those of its own,
// and the NodeConfig those of the others.
type frequencies struct{ *State }

func (t frequencies) plan(cpus cpuset.Set, planned *ledger.Performance) (err error) {
	planned.Changes, err = t.changes(cpus, planned.Asked, func(now cpufreq.State) cpufreq.State { return now })
	return err
}

// changes decides what gives these CPUs what is asked, if they had first what from makes of what
// they have now.
func (t frequencies) changes(cpus cpuset.Set, asked deviceclasses.PerformanceSettings, from func(cpufreq.State) cpufreq.State) (cpufreq.Changes, error) {
	now, err := cpufreq.Read(t.config.Frequencies.Files(), cpus, asked)
	if err != nil {
		return cpufreq.Changes{}, err
	}
	return cpufreq.Plan(from(now), t.machine.Cores, cpus, asked)
}

func (t frequencies) apply(grant ledger.Grant, _ []ledger.Grant) (_ ledger.Grant, err error) {
	for zone := range Retune(&grant) {
		if zone.Performance.Changes, err = t.config.Frequencies.Apply(zone.Performance.Changes); err != nil {
			break
		}
	}
	return grant, err
}

func (t frequencies) restore(z *ledger.ZoneShare, _, _ []ledger.Grant) error {
	return t.config.Frequencies.Restore(z.Performance.Changes)
}

// repair gives CPUs that came online what their claims want, and the CPUs of no claim the default.
// Another driver may have them now, which is an error. If all is true, it looks again whether the
// machine has the default: modules of the kernel may be loaded meanwhile.
func (t frequencies) repair(grants []ledger.Grant, all bool) ([]ledger.Grant, error) {
	if all && t.unmet != nil {
		t.settled = lookedAt{}
	}
	failed := t.SettleDefaults(grants)
	var left cpuset.Set
	for _, zone := range Tuned(grants...) {
		online := zone.CPUs.Intersection(t.online)
		if !zone.Performance.Applied || online.IsEmpty() {
			continue
		}
		if err := t.again(zone.Performance.Changes, online); err != nil {
			failed, left = errors.Join(failed, err), left.Union(online)
		}
	}
	t.online = left
	return nil, failed
}

// again applies changes again to these CPUs.
func (t frequencies) again(changes cpufreq.Changes, cpus cpuset.Set) error {
	policies, err := numa.ReadFrequencyPolicies(t.config.Frequencies.Files(), cpus)
	if err == nil {
		_, err = t.config.Frequencies.Apply(only(changes, cpus, policies))
	}
	return err
}

// FrequencyFigures are frequencies of the CPUs that a claim has of a device, in kHz. 0
// stands for what the claim does not ask, and for what the kernel does not say now.
type FrequencyFigures struct {
	Device             string
	Slowest, Fastest   int // of the CPUs now
	AskedMin, AskedMax int // smallest lowest and largest highest frequency that the claim asks for
}

// Figures returns the figures of a grant, by device; none on a node that changes no
// frequencies, whose c is nil. It reads one file of the kernel for each frequency policy that
// the claim changes, and none for other claims. What cannot be read is left out.
func (c *Config) Figures(grant *ledger.Grant) (figures []FrequencyFigures) {
	if c == nil {
		return nil
	}
	files := c.Frequencies.Files()
	for share, zone := range Tuned(*grant) {
		for _, change := range zone.Performance.Frequencies {
			i := slices.IndexFunc(figures, func(f FrequencyFigures) bool { return f.Device == share.Device })
			if i < 0 {
				i, figures = len(figures), append(figures, FrequencyFigures{Device: share.Device})
			}
			figure := &figures[i]
			figure.AskedMin = lesser(figure.AskedMin, change.Want.MinKHz)
			figure.AskedMax = max(figure.AskedMax, change.Want.MaxKHz)
			for policy := range change.Policies.All() {
				current, err := numa.ReadCurrentFrequency(files, policy)
				if err != nil {
					continue // its CPUs are offline, or gone
				}
				figure.Slowest = lesser(figure.Slowest, current)
				figure.Fastest = max(figure.Fastest, current)
			}
		}
	}
	return figures
}

// lesser returns the smaller one of two numbers, and ignores one that is 0.
func lesser(a, b int) int {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}
