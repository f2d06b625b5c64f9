package numa

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// FrequencyPolicy is CPUs whose frequency the kernel changes together;
// Documentation/admin-guide/pm/cpufreq.rst.
//
// Invariant: a CPU is in at most one policy, and LowestKHz ≤ MinKHz ≤ MaxKHz ≤ HighestKHz
// unless the firmware limits the frequency.
type FrequencyPolicy struct {
	ID     int        // N of policy<N>
	CPUs   cpuset.Set // those that are online
	Driver string     // intel_pstate, amd-pstate-epp, acpi-cpufreq, …

	LowestKHz, HighestKHz int // what the hardware has
	BaseKHz               int // without turbo; 0 if the machine does not say
	MinKHz, MaxKHz        int // the range that is set

	Governor  string
	Governors []string // those that can be set

	EnergyPreference  string   // a name or a number; "" if the driver has none, or does not say which
	EnergyPreferences []string // those that can be set; none if the driver has none
}

// ReadFrequencyPolicies reads the policies of some CPUs, ascending by id. A CPU that is
// offline or has no frequency driver is in none of them.
func ReadFrequencyPolicies(root fs.FS, cpus cpuset.Set) (policies []FrequencyPolicy, err error) {
	t := newTree(root)
	for cpu := range cpus.All() {
		if slices.ContainsFunc(policies, func(p FrequencyPolicy) bool { return p.CPUs.Contains(cpu) }) {
			continue
		}
		target, ok := t.link(fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpufreq", cpu))
		if !ok {
			continue
		}
		id, err := strconv.Atoi(strings.TrimPrefix(path.Base(target), "policy"))
		if err != nil || id < 0 || id >= cpuset.MaxCPUs {
			return nil, fmt.Errorf("read the frequency policy of cpu %d: link to %q, want one to policy<N>", cpu, target)
		}
		policy, err := t.frequencyPolicy(id)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrOffline) {
			continue
		}
		if err != nil {
			return nil, err
		}
		policies = append(policies, policy)
	}
	slices.SortFunc(policies, func(a, b FrequencyPolicy) int { return a.ID - b.ID })
	return policies, nil
}

// ErrOffline says that all CPUs of a frequency policy are offline. The kernel keeps the
// policy and its values, but neither shows nor changes them until a CPU is online again:
// show and store in drivers/cpufreq/cpufreq.c.
var ErrOffline = errors.New("all of its CPUs are offline")

// ReadFrequencyPolicy reads policy<id>. If there is none, the error is fs.ErrNotExist. If
// all of its CPUs are offline, it is ErrOffline.
func ReadFrequencyPolicy(root fs.FS, id int) (FrequencyPolicy, error) {
	return newTree(root).frequencyPolicy(id)
}

// ReadCurrentFrequency returns the frequency of policy<id> now, in kHz; 0 if the kernel does
// not say it. On most machines it is what the kernel has counted at its last tick
// (arch_freq_get_on_cpu), else what the frequency driver has asked for. No CPU is interrupted.
func ReadCurrentFrequency(root fs.FS, id int) (int, error) {
	t := newTree(root)
	t.fleeting = true
	current, err := t.positive(FrequencyPolicyFolder(id) + "/scaling_cur_freq")
	return kHz(current, 1), err
}

// FrequencyPolicyFolder is the folder of policy<id>.
func FrequencyPolicyFolder(id int) string {
	return fmt.Sprintf("sys/devices/system/cpu/cpufreq/policy%d", id)
}

func (t tree) frequencyPolicy(id int) (FrequencyPolicy, error) {
	policy, err := t.onlinePolicy(id)
	if errors.Is(err, syscall.EBUSY) {
		err = fmt.Errorf("frequency policy %d: %w", id, ErrOffline)
	}
	return policy, err
}

