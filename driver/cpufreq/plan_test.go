package cpufreq

import (
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/sysfs"
)

type settings = deviceclasses.PerformanceSettings

// cores are pairs of threads: (0,1) (2,3) …
func cores(cpus int) (list []numa.Core) {
	for cpu := 0; cpu < cpus; cpu += 2 {
		list = append(list, numa.Core{CPUs: cpuset.New(cpu, cpu+1)})
	}
	return list
}

func list(t testing.TB, text string) cpuset.Set {
	t.Helper()
	cpus, err := cpuset.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return cpus
}

func plan(t testing.TB, kernel *sysfs.PowerHost, cpus string, s settings) (Changes, error) {
	t.Helper()
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	state, err := Read(kernel, list(t, cpus), s)
	if err != nil {
		t.Fatal(err)
	}
	return Plan(state, cores(8), list(t, cpus), s)
}

func TestWhatTheMachineDoesNotHaveIsRefusedInOneLine(t *testing.T) {
	none, zero := sysfs.FrequencyDriver(""), 0
	for name, row := range map[string]struct {
		power    sysfs.Power
		cpus     string
		settings settings
		want     string
	}{
		"above the range":            {sysfs.Power{Driver: sysfs.ACPICpufreq}, "4-5", settings{MaxFrequency: "5GHz"}, `maxFrequency: "5GHz" is 5GHz, cpus 4 have 800MHz to 3.6GHz`},
		"below the range":            {sysfs.Power{Driver: sysfs.ACPICpufreq}, "4-5", settings{MinFrequency: "0.1x base"}, `minFrequency: "0.1x base" is 240MHz, cpus 4 have 800MHz to 3.6GHz`},
		"the lowest above highest":   {sysfs.Power{Driver: sysfs.IntelPstate}, "4-5", settings{MinFrequency: "1.2x base", MaxFrequency: "2GHz"}, `minFrequency: "1.2x base" is 2.88GHz on cpus 4, allowed are frequencies up to maxFrequency, 2GHz`},
		"base of the table":          {sysfs.Power{Driver: sysfs.ACPICpufreq}, "4-5", settings{MinFrequency: "base"}, ""},
		"unknown governor":           {sysfs.Power{Driver: sysfs.IntelPstate}, "4-5", settings{Governor: "ondemand"}, `governor: "ondemand", cpus 4 with the frequency driver intel_pstate have performance, powersave`},
		"no preferences":             {sysfs.Power{Driver: sysfs.ACPICpufreq}, "4-5", settings{EnergyPreference: "power"}, `energyPreference: "power", cpus 4 with the frequency driver acpi-cpufreq have none: intel_pstate and amd-pstate have it when they are active`},
		"no preferences when guided": {sysfs.Power{Driver: sysfs.AMDPstate}, "4-5", settings{EnergyPreference: "power"}, `energyPreference: "power", cpus 4 with the frequency driver amd-pstate have none: intel_pstate and amd-pstate have it when they are active`},
		"others share the policy":    {sysfs.Power{Driver: sysfs.CPPCCpufreq, PerPolicy: 4}, "4-5", settings{Governor: "performance"}, `governor: cpus 4-7 change their frequency together, and the request does not have cpus 6-7`},
		"others share the core":      {sysfs.Power{Driver: sysfs.IntelPstate}, "4", settings{MaxFrequency: "2GHz"}, `maxFrequency: cpus 4-5 are threads of one core, and the request does not have cpus 5: request whole cores`},
		"no driver":                  {sysfs.Power{Driver: none}, "4-5", settings{EnergyPreference: "power"}, `energyPreference: the kernel has no frequency driver for cpus 4-5`},
		"no idle driver":             {sysfs.Power{Driver: none}, "4-5", settings{IdleLatency: &zero}, `idleLatency: the kernel has no driver of idle states on this node, so it cannot limit them`},
		"no limit":                   {sysfs.Power{Idle: "intel_idle"}, "8", settings{IdleLatency: &zero}, `idleLatency: the kernel cannot limit idle states of cpu 8: sys/devices/system/cpu/cpu8/power/pm_qos_resume_latency_us does not exist`},
		"half a core is enough":      {sysfs.Power{Idle: "intel_idle"}, "4", settings{IdleLatency: &zero}, ""},
	} {
		row.power.CPUs = 8
		if _, err := plan(t, sysfs.NewPowerHost(row.power), row.cpus, row.settings); (err == nil) != (row.want == "") || err != nil && err.Error() != row.want {
			t.Errorf("%s: error %v, want %s", name, err, row.want)
		}
	}
}

