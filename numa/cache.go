package numa

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// l3s reads the level-3 cache domains of the cores. Kernels before 4.11 and some firmware give caches no id; then,
// and where an id repeats, all are numbered by their lowest CPU.
func (t tree) l3s(online cpuset.Set, cores []Core) ([]L3, error) {
	var l3s []L3
	var seen cpuset.Set // CPUs whose L3 is known
	numbered := true
	for i := range cores {
		cpu, _ := cores[i].CPUs.First()
		if seen.Contains(cpu) {
			continue
		}
		l3, hasID, err := t.l3(cpu)
		if err != nil {
			return nil, err
		}
		l3.CPUs = l3.CPUs.Intersection(online).Difference(seen)
		if !l3.CPUs.Contains(cpu) {
			continue // no L3, or nothing says who shares it
		}
		repeats := slices.ContainsFunc(l3s, func(other L3) bool { return other.ID == l3.ID })
		numbered = numbered && hasID && !repeats
		seen = seen.Union(l3.CPUs)
		l3s = append(l3s, l3)
	}
	if !numbered {
		for i := range l3s {
			l3s[i].ID, _ = l3s[i].CPUs.First()
		}
	}
	slices.SortFunc(l3s, func(a, b L3) int { return cmp.Compare(a.ID, b.ID) })
	return l3s, nil
}

// l3 reads the level-3 cache of a CPU as the kernel lists it; its CPUs are empty where there is none. The number of an
// index folder is not the level of its cache.
func (t tree) l3(cpu int) (l3 L3, hasID bool, err error) {
	folder := fmt.Sprintf("%s/cpu%d/cache", cpuFolder, cpu)
	names, err := t.entries(folder)
	if err != nil {
		return L3{}, false, err
	}
	for _, name := range names {
		index := folder + "/" + name
		if !strings.HasPrefix(name, "index") {
			continue
		}
		level, _, err := parseFile(t, index+"/level", parseNumber)
		if err != nil {
			return L3{}, false, err
		}
		if level != 3 {
			continue
		}
		if l3.CPUs, err = t.set(index+"/shared_cpu_list", index+"/shared_cpu_map"); err != nil {
			return L3{}, false, err
		}
		id, hasID, err := parseFile(t, index+"/id", parseNumber)
		l3.ID = int(id)
		return l3, hasID, err
	}
	return L3{}, false, nil
}

// linkL3s gives each core the id of the cache that its lowest CPU shares.
func linkL3s(cores []Core, l3s []L3) {
	for i := range cores {
		cpu, _ := cores[i].CPUs.First()
		for j := range l3s {
			if l3s[j].CPUs.Contains(cpu) {
				cores[i].L3 = new(l3s[j].ID)
				break
			}
		}
	}
}
