package cpufreq

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/test/sysfs"
)

// demands are settings that each driver can have.
func demands(driver sysfs.FrequencyDriver) []settings {
	never, short := 0, 20
	all := []settings{
		{MinFrequency: "max"},
		{MaxFrequency: "1GHz"},
		{MinFrequency: "base", MaxFrequency: "1.25x base"},
		{Governor: "performance"},
		{Governor: "powersave", MaxFrequency: "min"},
		{Governor: "performance", MinFrequency: "min", MaxFrequency: "max", IdleLatency: &never},
		{IdleLatency: &short},
		{IdleLatency: &never, MinFrequency: "2GHz"},
	}
	switch driver {
	case sysfs.IntelPstate, sysfs.AMDPstateEPP, sysfs.IntelCpufreq:
		all = append(all, settings{Governor: "performance", EnergyPreference: "performance"}, settings{EnergyPreference: "power", Governor: "powersave"})
	}
	return all
}

func TestAppliedAndRestoredOnEveryDriver(t *testing.T) {
	for _, driver := range sysfs.FrequencyDrivers() {
		for _, s := range demands(driver) {
			kernel := sysfs.NewPowerHost(sysfs.Power{CPUs: 8, Driver: driver, Idle: "acpi_idle"})
			host, before := New(kernel, kernel.Write), kernel.Values()
			planned, err := plan(t, kernel, "4-7", s)
			if err != nil {
				t.Fatalf("%s: %+v: %v", driver, s, err)
			}
			applied, err := host.Apply(planned)
			if err != nil {
				t.Fatalf("%s: %+v: %v", driver, s, err)
			}
			for _, change := range applied.Frequencies {
				if change.Got != change.Want {
					t.Errorf("%s: %+v: got %+v, want %+v", driver, s, change.Got, change.Want)
				}
			}
			writes, after := kernel.Writes(), kernel.Values()
			if again, err := host.Apply(applied); err != nil || !again.Equal(applied) || kernel.Writes() != writes {
				t.Errorf("%s: %+v: applied again: %+v, %v, %d more writes", driver, s, again, err, kernel.Writes()-writes)
			}
			if maps.Equal(before, after) {
				t.Errorf("%s: %+v changes nothing", driver, s)
			}
			if err := host.Restore(applied); err != nil {
				t.Errorf("%s: %+v: %v", driver, s, err)
			}
			expectValues(t, kernel, before)
			if kernel.Crossed() {
				t.Errorf("%s: %+v: the lowest frequency was above the highest one", driver, s)
			}
		}
	}
}

// The classes that are installed work with every driver.
func TestInstalledClassesOnEveryDriver(t *testing.T) {
	classes, err := deviceclasses.All()
	if err != nil {
		t.Fatal(err)
	}
	tuned := 0
	for _, class := range classes {
		var config deviceclasses.RequestConfig
		for _, document := range class.Spec.Config {
			if config, err = config.DecodeOver(document.Opaque.Parameters.Raw); err != nil {
				t.Fatal(err)
			}
		}
		s := config.Performance.PerformanceSettings
		if s.IsZero() {
			continue
		}
		tuned++
		for _, driver := range sysfs.FrequencyDrivers() {
			kernel := sysfs.NewPowerHost(sysfs.Power{CPUs: 8, Driver: driver, Idle: "acpi_idle"})
			host, before := New(kernel, kernel.Write), kernel.Values()
			planned, err := plan(t, kernel, "4-7", s)
			if err != nil {
				t.Fatalf("%s: %s: %v", class.Name, driver, err)
			}
			applied, err := host.Apply(planned)
			if err != nil || maps.Equal(kernel.Values(), before) {
				t.Fatalf("%s: %s: applied %+v, %v", class.Name, driver, applied, err)
			}
			if err := host.Restore(applied); err != nil {
				t.Errorf("%s: %s: %v", class.Name, driver, err)
			}
			expectValues(t, kernel, before)
		}
	}
	if tuned != 3 {
		t.Errorf("%d classes change CPUs, want 3", tuned)
	}
}

