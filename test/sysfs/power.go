package sysfs

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/numa/memfs"
)

// FrequencyDriver is a driver of the kernel that changes the frequency of CPUs, as
// scaling_driver names it.
type FrequencyDriver string

// The drivers. Those with energy preferences are active if the comment says so.
const (
	IntelPstate  FrequencyDriver = "intel_pstate"   // active, with hardware-managed P-states
	IntelCpufreq FrequencyDriver = "intel_cpufreq"  // intel_pstate, passive
	AMDPstateEPP FrequencyDriver = "amd-pstate-epp" // amd-pstate, active
	AMDPstate    FrequencyDriver = "amd-pstate"     // guided or passive
	ACPICpufreq  FrequencyDriver = "acpi-cpufreq"
	CPPCCpufreq  FrequencyDriver = "cppc_cpufreq"
)

// FrequencyDrivers returns all of them.
func FrequencyDrivers() []FrequencyDriver {
	return []FrequencyDriver{IntelPstate, IntelCpufreq, AMDPstateEPP, AMDPstate, ACPICpufreq, CPPCCpufreq}
}

// active drivers choose frequencies themselves. They have two governors, and refuse energy
// preferences with the governor performance.
func (d FrequencyDriver) active() bool { return d == IntelPstate || d == AMDPstateEPP }

// hasPreferences reports whether the driver has energy preferences.
func (d FrequencyDriver) hasPreferences() bool { return d.active() || d == IntelCpufreq }

// The range of each policy, in kHz.
const (
	LowestKHz  = 800_000
	BaseKHz    = 2_400_000
	HighestKHz = 3_600_000
)

// Power declares the frequency, idle, uncore and interrupt files of a machine.
type Power struct {
	CPUs      int // all of them are online
	Driver    FrequencyDriver
	PerPolicy int    // CPUs of each policy, in sequence; 0 means 1
	Energy    string // preference at the start, also a number; "" for balance_performance
	LimitKHz  int    // to which the firmware limits the highest frequency; 0 means no limit
	Idle      string // driver of idle states; "" for none
	Uncore    Uncore
	Lines     []Line
	Override  bool // writes are those of a process with the capability DAC_OVERRIDE
}

// Line is an interrupt.
type Line struct {
	Number   int
	Name     string // of its handler; "" for one that is not in use
	CPUs     string // that may handle it, as a list
	Managed  bool   // the kernel does not let anyone move it
	Function string // PCI address of the function that has it; "" for none
}

// PowerHost is a machine whose files take writes as the kernel of Linux 6.12 does. Its
// methods must not be called concurrently.
type PowerHost struct {
	power     Power
	structure fs.FS
	values    map[string]string // content of the files that can be read
	saved     map[int]string    // energy preference of a policy before the governor performance
	asked     map[string]int    // kHz that were written to scaling_min_freq and scaling_max_freq
	full      cpuset.Set        // CPUs without a free interrupt vector
	requested map[string]bool   // folders of policies with frequencies that were written and not looked at
	offline   map[string]bool   // folders of policies whose CPUs are all offline
	away      map[string]int    // kHz in the files of dies whose CPUs are all offline
	writes    int
	crossed   bool
}

// NewPowerHost returns a host as it is after the start of the kernel.
func NewPowerHost(power Power) *PowerHost {
	power.PerPolicy = max(power.PerPolicy, 1)
	h := &PowerHost{power: power, values: make(map[string]string), saved: make(map[int]string), asked: make(map[string]int), offline: make(map[string]bool), requested: make(map[string]bool), away: make(map[string]int)}
	for cpu := range power.CPUs {
		folder := fmt.Sprintf("sys/devices/system/cpu/cpu%d", cpu)
		h.set(folder+"/power/pm_qos_resume_latency_us", "0")
		first := cpu - cpu%power.PerPolicy
		if power.Driver == "" {
			continue
		}
		if cpu == first {
			h.addPolicy(cpu)
		}
		if power.Driver == CPPCCpufreq || power.Driver == AMDPstate || power.Driver == AMDPstateEPP {
			h.set(folder+"/acpi_cppc/nominal_freq", fmt.Sprint(BaseKHz/1000))
		}
	}
	all := fmt.Sprintf("0-%d", power.CPUs-1)
	h.set("sys/devices/system/cpu/online", all)
	h.set("sys/devices/system/cpu/possible", all)
	h.set("sys/devices/system/cpu/cpuidle/current_driver", cmp.Or(power.Idle, "none"))
	everyone, _ := cpuset.Parse(all)
	h.set("proc/irq/default_smp_affinity", everyone.Mask())
	h.addUncore()
	for _, line := range power.Lines {
		h.addLine(line)
	}
	h.structure = memfs.New(maps.Clone(h.values), h.links(), nil)
	return h
}

