package pick

import "slices"

// share is what one of several zones gives.
type share struct {
	zone *zone
	room int // CPUs that the request can get from the zone
	cpus int // CPUs that the zone gives
}

// distribute chooses CPUs from several zones; see [Picker.Pick].
func (j *job) distribute(usable *words, choice *Choice) error {
	unit := 1
	j.caches = make([]bool, j.picker.l3s)
	shares := make([]share, len(j.request.Zones))
	for i, id := range j.request.Zones {
		z := j.picker.zone(id)
		shares[i] = share{zone: z, room: j.enter(z, usable)}
		if j.request.Cores == WholeCores {
			unit = max(unit, z.largest(j.request.CoreType))
		}
	}
	divide(shares, j.request.CPUs, unit)
	slices.SortFunc(shares, func(a, b share) int { return a.zone.id - b.zone.id })
	for _, s := range shares {
		if err := j.inZone(s.zone, s.cpus, usable, choice); err != nil {
			return err
		}
	}
	return nil
}

// divide gives each zone the same number of cores, or one more. CPUs that do not make
// up a core all go to one zone. Zones with more room get the additional cores first,
// then these CPUs. A core has unit CPUs.
func divide(shares []share, cpus, unit int) {
	slices.SortFunc(shares, func(a, b share) int {
		if a.room != b.room {
			return b.room - a.room
		}
		return a.zone.id - b.zone.id
	})
	cores, threads := cpus/unit, cpus%unit
	each, more := cores/len(shares), cores%len(shares)
	for i := range shares {
		shares[i].cpus = each * unit
		if i < more {
			shares[i].cpus += unit
		} else if i == more {
			shares[i].cpus += threads
		}
	}
}