// The firmware may have set a number for which the kernel has no name. intel_pstate shows and
// takes it as a number.
func TestAnEnergyPreferenceWithoutANameIsRestored(t *testing.T) {
	for _, driver := range []sysfs.FrequencyDriver{sysfs.IntelPstate, sysfs.IntelCpufreq} {
		kernel := sysfs.NewPowerHost(sysfs.Power{CPUs: 8, Driver: driver, Energy: "200"})
		host, before := New(kernel, kernel.Write), kernel.Values()
		for _, s := range demands(driver)[8:] {
			planned, err := plan(t, kernel, "4-7", s)
			if err != nil {
				t.Fatalf("%s: %+v: %v", driver, s, err)
			}
			applied, err := host.Apply(planned)
			if err != nil || applied.Frequencies[0].Got != applied.Frequencies[0].Want {
				t.Fatalf("%s: %+v: %+v, %v", driver, s, applied, err)
			}
			if err := host.Restore(applied); err != nil {
				t.Errorf("%s: %+v: %v", driver, s, err)
			}
			expectValues(t, kernel, before)
		}
	}
}

// amd-pstate shows only preferences that have a name. CPUs with another one keep it, and can
// have everything else.
func TestAnEnergyPreferenceThatTheKernelDoesNotShowIsKept(t *testing.T) {
	kernel := sysfs.NewPowerHost(sysfs.Power{CPUs: 8, Driver: sysfs.AMDPstateEPP, Energy: "200"})
	host, before := New(kernel, kernel.Write), kernel.Values()
	planned, err := plan(t, kernel, "4-7", settings{MinFrequency: "max"})
	if err != nil {
		t.Fatal(err)
	}
	applied, err := host.Apply(planned)
	if err != nil || maps.Equal(kernel.Values(), before) {
		t.Fatalf("applied %+v, %v", applied, err)
	}
	if err := host.Restore(applied); err != nil {
		t.Fatal(err)
	}
	expectValues(t, kernel, before)
	for field, s := range map[string]settings{"governor": {Governor: "performance"}, "energyPreference": {EnergyPreference: "power"}} {
		_, err := plan(t, kernel, "4-7", s)
		if want := field + ": cpus 4 have an energy preference now for which the frequency driver amd-pstate-epp has no name, so it could not be restored"; err == nil || err.Error() != want {
			t.Errorf("%+v: error %v, want %s", s, err, want)
		}
	}
}

// A daemon that dies after any write, with what the kernel made of it unknown, is healed by
// doing it again and by going back.
func TestCrashAfterAnyWriteHeals(t *testing.T) {
	crash := errors.New("crash")
	for _, driver := range sysfs.FrequencyDrivers() {
		for _, s := range demands(driver) {
			for last := 0; ; last++ {
				kernel := sysfs.NewPowerHost(sysfs.Power{CPUs: 8, Driver: driver, Idle: "acpi_idle", LimitKHz: 3_000_000})
				before := kernel.Values()
				writes := 0
				dying := New(kernel, func(name, text string) error {
					if writes++; writes > last {
						return crash
					}
					return kernel.Write(name, text)
				})
				planned, err := plan(t, kernel, "4-7", s)
				if err != nil {
					t.Fatal(err)
				}
				_, died := dying.Apply(planned)
				kernel.Settle()
				host := New(kernel, kernel.Write)
				if last%2 == 1 {
					if planned, err = host.Apply(planned); err != nil {
						t.Fatal(err)
					}
				}
				writes = 0
				_ = dying.Restore(planned) // dies, too
				kernel.Settle()
				if err := host.Restore(planned); err != nil {
					t.Fatal(err)
				}
				expectValues(t, kernel, before)
				if died == nil {
					break
				}
			}
		}
	}
}