func (h *PowerHost) set(name, text string) { h.values[name] = text + "\n" }

func (h *PowerHost) addPolicy(first int) {
	folder := policyFolder(first)
	var related []string
	for cpu := first; cpu < min(first+h.power.PerPolicy, h.power.CPUs); cpu++ {
		related = append(related, fmt.Sprint(cpu))
	}
	governors, governor := "conservative ondemand userspace powersave performance schedutil ", "schedutil"
	if h.power.Driver.active() {
		governors, governor = "performance powersave", "powersave"
	}
	for file, text := range map[string]string{
		"related_cpus": strings.Join(related, " "), "affected_cpus": strings.Join(related, " "),
		"scaling_driver": string(h.power.Driver), "scaling_available_governors": governors, "scaling_governor": governor,
		"cpuinfo_min_freq": fmt.Sprint(LowestKHz), "cpuinfo_max_freq": fmt.Sprint(HighestKHz),
	} {
		h.set(folder+file, text)
	}
	if h.power.Driver.hasPreferences() {
		h.set(folder+"energy_performance_available_preferences", "default performance balance_performance balance_power power ")
		h.set(folder+energyFile, cmp.Or(h.power.Energy, "balance_performance"))
	}
	switch h.power.Driver {
	case IntelPstate, IntelCpufreq:
		h.set(folder+"base_frequency", fmt.Sprint(BaseKHz))
	case ACPICpufreq:
		h.set(folder+"scaling_available_frequencies", fmt.Sprintf("%d %d %d ", BaseKHz, 1_600_000, LowestKHz))
	}
	h.asked[folder+minFile], h.asked[folder+maxFile] = LowestKHz, HighestKHz
	h.limit(folder)
}

func (h *PowerHost) addLine(line Line) {
	cpus, _ := cpuset.Parse(line.CPUs)
	folder := fmt.Sprintf("proc/irq/%d/", line.Number)
	h.set(folder+"smp_affinity_list", line.CPUs)
	h.set(folder+"effective_affinity_list", firstOf(cpus))
	h.set(fmt.Sprintf("sys/kernel/irq/%d/actions", line.Number), line.Name)
	if line.Function != "" {
		h.set(fmt.Sprintf("sys/bus/pci/devices/%s/msi_irqs/%d", line.Function, line.Number), "msix")
	}
}

// Request makes a new interrupt, as a driver does. It may be handled by the default CPUs.
func (h *PowerHost) Request(line Line) {
	if line.CPUs == "" {
		cpus, _ := cpuset.ParseMask(h.values["proc/irq/default_smp_affinity"])
		line.CPUs = cpus.String()
	}
	h.power.Lines = append(slices.Clone(h.power.Lines), line)
	h.addLine(line)
	h.structure = memfs.New(maps.Clone(h.values), h.links(), nil)
}

// End ends an interrupt.
func (h *PowerHost) End(number int) {
	for name := range h.values {
		if strings.Contains(name, fmt.Sprintf("/irq/%d/", number)) || strings.HasSuffix(name, fmt.Sprintf("/msi_irqs/%d", number)) {
			delete(h.values, name)
		}
	}
	h.structure = memfs.New(maps.Clone(h.values), h.links(), nil)
}

