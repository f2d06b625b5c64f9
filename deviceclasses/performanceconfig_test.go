package deviceclasses

import (
	"fmt"
	"strings"
	"testing"
)

const performanceHead = `{"apiVersion": "dra.numa/v1alpha1", "kind": "PerformanceConfig"`

// frequencies are the rows of a field that is a frequency.
func frequencies(field string) []fieldRow {
	rows := []fieldRow{
		{json: "", want: ""}, // default
		{json: `""`, want: ""},
		{json: "null", want: ""},
		{class: `"max"`, json: "", want: "max"},
		{class: `"max"`, json: `""`, want: ""},
		{class: `"max"`, json: `"2.4GHz"`, want: "2.4GHz"},
		{json: "2400000", err: field + ": want a string, not a number"},
		{json: "[]", err: field + ": want a string, not an array"},
	}
	for _, valid := range []string{"min", "base", "max", "800MHz", "2.4GHz", "2400000kHz", "1.5x base", "2x base", "0.5x base", "100GHz"} {
		rows = append(rows, fieldRow{json: fmt.Sprintf("%q", valid), want: valid})
	}
	for _, invalid := range []string{
		"2.4", "2.4 GHz", "2.4ghz", "GHz", "-1GHz", "0MHz", "0.0001kHz", "1e3MHz", "1.2.3GHz", ".5GHz", "5.GHz", "101GHz", "NaNGHz", "0x1GHz",
		"x base", "0x base", "101x base", "1.5 x base", "1.5x max", "1.5xbase", "turbo", "MAX", "1GHz\\n", strings.Repeat("1", 400) + "kHz",
	} {
		rows = append(rows, fieldRow{json: `"` + invalid + `"`, err: field + `: "` + invalid + `", ` + wantFrequency})
	}
	return rows
}

// performanceFields are the rows of each field: default, valid, edge, invalid.
func performanceFields() map[string][]fieldRow {
	const wantGovernor = ", want the name of a governor such as performance, powersave or schedutil"
	return map[string][]fieldRow{
		"minFrequency": frequencies("minFrequency"),
		"maxFrequency": frequencies("maxFrequency"),
		"governor": {
			{json: "", want: ""}, // default
			{json: `""`, want: ""},
			{json: "null", want: ""},
			{json: `"performance"`, want: "performance"},
			{json: `"of_the-node9"`, want: "of_the-node9"}, // which ones there are depends on the node
			{class: `"powersave"`, json: "", want: "powersave"},
			{class: `"powersave"`, json: `"schedutil"`, want: "schedutil"},
			{json: "1", err: "governor: want a string, not a number"},
			{json: `"Performance"`, err: `governor: "Performance"` + wantGovernor},
			{json: `"a b"`, err: `governor: "a b"` + wantGovernor},
			{json: `"../x"`, err: `governor: "../x"` + wantGovernor},
			{json: `"a\n"`, err: `governor: "a\n"` + wantGovernor},
			{json: `"aaaaaaaaaaaaaaaa"`, err: `governor: "aaaaaaaaaaaaaaaa"` + wantGovernor},
		},
		"minUncoreFrequency": {
			{json: "", want: ""}, // default
			{json: `""`, want: ""},
			{json: "null", want: ""},
			{json: `"min"`, want: "min"},
			{json: `"max"`, want: "max"},
			{json: `"2.4GHz"`, want: "2.4GHz"},
			{class: `"max"`, json: "", want: "max"},
			{class: `"max"`, json: `""`, want: ""},
			{class: `"max"`, json: `"2GHz"`, want: "2GHz"},
			{json: "2400000", err: "minUncoreFrequency: want a string, not a number"},
			{json: `"base"`, err: `minUncoreFrequency: "base", ` + wantUncoreFrequency},
			{json: `"1.5x base"`, err: `minUncoreFrequency: "1.5x base", ` + wantUncoreFrequency},
			{json: `"2.4"`, err: `minUncoreFrequency: "2.4", ` + wantUncoreFrequency},
		},
		"energyPreference": oneOf("energyPreference", "performance", "balance_performance", "balance_power", "power"),
		"idleLatency": {
			{json: "", want: "<nil>"}, // default
			{json: "null", want: "<nil>"},
			{json: "0", want: "0"}, // never idle
			{json: "20", want: "20"},
			{json: "2147483646", want: "2147483646"},
			{class: "20", json: "", want: "20"},
			{class: "20", json: "0", want: "0"},
			{class: "20", json: "null", want: "<nil>"},
			{json: "-1", err: "idleLatency: -1, allowed are 0 to 2147483646"},
			{json: "2147483647", err: "idleLatency: 2147483647, allowed are 0 to 2147483646"},
			{json: `"20"`, err: "idleLatency: want a whole number, not a string"},
			{json: "1.5", err: "idleLatency: want a whole number, not a number 1.5"},
		},
		"interrupts": {
			{json: "", want: ""}, // default
			{json: `""`, want: ""},
			{json: "null", want: ""},
			{json: `"away"`, want: "away"},
			{json: `"own"`, want: "own"},
			{class: `"away"`, json: "", want: "away"},
			{class: `"away"`, json: `"own"`, want: "own"},
			{class: `"away"`, json: `""`, want: ""},
			{json: "true", err: "interrupts: want a string, not a bool"},
			{json: `"Away"`, err: `interrupts: "Away", allowed are away, own`},
		},
		"locked": lists("governor", "idleLatency", "minFrequency, maxFrequency, governor, energyPreference, minUncoreFrequency, idleLatency, interrupts"),
	}
}

