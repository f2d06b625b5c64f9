package numa

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// cores groups the CPUs of each zone by their thread siblings. Core ids cannot group them: they repeat across
// sockets, dies and even nodes of one socket. A CPU whose siblings are absent is a core of its own.
func (t tree) cores(zones []Zone) ([]Core, error) {
	var cores []Core
	for i := range zones {
		left := zones[i].CPUs // CPUs of the zone that are in no core yet
		for cpu := range zones[i].CPUs.All() {
			if !left.Contains(cpu) {
				continue
			}
			core, err := t.core(cpu)
			if err != nil {
				return nil, err
			}
			core.Zone = zones[i].ID
			core.CPUs = core.CPUs.Union(cpuset.New(cpu)).Intersection(left)
			left = left.Difference(core.CPUs)
			cores = append(cores, core)
		}
	}
	slices.SortStableFunc(cores, func(a, b Core) int { // stable: equals stay in order of their lowest CPU
		return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Socket, b.Socket),
			cmp.Compare(a.Die, b.Die), cmp.Compare(a.ID, b.ID))
	})
	return cores, nil
}

// core reads the place of a CPU's core and all siblings that the kernel lists.
func (t tree) core(cpu int) (core Core, err error) {
	folder := fmt.Sprintf("%s/cpu%d/topology", cpuFolder, cpu)
	core.CPUs, err = t.set(folder+"/core_cpus_list", folder+"/core_cpus", // since Linux 5.3; thread_* is the old name
		folder+"/thread_siblings_list", folder+"/thread_siblings")
	if err != nil {
		return Core{}, err
	}
	for _, field := range []struct {
		id   *int
		file string
	}{
		{&core.Socket, "physical_package_id"},
		{&core.Die, "die_id"},
		{&core.ID, "core_id"},
	} {
		id, found, err := parseFile(t, folder+"/"+field.file, parseTopologyID)
		if err != nil {
			return Core{}, err
		}
		if !found {
			id = unknownID
		}
		*field.id = id
	}
	return core, nil
}

// unknownID is what the kernel writes for a socket, die or core id that the firmware does not tell.
const unknownID = -1

// parseTopologyID reads an id that the kernel prints from a C int. Arm and ia64 ids are large firmware numbers.
func parseTopologyID(text string) (int, error) {
	id, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%.80q is not a decimal id of 32 bits", text)
	}
	return max(int(id), unknownID), nil
}

// coreKinds is which CPUs of an x86 hybrid are of which kind; both sets are empty on all other machines.
type coreKinds struct {
	performance, efficient cpuset.Set
}

// coreKinds reads the performance monitoring units: a hybrid has one for each kind of core.
func (t tree) coreKinds() (coreKinds, error) {
	var kinds coreKinds
	for _, unit := range []struct {
		cpus *cpuset.Set
		file string
	}{
		{&kinds.performance, "sys/devices/cpu_core/cpus"},
		{&kinds.efficient, "sys/devices/cpu_atom/cpus"},
		{&kinds.efficient, "sys/devices/cpu_lowpower/cpus"},
	} {
		cpus, _, err := parseFile(t, unit.file, cpuset.Parse)
		if err != nil {
			return coreKinds{}, err
		}
		*unit.cpus = unit.cpus.Union(cpus)
	}
	return kinds, nil
}

// of returns the one type that describes all the CPUs.
func (k coreKinds) of(cpus cpuset.Set) CoreType {
	performance, efficient := cpus.Overlaps(k.performance), cpus.Overlaps(k.efficient)
	switch {
	case cpus.IsEmpty():
		return ""
	case performance && efficient:
		return MixedCores
	case performance:
		return PerformanceCores
	case efficient:
		return EfficientCores
	default:
		return StandardCores
	}
}
