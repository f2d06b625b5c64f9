package numa

import (
	"fmt"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// efficientBelow is a fraction of the machine's highest capacity or frequency. A core
// below it is an efficient core. Cores of one kind differ by up to 10 %, because some
// are favoured cores. The slower kind of a hybrid is slower by 20 % or more.
const efficientBelow = 0.85

// readCoreTypes sets the type of each core from the first source that the machine has:
//
//  1. the performance monitoring units: an x86 hybrid has one for each kind of core;
//  2. the capacity of the CPUs, which the scheduler uses;
//  3. the frequency of the CPUs, on a machine with one socket.
//
// The cores of a server can differ as much in frequency (Intel Speed Select) and still
// be of one kind.
func (t tree) readCoreTypes(m *Machine) error {
	for i := range m.Cores {
		m.Cores[i].Type = StandardCores
	}
	units, err := t.setCoreTypesByUnits(m.Cores)
	if err != nil {
		return err
	}
	for _, file := range []string{"cpu_capacity", "cpufreq/cpuinfo_max_freq", "cpufreq/base_frequency"} {
		if units || file != "cpu_capacity" && !oneSocket(m.Cores) {
			break
		}
		ratings, err := t.ratings(m.Cores, file)
		if err != nil {
			return err
		}
		if len(ratings) > 0 {
			setCoreTypesByRatings(m.Cores, ratings)
			break
		}
	}
	for i := range m.Zones {
		m.Zones[i].CoreType = zoneCoreType(m.Zones[i].ID, m.Cores)
	}
	return nil
}

// oneSocket reports whether all cores have the same socket id, or none has one.
func oneSocket(cores []Core) bool {
	return !slices.ContainsFunc(cores, func(c Core) bool { return compareIDs(c.Socket, cores[0].Socket) != 0 })
}

// setCoreTypesByUnits sets the type of the cores that a performance monitoring unit
// lists. It reports whether the machine has such units.
func (t tree) setCoreTypesByUnits(cores []Core) (found bool, err error) {
	for _, unit := range []struct {
		file string
		kind CoreType
	}{
		{"sys/devices/cpu_core/cpus", PerformanceCores},
		{"sys/devices/cpu_atom/cpus", EfficientCores},
		{"sys/devices/cpu_lowpower/cpus", EfficientCores},
	} {
		cpus, has, err := parseFile(t, unit.file, cpuset.Parse)
		if err != nil {
			return false, err
		}
		for i := range cores {
			if cores[i].CPUs.Overlaps(cpus) {
				cores[i].Type = unit.kind
			}
		}
		found = found || has
	}
	return found, nil
}

// ratings reads a number from a file of each core's lowest CPU. It is nil if a core has
// no such file.
func (t tree) ratings(cores []Core, file string) ([]uint64, error) {
	ratings := make([]uint64, len(cores))
	for i := range cores {
		cpu, _ := cores[i].CPUs.First()
		rating, found, err := parseFile(t, fmt.Sprintf("%s/cpu%d/%s", cpuFolder, cpu, file), parseNumber)
		if ratings[i] = rating; err != nil || !found {
			return nil, err
		}
	}
	return ratings, nil
}

// setCoreTypesByRatings sets the type of each core by its rating. It changes nothing if
// the cores are alike.
func setCoreTypesByRatings(cores []Core, ratings []uint64) {
	limit := efficientBelow * float64(slices.Max(ratings))
	if float64(slices.Min(ratings)) >= limit {
		return
	}
	for i := range cores {
		cores[i].Type = PerformanceCores
		if float64(ratings[i]) < limit {
			cores[i].Type = EfficientCores
		}
	}
}

// zoneCoreType returns the one type that describes all cores of the zone.
func zoneCoreType(zone int, cores []Core) CoreType {
	var kind CoreType
	for i := range cores {
		switch {
		case cores[i].Zone != zone || cores[i].Type == kind:
		case kind == "":
			kind = cores[i].Type
		default:
			return MixedCores
		}
	}
	return kind
}