func TestEveryFieldOfAPerformanceConfig(t *testing.T) {
	testEveryField(t, performanceHead, performanceFields(), PerformanceConfig.DecodeOver)
}

// What no machine can have is refused before a pod is placed.
func TestSettingsThatContradictEachOther(t *testing.T) {
	for fields, want := range map[string]string{
		`"minFrequency": "3GHz", "maxFrequency": "2400MHz"`:            `minFrequency: "3GHz", allowed are frequencies up to maxFrequency 2400MHz`,
		`"minFrequency": "1.5x base", "maxFrequency": "base"`:          `minFrequency: "1.5x base", allowed are frequencies up to maxFrequency base`,
		`"minFrequency": "max", "maxFrequency": "min"`:                 `minFrequency: "max", allowed are frequencies up to maxFrequency min`,
		`"minFrequency": "base", "maxFrequency": "min"`:                `minFrequency: "base", allowed are frequencies up to maxFrequency min`,
		`"minFrequency": "max", "maxFrequency": "0.9x base"`:           `minFrequency: "max", allowed are frequencies up to maxFrequency 0.9x base`,
		`"governor": "performance", "energyPreference": "power"`:       `energyPreference: "power", allowed with the governor performance is performance`,
		`"minFrequency": "max", "maxFrequency": "max"`:                 "",
		`"minFrequency": "2GHz", "maxFrequency": "base"`:               "", // depends on the machine
		`"minFrequency": "3000000kHz", "maxFrequency": "3GHz"`:         "",
		`"governor": "performance", "energyPreference": "performance"`: "",
		`"governor": "powersave", "energyPreference": "performance"`:   "",
	} {
		_, err := PerformanceConfig{}.DecodeOver([]byte(performanceHead + ", " + fields + "}"))
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: error %v, want %q", fields, err, want)
		}
	}
}

func TestFrequencyOnAMachine(t *testing.T) {
	for text, want := range map[string]int{
		"min": 800_000, "base": 2_200_000, "max": 3_700_000, "1.5x base": 3_300_000, "2.4GHz": 2_400_000, "0.1MHz": 100, "": 0,
	} {
		frequency, err := ParseFrequency(text)
		if got := frequency.On(800_000, 2_200_000, 3_700_000); err != nil || got != want {
			t.Errorf("%q is %d kHz, %v, want %d", text, got, err, want)
		}
	}
}

func TestTheUncoreHasNoBaseFrequency(t *testing.T) {
	for text, want := range map[string]Frequency{"": {}, "min": {Of: "min", Factor: 1}, "max": {Of: "max", Factor: 1}, "2.4GHz": {KHz: 2_400_000}} {
		if got, err := ParseUncoreFrequency(text); err != nil || got != want {
			t.Errorf("%q is %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"base", "1.5x base", "2.4", "fast"} {
		if _, err := ParseUncoreFrequency(text); err == nil || err.Error() != fmt.Sprintf("%q, %s", text, wantUncoreFrequency) {
			t.Errorf("%q: error %v", text, err)
		}
	}
}

// A claim is decoded over the same class for each request.
func TestDecodingLeavesTheIdleLatencyOfTheClassAlone(t *testing.T) {
	class, err := PerformanceConfig{}.DecodeOver([]byte(performanceHead + `, "idleLatency": 20}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := class.DecodeOver([]byte(performanceHead + `, "idleLatency": 5}`)); err != nil || *class.IdleLatency != 20 {
		t.Errorf("idle latency of the class is %d, %v", *class.IdleLatency, err)
	}
}
