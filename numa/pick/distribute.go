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
	if left := divide(shares, j.request.CPUs, unit); left > 0 {
		return j.notEnough(j.request.CPUs, j.request.CPUs-left, j.request.Zones...)
	}
	most := slices.MaxFunc(shares, func(a, b share) int { return a.cpus - b.cpus }).cpus
	slices.SortFunc(shares, func(a, b share) int { return a.zone.id - b.zone.id })
	for _, s := range shares {
		if s.cpus+unit < most {
			choice.Why.Short.Insert(s.zone.id)
		}
		if err := j.inZone(s.zone, s.cpus, usable, choice); err != nil {
			return err
		}
	}
	return nil
}

// divide gives each zone the same number of cores, or one more, as far as it has room for
// them. Zones without that much room give all the cores they have room for. CPUs that do not
// make up a core go to one zone, if one has room for them. Of zones that give equally much, those
// with more room come first. A core has unit CPUs. It returns how many CPUs no zone has room for.
func divide(shares []share, cpus, unit int) (left int) {
	slices.SortFunc(shares, func(a, b share) int {
		if a.room != b.room {
			return b.room - a.room
		}
		return a.zone.id - b.zone.id
	})
	cores := cpus / unit
	for i := len(shares) - 1; i >= 0; i-- { // from the least room to the most
		gives := min(shares[i].room/unit, cores/(i+1))
		shares[i].cpus = gives * unit
		cores -= gives
	}
	for left = cpus%unit + cores*unit; left > 0; {
		s := fewest(shares, min(left, unit))
		if s == nil {
			s = fewest(shares, 1)
		}
		if s == nil {
			break
		}
		more := min(left, s.room-s.cpus)
		s.cpus += more
		left -= more
	}
	return left
}

// fewest returns the share with the fewest CPUs of those that have room for some more; nil if
// there is none.
func fewest(shares []share, more int) (least *share) {
	for i := range shares {
		if s := &shares[i]; s.room-s.cpus >= more && (least == nil || s.cpus < least.cpus) {
			least = s
		}
	}
	return least
}