// Unplug takes a policy away, as when all of its CPUs are removed from the machine.
func (h *PowerHost) Unplug(policy int) {
	for name := range h.values {
		if strings.HasPrefix(name, policyFolder(policy)) {
			delete(h.values, name)
		}
	}
	h.structure = memfs.New(maps.Clone(h.values), h.links(), nil)
}

// Plug brings a policy back, as when its CPUs are added again: it has the values of a
// start.
func (h *PowerHost) Plug(policy int) {
	h.addPolicy(policy)
	h.structure = memfs.New(maps.Clone(h.values), h.links(), nil)
}

// SetOnline brings all CPUs of a policy online, or takes them offline: then its files are
// there, and reading and writing them is EBUSY. It keeps its values.
func (h *PowerHost) SetOnline(policy int, online bool) {
	h.offline[policyFolder(policy)] = !online
	for cpu := policy; cpu < policy+h.power.PerPolicy; cpu++ {
		h.SetCPUOnline(cpu, online)
	}
}

// SetCPUOnline brings one CPU of a policy online, or takes it offline.
func (h *PowerHost) SetCPUOnline(cpu int, online bool) {
	const file = "sys/devices/system/cpu/online"
	cpus, _ := cpuset.Parse(strings.TrimSpace(h.values[file]))
	if cpus = cpus.Difference(cpuset.New(cpu)); online {
		cpus.Insert(cpu)
	}
	h.set(file, cpus.String())
	policy := cpu - cpu%h.power.PerPolicy
	related, _ := cpuset.Parse(fmt.Sprintf("%d-%d", policy, policy+h.power.PerPolicy-1))
	h.set(policyFolder(policy)+"affected_cpus", strings.NewReplacer(",", " ", "-", " ").Replace(related.Intersection(cpus).String()))
}

func (h *PowerHost) links() map[string]string {
	links := make(map[string]string)
	for cpu := range h.power.CPUs {
		first := cpu - cpu%h.power.PerPolicy
		if _, there := h.values[policyFolder(first)+"related_cpus"]; there {
			links[fmt.Sprintf("sys/devices/system/cpu/cpu%d/cpufreq", cpu)] = fmt.Sprintf("../cpufreq/policy%d", first)
		}
	}
	return links
}

// SetLimit changes the frequency to which the firmware limits CPUs; 0 for no limit.
func (h *PowerHost) SetLimit(kHz int) {
	h.power.LimitKHz = kHz
	for name := range maps.Clone(h.values) {
		if folder, ok := strings.CutSuffix(name, maxFile); ok {
			h.limit(folder)
		}
	}
}

// SetFull says which CPUs have no free interrupt vector.
func (h *PowerHost) SetFull(cpus cpuset.Set) { h.full = cpus }

// Delay says that an interrupt has not occurred since it was moved, so CPUs that may not
// handle it any more still do: CONFIG_GENERIC_PENDING_IRQ.
func (h *PowerHost) Delay(number int, cpus string) {
	h.set(fmt.Sprintf("proc/irq/%d/effective_affinity_list", number), cpus)
}

// Settle lets time pass: the worker of the kernel changes the policies for which frequencies
// were written.
func (h *PowerHost) Settle() {
	for folder := range h.requested {
		h.limit(folder)
	}
	clear(h.requested)
}

// Values returns the content of all files that can be written, after some time.
func (h *PowerHost) Values() map[string]string {
	h.Settle()
	values := make(map[string]string)
	for name, text := range h.values {
		if isWritable(name) {
			values[name] = text
		}
	}
	return values
}

// Writes returns how many writes there were, also those that were refused.
func (h *PowerHost) Writes() int { return h.writes }

// Crossed reports whether a lowest frequency was ever set above the highest one.
func (h *PowerHost) Crossed() bool { return h.crossed }

func policyFolder(first int) string {
	return fmt.Sprintf("sys/devices/system/cpu/cpufreq/policy%d/", first)
}

func firstOf(cpus cpuset.Set) string {
	if first, ok := cpus.First(); ok {
		return fmt.Sprint(first)
	}
	return ""
}