func (t tree) onlinePolicy(id int) (FrequencyPolicy, error) {
	t.fleeting = true
	folder := FrequencyPolicyFolder(id) + "/"
	p := FrequencyPolicy{ID: id}
	var found bool
	var err error
	if p.CPUs, found, err = parseFile(t, folder+"affected_cpus", parseWords); err != nil || !found {
		return FrequencyPolicy{}, fmt.Errorf("read %saffected_cpus: %w", folder, orMissing(err))
	}
	for _, field := range []struct {
		value *int
		file  string
	}{
		{&p.LowestKHz, "cpuinfo_min_freq"},
		{&p.HighestKHz, "cpuinfo_max_freq"},
		{&p.MinKHz, "scaling_min_freq"},
		{&p.MaxKHz, "scaling_max_freq"},
	} {
		if *field.value, found, err = parseFile(t, folder+field.file, parseInt); err != nil || !found {
			return FrequencyPolicy{}, fmt.Errorf("read %s%s: %w", folder, field.file, orMissing(err))
		}
	}
	for _, field := range []struct {
		value *string
		file  string
	}{
		{&p.Driver, "scaling_driver"}, {&p.Governor, "scaling_governor"},
	} {
		if *field.value, _, err = t.text(folder + field.file); err != nil {
			return FrequencyPolicy{}, err
		}
	}
	// amd-pstate has no name for most numbers: show_energy_performance_preference in
	// drivers/cpufreq/amd-pstate.c returns EINVAL.
	if p.EnergyPreference, _, err = t.text(folder + "energy_performance_preference"); err != nil && !errors.Is(err, syscall.EINVAL) {
		return FrequencyPolicy{}, err
	}
	for _, field := range []struct {
		value *[]string
		file  string
	}{
		{&p.Governors, "scaling_available_governors"}, {&p.EnergyPreferences, "energy_performance_available_preferences"},
	} {
		text, _, err := t.text(folder + field.file)
		if err != nil {
			return FrequencyPolicy{}, err
		}
		*field.value = strings.Fields(text)
	}
	p.BaseKHz, err = t.baseFrequency(folder, p.CPUs)
	return p, err
}

// baseFrequency returns the frequency without turbo, in kHz: what intel_pstate says, else
// the firmware's nominal frequency, else the highest one without turbo in the driver's table; 0
// if nothing says it.
func (t tree) baseFrequency(folder string, cpus cpuset.Set) (int, error) {
	if base, err := t.positive(folder + "base_frequency"); err != nil || base != nil {
		return kHz(base, 1), err
	}
	first, _ := cpus.First()
	if nominal, err := t.positive(fmt.Sprintf("sys/devices/system/cpu/cpu%d/acpi_cppc/nominal_freq", first)); err != nil || nominal != nil {
		return kHz(nominal, 1000), err // in MHz
	}
	text, _, err := t.text(folder + "scaling_available_frequencies")
	table := []int{0, 0}
	for _, word := range strings.Fields(text) {
		frequency, err := parseInt(word)
		if err != nil {
			return 0, fmt.Errorf("read %sscaling_available_frequencies: %w", folder, err)
		}
		table = append(table, frequency)
	}
	slices.Sort(table)
	highest, second := table[len(table)-1], table[len(table)-2]
	if highest == second+turboKHz {
		return second, err
	}
	return highest, err
}

// turboKHz is how much the frequency that stands for turbo is above the base frequency in the
// table that the firmware of Intel's machines gives acpi-cpufreq.
const turboKHz = 1000

// kHz returns a frequency; 0 for nil and for what no CPU has.
func kHz(frequency *uint64, unit uint64) int {
	if frequency == nil || *frequency > 1<<31/unit {
		return 0
	}
	return int(*frequency * unit)
}

// parseWords reads a list of numbers between spaces, as in affected_cpus.
func parseWords(text string) (cpuset.Set, error) {
	return cpuset.Parse(strings.Join(strings.Fields(text), ","))
}

// orMissing returns fs.ErrNotExist if there is no other error.
func orMissing(err error) error {
	if err == nil {
		return fs.ErrNotExist
	}
	return err
}

// NoIdle is the limit of resume latency with which a CPU is never idle, and AnyIdle the
// one that is no limit; Documentation/ABI/testing/sysfs-devices-power.
const (
	NoIdle  = "n/a"
	AnyIdle = "0"
)

// IdleLimitFile is the file with the limit of a CPU's resume latency.
func IdleLimitFile(cpu int) string {
	return fmt.Sprintf("sys/devices/system/cpu/cpu%d/power/pm_qos_resume_latency_us", cpu)
}

// ReadIdleLimit returns the limit of a CPU's resume latency, in the form of the kernel:
// microseconds, NoIdle or AnyIdle. It is "" for a CPU that cannot be limited.
func ReadIdleLimit(root fs.FS, cpu int) (limit string, err error) {
	t := newTree(root)
	t.fleeting = true
	limit, _, err = t.text(IdleLimitFile(cpu))
	return limit, err
}

// ReadIdleDriver returns the name of the driver of idle states; "" if there is none. The
// limits of CPUs have no effect then.
func ReadIdleDriver(root fs.FS) (string, error) {
	name, _, err := newTree(root).text("sys/devices/system/cpu/cpuidle/current_driver")
	if name == "none" {
		name = ""
	}
	return name, err
}
