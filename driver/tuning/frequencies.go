package tuning

import (
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// FrequencyFigures are frequencies of the CPUs that a claim has of a device, in kHz. 0
// stands for what the claim does not ask, and for what the kernel does not say now.
type FrequencyFigures struct {
	Device             string
	Slowest, Fastest   int // of the CPUs now
	AskedMin, AskedMax int // smallest lowest and largest highest frequency that the claim asks for
}

// Figures returns the figures of a grant, by device; none on a node that changes no
// frequencies, whose c is nil. It reads one file of the kernel for each frequency policy that
// the claim changes, and none for other claims. What cannot be read is left out.
func (c *Config) Figures(grant *ledger.Grant) (figures []FrequencyFigures) {
	if c == nil {
		return nil
	}
	files := c.Frequencies.Files()
	byDevice := make(map[string]int)
	for _, share := range grant.Shares {
		zone := share.Zone()
		if zone == nil || zone.Performance == nil || len(zone.Performance.Frequencies) == 0 {
			continue
		}
		i, known := byDevice[share.Device]
		if !known {
			i, figures = len(figures), append(figures, FrequencyFigures{Device: share.Device})
			byDevice[share.Device] = i
		}
		figure := &figures[i]
		for _, change := range zone.Performance.Frequencies {
			figure.AskedMin = lesser(figure.AskedMin, change.Want.MinKHz)
			figure.AskedMax = max(figure.AskedMax, change.Want.MaxKHz)
			for policy := range change.Policies.All() {
				current, err := numa.ReadCurrentFrequency(files, policy)
				if err != nil {
					continue // its CPUs are offline, or gone
				}
				figure.Slowest = lesser(figure.Slowest, current)
				figure.Fastest = max(figure.Fastest, current)
			}
		}
	}
	return figures
}

// lesser returns the smaller one of two numbers, and ignores one that is 0.
func lesser(a, b int) int {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}
