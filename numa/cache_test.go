package numa

import (
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

func TestCachesOfCPUsThatAreUnlike(t *testing.T) {
	const cpu = "sys/devices/system/cpu/"
	f := with(files{
		cpu + "cpu4/cache/":              "", // a core without caches, whose neighbour lists it in the L3 alone
		cpu + "cpu5/cache/":              "",
		cpu + "cpu8/cache/index1/":       "", // a core with another numbering
		cpu + "cpu8/cache/index2/level":  "3",
		cpu + "cpu8/cache/index2/id":     "2",
		cpu + "cpu8/cache/index3/level":  "2",
		cpu + "cpu8/cache/index3/id":     "4",
		cpu + "cpu10/cache/index3/":      "", // a core outside the L3
		cpu + "cpu12/cache/index3/level": "4",
	})
	f[cpu+"cpu8/cache/index2/shared_cpu_list"] = "8-9"
	f[cpu+"cpu8/cache/index3/shared_cpu_list"] = "8" // its sibling shares it all the same
	f[cpu+"cpu14/cache/index3/shared_cpu_list"] = "14-15"
	m := mustRead(t, f)
	var l2s, l3s []any
	for _, core := range m.Cores {
		l2s, l3s = append(l2s, core.L2), append(l3s, core.L3)
	}
	sameJSON(t, "the L2s of the cores", l2s, []any{0, 1, nil, 3, 4, 5, 6, 7})
	sameJSON(t, "the L3s of the cores", l3s, []any{0, 0, 1, 1, 2, nil, nil, 3})
	if got := m.L2s[3]; got.ID != 4 || got.CPUs.String() != "8-9" {
		t.Errorf("the fourth L2 is %d of CPUs %s", got.ID, got.CPUs)
	}
}

func TestCachesShareNoCPU(t *testing.T) {
	m := mustRead(t, with(files{"sys/devices/system/cpu/cpu8/cache/index3/shared_cpu_list": "6-11"}))
	var cpus []string
	for _, cache := range m.L3s {
		cpus = append(cpus, cache.CPUs.String())
	}
	sameJSON(t, "L3s", cpus, []string{"0-3", "4-7", "8-11", "12-15"})
}

func TestCachesWithoutIDsAreNumberedByTheirLowestCPU(t *testing.T) {
	for name, change := range map[string]func(files, string){
		"none":   func(f files, name string) { delete(f, name) },
		"repeat": func(f files, name string) { f[name] = "0" },
	} {
		f := rigFiles()
		for file := range rigFiles() {
			if strings.HasSuffix(file, "cache/index2/id") {
				change(f, file)
			}
		}
		m := mustRead(t, f)
		var ids []int
		for _, cache := range m.L2s {
			ids = append(ids, cache.ID)
		}
		sameJSON(t, name+": L2 ids", ids, []int{0, 2, 4, 6, 8, 10, 12, 14})
		sameJSON(t, name+": core 7's", m.Cores[7].L2, 14)
		sameJSON(t, name+": core 7's L3", m.Cores[7].L3, 3)
	}
}

func TestMasksServeWhereThereAreNoLists(t *testing.T) {
	f := instead("shared_cpu_list", func(f files, folder, list string) {
		cpus, err := cpuset.Parse(list)
		if err != nil {
			t.Fatal(err)
		}
		mask := strings.Repeat("0", 8) + "," // one group more than the CPUs need
		for cpu := 15; cpu >= 0; cpu -= 4 {
			digit := 0
			for i := range 4 {
				if cpus.Contains(cpu - i) {
					digit |= 8 >> i
				}
			}
			mask += string("0123456789abcdef"[digit])
		}
		f[folder+"shared_cpu_map"] = mask
	})
	sameJSON(t, "a machine of masks", mustRead(t, f), mustRead(t, rigFiles()))
}
