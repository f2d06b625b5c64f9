package metrics

import (
	"slices"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/driver/cpufreq"
	"github.com/dra-driver-numa/dra-driver-numa/driver/interrupts"
	"github.com/dra-driver-numa/dra-driver-numa/driver/tuning"
	"github.com/dra-driver-numa/dra-driver-numa/test/sample"
	"github.com/dra-driver-numa/dra-driver-numa/test/sysfs"
)

// openTuned returns the driver of a node that changes frequencies, with a claim for which it
// has done so.
func openTuned(t testing.TB) *driver.Driver {
	host := sysfs.NewPowerHost(sysfs.Power{CPUs: 18, Driver: sysfs.IntelPstate, Idle: "intel_idle"})
	return openOn(t, sample.Machine(t, "rig"), &tuning.Config{
		Frequencies: cpufreq.New(host, host.Write), Interrupts: interrupts.New(host, host.Write),
	})
}

func TestMetricsOfFrequencies(t *testing.T) {
	for what, row := range map[string]struct {
		driver *driver.Driver
		want   []string
	}{
		"performance is allowed": {openTuned(t), []string{
			`dra_numa_claim_asked_frequency_hertz{device="numa-3",limit="min",namespace="default",resourceclaim="e"} 3.3e+09`,
			`dra_numa_claim_frequency_hertz{cpu="fastest",device="numa-3",namespace="default",resourceclaim="e"} 8e+08`,
			`dra_numa_claim_frequency_hertz{cpu="slowest",device="numa-3",namespace="default",resourceclaim="e"} 8e+08`,
		}},
		"and not": {openOn(t, sample.Machine(t, "rig"), nil), nil},
	} {
		e, _ := newExporter(t)
		e.Serve(Node{Driver: row.driver, Figures: sampleFigures(row.driver), Hooks: sampleHooks})
		var got []string
		for line := range strings.Lines(scrape(t, e)) {
			if strings.HasPrefix(line, "dra_numa_claim_frequency") || strings.HasPrefix(line, "dra_numa_claim_asked") {
				got = append(got, strings.TrimSpace(line))
			}
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: metrics are\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(row.want, "\n"))
		}
	}
}
