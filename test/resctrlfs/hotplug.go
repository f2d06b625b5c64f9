package resctrlfs

import "slices"

// SetOnline switches a CPU on or off. A CPU that goes leaves its group; it returns in the
// root group. With the last CPU of a cache, the masks of the cache go too. When a CPU of
// it returns, every group has all ways of it, exclusive groups as well.
func (f *FS) SetOnline(cpu int, online bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if online == f.online.Contains(cpu) {
		return
	}
	if online {
		f.online.Insert(cpu)
		f.root.cpus.Insert(cpu)
	} else {
		f.online.Remove(cpu)
		for _, g := range f.controlGroups() {
			g.cpus.Remove(cpu)
			for _, child := range g.children {
				child.cpus.Remove(cpu)
			}
		}
	}
	for _, cache := range f.machine.Caches {
		if !cache.CPUs.Contains(cpu) {
			continue
		}
		hadCPUs := slices.Contains(f.domains(), cache.ID)
		switch hasCPUs := cache.CPUs.Overlaps(f.online); {
		case hasCPUs && !hadCPUs:
			f.addDomain(cache.ID)
		case hadCPUs && !hasCPUs:
			f.removeDomain(cache.ID)
		}
	}
}

// domains returns the ids of the caches that have an online CPU, in ascending order.
func (f *FS) domains() (ids []int) {
	for _, cache := range f.machine.Caches {
		if f.present[cache.ID] {
			ids = append(ids, cache.ID)
		}
	}
	return ids
}

// addDomain adds a cache, without any limit for any class.
func (f *FS) addDomain(id int) {
	f.present[id] = true
	for _, s := range f.schemas {
		s.values[id] = slices.Repeat([]uint64{s.initial}, s.classes)
	}
}

func (f *FS) removeDomain(id int) {
	delete(f.present, id)
	for _, s := range f.schemas {
		delete(s.values, id)
	}
	for key := range f.counters {
		if key.cache == id {
			delete(f.counters, key)
		}
	}
}
