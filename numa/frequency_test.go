package numa_test

import (
	"testing"
	"testing/fstest"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// With acpi-cpufreq on Intel, turbo is one frequency of the table, 1 MHz above the base
// frequency. On AMD, the table has no turbo.
func TestBaseFrequencyIsWithoutTurbo(t *testing.T) {
	for table, want := range map[string]int{
		"2401000 2400000 1800000 1200000": 2_400_000,
		"1200000 2400000 2401000":         2_400_000,
		"2400000 2300000 1200000":         2_400_000,
		"2401000":                         2_401_000,
		"":                                0,
	} {
		folder := numa.FrequencyPolicyFolder(0) + "/"
		files := fstest.MapFS{}
		for name, text := range map[string]string{
			"affected_cpus": "0", "cpuinfo_min_freq": "1200000", "cpuinfo_max_freq": "2401000", "scaling_min_freq": "1200000", "scaling_max_freq": "2401000",
			"scaling_driver": "acpi-cpufreq", "scaling_governor": "ondemand", "scaling_available_frequencies": table,
		} {
			files[folder+name] = &fstest.MapFile{Data: []byte(text)}
		}
		if policy, err := numa.ReadFrequencyPolicy(files, 0); err != nil || policy.BaseKHz != want {
			t.Errorf("table %q: base frequency is %d kHz, %v, want %d", table, policy.BaseKHz, err, want)
		}
	}
}