// A CPU that is offline has no frequency, and no request can have it.
func TestOfflineCPUsDoNotCountInAPolicy(t *testing.T) {
	kernel := sysfs.NewPowerHost(sysfs.Power{CPUs: 8, Driver: sysfs.ACPICpufreq, PerPolicy: 2})
	kernel.SetCPUOnline(5, false)
	state, err := Read(kernel, list(t, "4"), settings{MaxFrequency: "2GHz"})
	if err != nil {
		t.Fatal(err)
	}
	online := []numa.Core{{CPUs: list(t, "4")}, {CPUs: list(t, "6-7")}}
	if changes, err := Plan(state, online, list(t, "4"), settings{MaxFrequency: "2GHz"}); err != nil || changes.Policies() != list(t, "4") {
		t.Errorf("changes %+v, %v, want those of policy 4", changes, err)
	}
}

func TestABaseFrequencyThatTheMachineDoesNotSay(t *testing.T) {
	state := State{Policies: []numa.FrequencyPolicy{{ID: 4, CPUs: list(t, "4-5"), LowestKHz: 800_000, HighestKHz: 3_600_000, MaxKHz: 3_600_000}}}
	_, err := Plan(state, cores(8), list(t, "4-5"), settings{MinFrequency: "0.5x base"})
	if want := `minFrequency: "0.5x base", the machine does not say the base frequency of cpus 4-5`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestTheGovernorThatIsThereAllowsOnlyPerformance(t *testing.T) {
	kernel := sysfs.NewPowerHost(sysfs.Power{CPUs: 8, Driver: sysfs.AMDPstateEPP})
	write(t, kernel, "policy4/scaling_governor", "performance")
	_, err := plan(t, kernel, "4-5", settings{EnergyPreference: "power"})
	if want := `energyPreference: "power", cpus 4 have the governor performance, which allows only performance: set governor, too`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if _, err := plan(t, kernel, "4-5", settings{EnergyPreference: "power", Governor: "powersave"}); err != nil {
		t.Error(err)
	}
}

func TestTheBaseFrequencyOfEveryDriver(t *testing.T) {
	for _, driver := range sysfs.FrequencyDrivers() {
		kernel := sysfs.NewPowerHost(sysfs.Power{CPUs: 8, Driver: driver})
		policies, err := numa.ReadFrequencyPolicies(kernel, list(t, "4-5"))
		if err != nil || len(policies) != 2 {
			t.Fatalf("%s: %d policies, %v", driver, len(policies), err)
		}
		p := policies[1]
		if p.ID != 5 || p.Driver != string(driver) || p.BaseKHz != sysfs.BaseKHz || p.LowestKHz != sysfs.LowestKHz || p.HighestKHz != sysfs.HighestKHz || p.Governor == "" {
			t.Errorf("%s: policy %+v", driver, p)
		}
	}
}

// A claim that only lowers the highest frequency also lowers the lowest one, which is
// restored with it.
func TestTheRangeIsNeverCrossed(t *testing.T) {
	kernel := sysfs.NewPowerHost(sysfs.Power{CPUs: 8, Driver: sysfs.ACPICpufreq})
	for _, policy := range []string{"policy4", "policy5"} {
		write(t, kernel, policy+"/scaling_min_freq", "2000000")
	}
	changes, err := plan(t, kernel, "4-5", settings{MaxFrequency: "1GHz"})
	want := Change{Policies: list(t, "4-5"), Driver: "acpi-cpufreq", Before: Values{Governor: "schedutil", MinKHz: 2_000_000, MaxKHz: sysfs.HighestKHz}, Want: Values{MinKHz: 1_000_000, MaxKHz: 1_000_000}}
	if err != nil || len(changes.Frequencies) != 1 || changes.Frequencies[0] != want {
		t.Errorf("changes %+v, %v, want %+v", changes, err, want)
	}
	before := kernel.Values()
	host := New(kernel, kernel.Write)
	if changes, err = host.Apply(changes); err != nil {
		t.Fatal(err)
	}
	if err := host.Restore(changes); err != nil {
		t.Fatal(err)
	}
	expectValues(t, kernel, before)
	if kernel.Crossed() {
		t.Error("the lowest frequency was above the highest one")
	}
}

func write(t testing.TB, kernel *sysfs.PowerHost, file, text string) {
	t.Helper()
	if strings.HasPrefix(file, "policy") {
		file = "cpufreq/" + file
	}
	if err := kernel.Write("sys/devices/system/cpu/"+file, text); err != nil {
		t.Fatal(err)
	}
	kernel.Settle()
}

func expectValues(t testing.TB, kernel *sysfs.PowerHost, want map[string]string) {
	t.Helper()
	for name, text := range kernel.Values() {
		if text != want[name] {
			t.Errorf("%s has %q, want %q", name, text, want[name])
		}
	}
}
