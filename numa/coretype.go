package numa

import (
	"fmt"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// efficientBelow is the part of the greatest capacity or frequency of the machine below which a core is an efficient
// one. Favoured cores of one kind differ by up to 10 %, the slower kind of a hybrid by 20 % and more.
const efficientBelow = 0.85

// readCoreTypes tells the kinds of cores apart by the first source that the machine has: its performance monitoring
// units, of which an x86 hybrid has one for each kind, then what the scheduler takes as the CPUs' capacity, then on a
// machine of one socket their frequency. A server's cores may differ in it as much (Intel Speed Select) and be alike.
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

// oneSocket says whether all cores are in one socket, known or not.
func oneSocket(cores []Core) bool {
	return !slices.ContainsFunc(cores, func(c Core) bool { return compareIDs(c.Socket, cores[0].Socket) != 0 })
}

// setCoreTypesByUnits says whether the machine has such units.
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

// ratings reads a number of each core's lowest CPU; nil where one has none.
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

// setCoreTypesByRatings leaves cores that are alike as they are.
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