func TestTheKernelLimitsAndTheStatusSaysSo(t *testing.T) {
	kernel := sysfs.NewPowerHost(sysfs.Power{CPUs: 8, Driver: sysfs.ACPICpufreq, LimitKHz: 2_000_000})
	host, before := New(kernel, kernel.Write), kernel.Values()
	planned, err := plan(t, kernel, "4-5", settings{MinFrequency: "max"})
	if err != nil {
		t.Fatal(err)
	}
	applied, err := host.Apply(planned)
	if want := (Values{MinKHz: 2_000_000, MaxKHz: 2_000_000}); err != nil || applied.Frequencies[0].Got != want {
		t.Errorf("got %+v, %v, want %+v", applied.Frequencies[0].Got, err, want)
	}
	kernel.SetLimit(2_500_000) // still ours: the kernel shows more of what was asked
	kernel.SetLimit(2_000_000)
	if err := host.Restore(applied); err != nil {
		t.Error(err)
	}
	expectValues(t, kernel, before)
}

func TestWhatAnotherProgramWritesStays(t *testing.T) {
	kernel := sysfs.NewPowerHost(sysfs.Power{CPUs: 8, Driver: sysfs.IntelPstate, Idle: "intel_idle"})
	host, never := New(kernel, kernel.Write), 0
	planned, err := plan(t, kernel, "4-5", settings{Governor: "performance", MinFrequency: "1GHz", MaxFrequency: "2GHz", IdleLatency: &never})
	if err != nil {
		t.Fatal(err)
	}
	applied, err := host.Apply(planned)
	if err != nil {
		t.Fatal(err)
	}
	want := kernel.Values()
	for file, text := range map[string]string{"cpufreq/policy4/scaling_max_freq": "1500000", "cpu5/power/pm_qos_resume_latency_us": "7", "cpufreq/policy5/scaling_governor": "powersave"} {
		write(t, kernel, file, text)
		want["sys/devices/system/cpu/"+file] = text + "\n"
	}
	for file, text := range map[string]string{
		"cpufreq/policy4/scaling_min_freq": "800000", "cpufreq/policy5/scaling_min_freq": "800000", "cpufreq/policy5/scaling_max_freq": "3600000", "cpufreq/policy4/scaling_governor": "powersave",
		"cpufreq/policy4/energy_performance_preference": "balance_performance", "cpufreq/policy5/energy_performance_preference": "balance_performance",
		"cpu4/power/pm_qos_resume_latency_us": "0",
	} {
		want["sys/devices/system/cpu/"+file] = text + "\n"
	}
	if err := host.Restore(applied); err != nil {
		t.Fatal(err)
	}
	expectValues(t, kernel, want)
}

// The governor is not ours any more, and it allows no other preference.
func TestAPreferenceThatCannotBeRestoredIsLeft(t *testing.T) {
	kernel := sysfs.NewPowerHost(sysfs.Power{CPUs: 8, Driver: sysfs.AMDPstateEPP})
	host := New(kernel, kernel.Write)
	planned, err := plan(t, kernel, "4-5", settings{EnergyPreference: "performance"})
	if err != nil {
		t.Fatal(err)
	}
	applied, err := host.Apply(planned)
	if err != nil {
		t.Fatal(err)
	}
	write(t, kernel, "policy4/scaling_governor", "performance")
	if err := host.Restore(applied); err != nil {
		t.Error(err)
	}
}

