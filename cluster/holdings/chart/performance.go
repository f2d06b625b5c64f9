package chart

import (
	"fmt"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// Performance says in short clauses what the CPUs of a share have because of the claim; it
// is empty if the claim leaves them as they are. What the claim asked for is named where
// the kernel gave something else.
func Performance(status *deviceclasses.PerformanceStatus) (facts []string) {
	if status == nil {
		return nil
	}
	for _, frequency := range status.Frequencies {
		if frequency.Governor != "" {
			facts = append(facts, "governor "+frequency.Governor)
		}
		if frequency.EnergyPreference != "" && frequency.EnergyPreference != frequency.Governor {
			facts = append(facts, "energy preference "+frequency.EnergyPreference)
		}
		facts = append(facts, frequencies(frequency, status.Asked)...)
	}
	switch latency := status.Asked.IdleLatency; {
	case latency != nil && *latency == 0:
		facts = append(facts, "never idle")
	case latency != nil:
		facts = append(facts, fmt.Sprintf("awake within %d us", *latency))
	}
	switch status.Asked.Interrupts {
	case deviceclasses.InterruptsAway:
		facts = append(facts, "interrupts away")
	case deviceclasses.InterruptsOwn:
		facts = append(facts, "only its own interrupts")
	}
	if len(status.Interrupts) > 0 {
		var names []string
		for _, interrupt := range status.Interrupts {
			names = append(names, interrupt.Name)
		}
		facts = append(facts, "the kernel does not move "+strings.Join(names, " "))
	}
	return facts
}

// frequencies returns the range that is set, such as "from 2.4GHz, to 3GHz".
func frequencies(got deviceclasses.FrequencyStatus, asked deviceclasses.PerformanceSettings) (facts []string) {
	for _, limit := range []struct{ word, got, asked string }{
		{"from", got.MinFrequency, asked.MinFrequency}, {"to", got.MaxFrequency, asked.MaxFrequency},
	} {
		switch {
		case limit.got == "":
		case limit.asked == "" || limit.asked == limit.got:
			facts = append(facts, limit.word+" "+limit.got)
		default:
			facts = append(facts, fmt.Sprintf("%s %s (asked %s)", limit.word, limit.got, limit.asked))
		}
	}
	return facts
}
