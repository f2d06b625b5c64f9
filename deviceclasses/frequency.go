package deviceclasses

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Frequency is a frequency as a configuration has it: a number with its unit, or a multiple
// of one that the machine has. The zero value says nothing.
type Frequency struct {
	Of     string  // FrequencyMin, FrequencyBase or FrequencyMax; "" for a number of kHz
	Factor float64 // of the base frequency; 1 for the others
	KHz    int     // if Of is ""
}

// Frequencies of a machine.
const (
	FrequencyMin  = "min"  // the lowest one
	FrequencyBase = "base" // the highest one without turbo
	FrequencyMax  = "max"  // the highest one
)

// maxKHz limits the frequency that a configuration can name. No CPU is as fast.
const maxKHz = 100_000_000

// wantFrequency completes the error for a text that is no frequency.
const wantFrequency = "want a frequency such as 2.4GHz or 800MHz, or min, base, max, or a multiple such as 1.5x base"

// ParseFrequency reads a frequency. An empty text is the zero value.
func ParseFrequency(text string) (Frequency, error) {
	switch text {
	case "":
		return Frequency{}, nil
	case FrequencyMin, FrequencyBase, FrequencyMax:
		return Frequency{Of: text, Factor: 1}, nil
	}
	if factor, ok := strings.CutSuffix(text, "x "+FrequencyBase); ok {
		if number, ok := parseDecimal(factor); ok && number <= 100 {
			return Frequency{Of: FrequencyBase, Factor: number}, nil
		}
	}
	for unit, kHz := range map[string]float64{"GHz": 1e6, "MHz": 1e3, "kHz": 1} {
		if amount, ok := strings.CutSuffix(text, unit); ok {
			if number, ok := parseDecimal(amount); ok && number*kHz >= 1 && number*kHz <= maxKHz {
				return Frequency{KHz: int(math.Round(number * kHz))}, nil
			}
		}
	}
	return Frequency{}, fmt.Errorf("%q, %s", text, wantFrequency)
}

// wantUncoreFrequency completes the error for a text that is no frequency of the uncore.
const wantUncoreFrequency = "want a frequency such as 2.4GHz or 800MHz, or min, max"

// ParseUncoreFrequency reads a frequency of the uncore, which has no base frequency. An empty
// text is the zero value.
func ParseUncoreFrequency(text string) (Frequency, error) {
	frequency, err := ParseFrequency(text)
	if err != nil || frequency.Of == FrequencyBase {
		return Frequency{}, fmt.Errorf("%q, %s", text, wantUncoreFrequency)
	}
	return frequency, nil
}

// parseDecimal reads a number above 0 of digits and at most one point.
func parseDecimal(text string) (number float64, ok bool) {
	if len(text) > 16 || strings.Trim(text, "0123456789.") != "" || strings.HasPrefix(text, ".") || strings.HasSuffix(text, ".") {
		return 0, false
	}
	number, err := strconv.ParseFloat(text, 64)
	return number, err == nil && number > 0
}

// On returns the frequency in kHz on a CPU that has these; 0 if it is a multiple of a base
// frequency that is not known.
func (f Frequency) On(lowest, base, highest int) int {
	switch f.Of {
	case FrequencyMin:
		return lowest
	case FrequencyBase:
		return int(math.Round(f.Factor * float64(base)))
	case FrequencyMax:
		return highest
	}
	return f.KHz
}

// exceeds reports whether one frequency is above the other on every machine.
func (f Frequency) exceeds(other Frequency) bool {
	switch {
	case f.Of == "" && other.Of == "":
		return f.KHz > other.KHz
	case f.Of == FrequencyBase && other.Of == FrequencyBase:
		return f.Factor > other.Factor
	}
	return other.Of == FrequencyMin && f.Of != FrequencyMin && f.Of != "" || f.Of == FrequencyMax && other.Of == FrequencyBase && other.Factor < 1
}

// FrequencyText returns a frequency in kHz in the form that ParseFrequency reads, such as
// 2.4GHz or 800MHz.
func FrequencyText(kHz int) string {
	switch {
	case kHz >= 1_000_000:
		return strconv.FormatFloat(float64(kHz)/1e6, 'f', -1, 64) + "GHz"
	case kHz >= 1000:
		return strconv.FormatFloat(float64(kHz)/1e3, 'f', -1, 64) + "MHz"
	}
	return strconv.Itoa(kHz) + "kHz"
}