func TestCPUsThatAreGoneOrHaveAnotherDriverAreLeft(t *testing.T) {
	kernel := sysfs.NewPowerHost(sysfs.Power{CPUs: 8, Driver: sysfs.IntelCpufreq})
	host := New(kernel, kernel.Write)
	planned, err := plan(t, kernel, "4-7", settings{Governor: "performance", MaxFrequency: "2GHz"})
	if err != nil {
		t.Fatal(err)
	}
	kernel.Unplug(4)
	applied, err := host.Apply(planned)
	if err != nil {
		t.Fatal(err)
	}
	kernel.Plug(4)
	if applied, err = host.Apply(applied); err != nil || len(applied.Frequencies) != 1 || applied.Frequencies[0].Got != applied.Frequencies[0].Want {
		t.Errorf("online again: %+v, %v", applied, err)
	}
	kernel.Unplug(5)
	want := kernel.Values()
	other := Changes{Frequencies: slices.Clone(applied.Frequencies)}
	other.Frequencies[0].Driver = "intel_pstate"
	if err := host.Restore(other); err != nil {
		t.Error(err)
	}
	expectValues(t, kernel, want)
	if _, err := host.Apply(other); err == nil || err.Error() != "frequency of cpus 4: the driver is now intel_cpufreq, not intel_pstate" {
		t.Errorf("error %v", err)
	}
	if err := host.Restore(applied); err != nil {
		t.Error(err)
	}
}

// The kernel keeps what was written before the CPUs went offline.
func TestCPUsThatAreOfflineAreChangedAndRestoredWhenTheyAreOnline(t *testing.T) {
	kernel := sysfs.NewPowerHost(sysfs.Power{CPUs: 8, Driver: sysfs.ACPICpufreq})
	host, before := New(kernel, kernel.Write), kernel.Values()
	planned, err := plan(t, kernel, "4-7", settings{Governor: "performance", MaxFrequency: "2GHz"})
	if err != nil {
		t.Fatal(err)
	}
	kernel.SetOnline(4, false)
	applied, err := host.Apply(planned)
	if err != nil {
		t.Fatal(err)
	}
	kernel.SetOnline(4, true)
	if applied, err = host.Apply(applied); err != nil || len(applied.Frequencies) != 1 || applied.Frequencies[0].Got != applied.Frequencies[0].Want {
		t.Errorf("online again: %+v, %v", applied, err)
	}
	kernel.SetOnline(5, false)
	if err := host.Restore(applied); !errors.Is(err, numa.ErrOffline) {
		t.Errorf("error %v, want one that says that CPUs are offline", err)
	}
	if maps.Equal(kernel.Values(), before) {
		t.Error("CPUs that are offline were restored")
	}
	kernel.SetOnline(5, true)
	if err := host.Restore(applied); err != nil {
		t.Error(err)
	}
	expectValues(t, kernel, before)
}

// After the last claim, every file has the value that it had before the first one.
func TestRandomClaims(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 0))
	parts := []string{"0-1", "2-3", "4-5", "6-7"}
	sequences := 10_000
	if testing.Short() {
		sequences = 1000
	}
	for sequence := range sequences {
		driver := sysfs.FrequencyDrivers()[random.IntN(6)]
		kernel := sysfs.NewPowerHost(sysfs.Power{CPUs: 8, Driver: driver, Idle: "acpi_idle", LimitKHz: []int{0, 3_000_000}[random.IntN(2)]})
		host, before := New(kernel, kernel.Write), kernel.Values()
		held := map[string]Changes{}
		for range random.IntN(6) {
			part := parts[random.IntN(len(parts))]
			if changes, isHeld := held[part]; isHeld {
				if err := host.Restore(changes); err != nil {
					t.Fatal(err)
				}
				delete(held, part)
				continue
			}
			planned, err := plan(t, kernel, part, demands(driver)[random.IntN(len(demands(driver)))])
			if err != nil {
				t.Fatal(err)
			}
			held[part] = planned // the daemon may die before it knows what it got
			if applied, err := host.Apply(planned); err != nil {
				t.Fatal(err)
			} else if random.IntN(4) > 0 {
				held[part] = applied
			}
		}
		for _, changes := range held {
			if err := host.Restore(changes); err != nil {
				t.Fatal(err)
			}
		}
		if expectValues(t, kernel, before); t.Failed() || kernel.Crossed() {
			t.Fatalf("sequence %d: crossed: %t", sequence, kernel.Crossed())
		}
	}
}
