package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// Performance is the part of a deviceclasses.PerformanceConfig that the user sets.
type Performance struct {
	deviceclasses.PerformanceSettings

	// Locked are fields of PerformanceConfig that claims must not change; for a class only.
	Locked []string
}

// IsEmpty reports whether nothing is set.
func (p Performance) IsEmpty() bool { return p.IsZero() && len(p.Locked) == 0 }

// check refuses what PerformanceConfig would refuse.
func (p Performance) check() error { return p.performanceConfig().Validate() }

// performanceConfig is the configuration in the driver's type.
func (p Performance) performanceConfig() deviceclasses.PerformanceConfig {
	return deviceclasses.PerformanceConfig{
		TypeMeta:            metav1.TypeMeta{APIVersion: deviceclasses.APIVersion, Kind: deviceclasses.PerformanceConfigKind},
		PerformanceSettings: p.PerformanceSettings, Locked: p.Locked,
	}
}

// opaque is the configuration in the form of claims and classes.
func (p Performance) opaque() resourceapi.DeviceConfiguration {
	raw, err := json.Marshal(p.performanceConfig())
	if err != nil {
		panic(err) // impossible: it has only strings, a number, and a list of strings
	}
	return opaque(raw)
}

// configurations are those of zones, without those that say nothing.
func configurations(config Config, performance Performance) (list []resourceapi.DeviceConfiguration) {
	if !config.IsEmpty() {
		list = append(list, config.opaque())
	}
	if !performance.IsEmpty() {
		list = append(list, performance.opaque())
	}
	return list
}

// checkPerformance refuses settings for no CPUs, and what PerformanceConfig would refuse.
func (w Wish) checkPerformance() error {
	if w.CPUs == 0 && !w.Performance.IsEmpty() {
		return errors.New("frequencies, idle states and interrupts are those of CPUs: want cpus as well")
	}
	return w.Performance.check()
}

// Lock divides names of fields among the configuration of zones and the performance. It
// returns an error for a name of neither.
func Lock(config *Config, performance *Performance, fields []string) error {
	ofZones, ofPerformance := deviceclasses.ZoneFields(), deviceclasses.PerformanceFields()
	for _, field := range fields {
		switch {
		case slices.Contains(ofZones, field):
			config.Locked = append(config.Locked, field)
		case slices.Contains(ofPerformance, field):
			performance.Locked = append(performance.Locked, field)
		default:
			return fmt.Errorf("locked %q, allowed are %s", field, strings.Join(slices.Concat(ofZones, ofPerformance), ", "))
		}
	}
	return nil
}
