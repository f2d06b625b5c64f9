package chart

import (
	"fmt"
	"slices"
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
		facts = append(facts, Frequency(frequency, status.Asked)...)
	}
	facts = append(facts, uncores(status)...)
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

// Frequency says in short clauses what the policies have that the claim changes, such as
// "governor performance" and "from 2.4GHz (asked max)".
func Frequency(got deviceclasses.FrequencyStatus, asked deviceclasses.PerformanceSettings) (facts []string) {
	if got.Governor != "" {
		facts = append(facts, "governor "+got.Governor)
	}
	if got.EnergyPreference != "" && got.EnergyPreference != got.Governor {
		facts = append(facts, "energy preference "+got.EnergyPreference)
	}
	for _, limit := range []struct{ word, got, asked string }{
		{"from", got.MinFrequency, asked.MinFrequency}, {"to", got.MaxFrequency, asked.MaxFrequency},
	} {
		if limit.got != "" {
			facts = append(facts, gotAndAsked(limit.word, limit.got, limit.asked))
		}
	}
	return facts
}

// uncores returns the lowest frequencies of the dies, each once, such as "uncore from 2GHz".
func uncores(status *deviceclasses.PerformanceStatus) (facts []string) {
	for _, die := range status.Uncore {
		fact := gotAndAsked("uncore from", die.MinFrequency, status.Asked.MinUncoreFrequency)
		if die.MinFrequency != "" && !slices.Contains(facts, fact) {
			facts = append(facts, fact)
		}
	}
	return facts
}

// gotAndAsked says what the kernel gave, and what the claim asked for if that differs.
func gotAndAsked(word, got, asked string) string {
	if asked == "" || asked == got {
		return word + " " + got
	}
	return fmt.Sprintf("%s %s (asked %s)", word, got, asked)
}
