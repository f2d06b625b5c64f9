package numa

import (
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// checkInvariants checks what the comments of Machine promise.
func checkInvariants(t *testing.T, m Machine) {
	t.Helper()
	var inCores, inZones cpuset.Set
	for _, core := range m.Cores {
		zone, ok := m.Zone(core.Zone)
		if !ok || core.CPUs.IsEmpty() || core.CPUs.Overlaps(inCores) || !core.CPUs.IsSubsetOf(zone.CPUs) {
			t.Errorf("core %+v is empty, not alone or not in its zone", core)
		}
		if core.Type == "" || core.Type == MixedCores {
			t.Errorf("core %+v has the type %q", core, core.Type)
		}
		for _, domain := range []struct {
			id     *int
			caches []Cache
		}{{core.L2, m.L2s}, {core.L3, m.L3s}} {
			if domain.id != nil && !hasCache(domain.caches, *domain.id, core.CPUs) {
				t.Errorf("core %+v is not inside its caches", core)
			}
		}
		inCores = inCores.Union(core.CPUs)
	}
	for _, zone := range m.Zones {
		if zone.CPUs.Overlaps(inZones) || !zone.CPUs.IsSubsetOf(inCores) || !zone.CPUs.IsSubsetOf(m.Online) {
			t.Errorf("zone %d has cpus %s of another zone, in no core or offline", zone.ID, zone.CPUs)
		}
		inZones = inZones.Union(zone.CPUs)
		checkZone(t, m, zone)
	}
	if !m.Online.IsSubsetOf(m.Present) || !inCores.IsSubsetOf(inZones) {
		t.Errorf("online %s, present %s, in cores %s, in zones %s", m.Online, m.Present, inCores, inZones)
	}
	for i, function := range m.PCI {
		if function.Zone != nil {
			if _, ok := m.Zone(*function.Zone); !ok {
				t.Errorf("%s is in zone %d", function.Address, *function.Zone)
			}
		}
		if i > 0 && m.PCI[i-1].Address == function.Address || !IsPCIAddress(function.Address) {
			t.Errorf("%s is no address or twice there", function.Address)
		}
	}
}

func checkZone(t *testing.T, m Machine, zone Zone) {
	t.Helper()
	if len(zone.Distances) != 0 && len(zone.Distances) != len(m.Zones) {
		t.Errorf("zone %d has %d distances to %d zones", zone.ID, len(zone.Distances), len(m.Zones))
	}
	if zone.CPUs.IsEmpty() != (zone.CoreType == "") || zone.CPUs.IsEmpty() == (zone.Kind == CPUZone) {
		t.Errorf("zone %d of kind %s has cpus %s of %s cores", zone.ID, zone.Kind, zone.CPUs, zone.CoreType)
	}
	if zone.Nearest != nil {
		if near, ok := m.Zone(*zone.Nearest); !ok || near.CPUs.IsEmpty() {
			t.Errorf("the nearest to zone %d is %d, which has no cpus", zone.ID, *zone.Nearest)
		}
	}
}

// hasCache says whether the cache of the id is there once and shared by all of the CPUs.
func hasCache(caches []Cache, id int, cpus cpuset.Set) bool {
	found := 0
	for _, cache := range caches {
		if cache.ID == id {
			found++
			if !cpus.IsSubsetOf(cache.CPUs) {
				return false
			}
		}
	}
	return found == 1
}
