package numa

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// readCaches reads the level-2 and level-3 cache domains of the cores.
func (t tree) readCaches(m *Machine) error {
	for _, level := range []struct {
		number int
		caches *[]Cache
		link   func(*Core) **int
	}{
		{2, &m.L2s, func(c *Core) **int { return &c.L2 }},
		{3, &m.L3s, func(c *Core) **int { return &c.L3 }},
	} {
		caches, err := t.cacheLevel(level.number, m)
		if err != nil {
			return err
		}
		*level.caches = caches
		ids := map[int]int{} // cache ids by CPU
		for i := range caches {
			for cpu := range caches[i].CPUs.All() {
				ids[cpu] = caches[i].ID
			}
		}
		for i := range m.Cores {
			cpu, _ := m.Cores[i].CPUs.First()
			if id, ok := ids[cpu]; ok {
				*level.link(&m.Cores[i]) = &id
			}
		}
	}
	return nil
}

// cacheLevel reads the domains of one level. Kernels before 4.11 and some firmware give
// caches no id. In that case, and if an id repeats, the lowest CPU of each cache is its
// id.
func (t tree) cacheLevel(level int, m *Machine) ([]Cache, error) {
	var caches []Cache
	var seen cpuset.Set // CPUs whose cache is known
	numbered, hint := map[int]bool{}, ""
	for i := range m.Cores {
		cpu, _ := m.Cores[i].CPUs.First()
		if seen.Contains(cpu) {
			continue
		}
		folder, err := t.cacheFolder(cpu, level, &hint)
		if err != nil {
			return nil, err
		}
		if folder == "" {
			continue
		}
		cache, hasID, err := t.cache(folder)
		if err != nil {
			return nil, err
		}
		if !cache.CPUs.Contains(cpu) {
			continue // the kernel does not say which CPUs share it
		}
		// Thread siblings share the cache even if its list names only one of them: a
		// recorded AMD family 15h machine has such lists, although its masks name both
		// siblings.
		cache.CPUs = cache.CPUs.Union(m.Cores[i].CPUs).Intersection(m.Online).Difference(seen)
		if hasID {
			numbered[cache.ID] = true
		}
		seen = seen.Union(cache.CPUs)
		caches = append(caches, cache)
	}
	if len(numbered) != len(caches) {
		for i := range caches {
			caches[i].ID, _ = caches[i].CPUs.First()
		}
	}
	slices.SortFunc(caches, func(a, b Cache) int { return cmp.Compare(a.ID, b.ID) })
	return caches, nil
}

// cache reads the folder of one cache.
func (t tree) cache(folder string) (cache Cache, hasID bool, err error) {
	if cache.CPUs, err = t.set(folder+"/shared_cpu_list", folder+"/shared_cpu_map"); err != nil {
		return Cache{}, false, err
	}
	if cache.SizeBytes, err = t.cacheSize(folder + "/size"); err != nil {
		return Cache{}, false, err
	}
	id, hasID, err := parseFile(t, folder+"/id", parseNumber)
	cache.ID = int(id)
	return cache, hasID, err
}

// cacheSize reads a size such as "1280K"
// (Documentation/ABI/testing/sysfs-devices-system-cpu). Recorded machines have M, too. Nothing
// depends on the size, so any other text is as if there were none.
func (t tree) cacheSize(name string) (*uint64, error) {
	text, _, err := t.text(name)
	if err != nil {
		return nil, err
	}
	for unit, bytes := range map[string]uint64{"K": kib, "M": kib << 10} {
		if number, has := strings.CutSuffix(text, unit); has {
			if size, err := parseNumber(number); err == nil && size <= math.MaxInt64/bytes {
				return new(size * bytes), nil
			}
		}
	}
	return nil, nil
}

// cacheFolder returns the folder of a CPU's cache of the level; "" if it has none. The
// N of index<N> is not the level. Nearly all CPUs of a machine are alike, so the hint
// is the index<N> of the last such cache.
func (t tree) cacheFolder(cpu, level int, hint *string) (string, error) {
	folder := fmt.Sprintf("%s/cpu%d/cache/", cpuFolder, cpu)
	if *hint != "" {
		found, _, err := parseFile(t, folder+*hint+"/level", parseNumber)
		if err != nil || found == uint64(level) {
			return folder + *hint, err
		}
	}
	indexes, err := t.numbered(strings.TrimSuffix(folder, "/"), "index")
	if err != nil {
		return "", err
	}
	for index := range indexes.All() {
		name := fmt.Sprintf("index%d", index)
		found, _, err := parseFile(t, folder+name+"/level", parseNumber)
		if err != nil {
			return "", err
		}
		if found != uint64(level) {
			continue
		}
		kind, _, err := t.text(folder + name + "/type")
		if err != nil {
			return "", err
		}
		if kind != "Instruction" {
			*hint = name
			return folder + name, nil
		}
	}
	return "", nil
}
