package pick

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Explanation says what a choice consists of, and why. All counts refer to what was
// free before the choice.
type Explanation struct {
	CPUs  int
	Zones int // number of zones of the CPUs
	// Short are the zones that give fewer CPUs than other ones, because they have no more.
	Short      cpuset.Set
	WholeCores int // cores of which no other claim can have a part
	// SharedCPUs are on cores of which others already have a part, or of which the
	// request avoids a part.
	SharedCPUs int
	// BrokenCPUs are on cores that were completely free, and of which other claims can
	// now have a part. BrokenCores is the number of these cores.
	BrokenCPUs  int
	BrokenCores int // see BrokenCPUs
	IdleCPUs    int // siblings that stay idle
	OutsideCPUs int // on cores without an L3
	L3s         int
	L3          int // Cache.ID, if L3s is 1
	// L3Free is the number of free CPUs of the zone in that L3, or of free cores with
	// OneThreadPerCore. It is valid if L3s and Zones are 1.
	L3Free    int
	FreeCores int // whole cores that were free
	Reason    Reason
}

// Reason says why the CPUs of a choice are in their L3s.
type Reason uint8

// The reasons.
const (
	NoReason      Reason = iota // several zones, CPUs without an L3, isolated CPUs that came first, or dies that share an L3
	Tightest                    // no L3 with fewer free CPUs has enough at the same cost in cores
	NoneHasFree                 // no L3 has as many free CPUs, or as many free cores with OneThreadPerCore
	NoneHasCores                // no L3 has as many free whole cores
	FewerShared                 // in any single L3, the claim would share more cores
	NoneUnbroken                // in any single L3, the claim would break a core
	BrokenFirst                 // single threads fill broken cores first
	EvenlyDivided               // the claim is spread
)

// explain adds what was chosen from the zone to the explanation. It counts the CPUs of
// the choice, not those of the plan.
func (j *job) explain(n int, usable *words, choice *Choice) {
	z, why := j.zone, &choice.Why
	cpus, idle := choice.CPUs.Words(), choice.Idle.Words()
	why.Zones++
	why.FreeCores += j.coresFree
	for i := range z.domains {
		d, here := &z.domains[i], 0
		if j.load[i] == 0 {
			continue
		}
		for at := d.first; at < d.last; at++ {
			c := &z.cores[at]
			mine := z.count(c, cpus)
			if mine == 0 {
				continue
			}
			kept := z.count(c, idle)
			here, why.IdleCPUs = here+mine, why.IdleCPUs+kept
			switch {
			case mine+kept == c.size:
				why.WholeCores++
			case mine+z.count(c, usable) == c.size:
				why.BrokenCPUs, why.BrokenCores = why.BrokenCPUs+mine, why.BrokenCores+1
			default:
				why.SharedCPUs += mine
			}
		}
		why.CPUs += here
		if !d.hasL3 {
			why.OutsideCPUs += here
		} else if j.countL3(d) {
			why.L3s++
			why.L3, why.L3Free = d.l3, int(j.freeBefore[d.lead])
		}
	}
	if why.Reason = NoReason; why.Zones == 1 {
		why.Reason = j.reason(n, why)
	}
}

// countL3 reports whether the domain's L3 has not been counted for another zone or domain
// yet, and counts it.
func (j *job) countL3(d *domain) bool {
	if j.caches == nil {
		return true
	}
	counted := j.caches[d.cache]
	j.caches[d.cache] = true
	return !counted
}

// reason returns why the choice is in its L3s. All of the choice must be in this zone.
func (j *job) reason(n int, why *Explanation) Reason {
	r := &j.request
	switch {
	case r.Isolated == PreferIsolated || why.OutsideCPUs > 0:
		return NoReason
	case j.spread && r.L3 != RequireOneL3:
		return EvenlyDivided
	case j.split:
		return NoReason
	case why.L3s == 1:
		return Tightest
	case int(slices.Max(j.freeBefore)) < n:
		return NoneHasFree
	case r.L3 == PreferOneL3:
		return NoneUnbroken
	case j.threads && why.SharedCPUs > 0:
		return BrokenFirst
	case j.coresMost < why.WholeCores:
		return NoneHasCores
	default:
		return FewerShared
	}
}

// String returns the explanation in one line, such as "4 whole cores in L3 2, the
// tightest with 8 free".
func (e Explanation) String() string {
	var what []string
	if e.WholeCores > 0 {
		what = append(what, counted(e.WholeCores, "whole core"))
		if e.IdleCPUs > 0 {
			what[0] = counted(e.WholeCores, "core") + " with " + counted(e.IdleCPUs, "cpu") + " kept idle"
		}
	}
	if e.SharedCPUs > 0 {
		shared := counted(e.SharedCPUs, "cpu") + " on broken cores"
		switch e.FreeCores {
		case 0:
			shared += " because no whole core is free"
		case e.WholeCores:
			shared += " because no other whole core is free"
		}
		what = append(what, shared)
	}
	if e.BrokenCPUs > 0 {
		what = append(what, counted(e.BrokenCPUs, "cpu")+" of "+counted(e.BrokenCores, "core")+" that it breaks")
	}
	if len(what) == 0 {
		return "no cpus"
	}
	line := strings.Join(what, " and ") + e.where()
	if e.Zones > 1 {
		line += " of " + counted(e.Zones, "zone")
	}
	if short := slices.Collect(e.Short.All()); len(short) == 1 {
		line += "; " + zoneList(short) + " has no more"
	} else if len(short) > 1 {
		line += "; " + zoneList(short) + " have no more"
	}
	return line
}

// where returns the L3s and the reason for them.
func (e Explanation) where() string {
	var in string
	switch {
	case e.L3s == 0:
		return ""
	case e.OutsideCPUs > 0:
		return " in " + counted(e.L3s, "L3") + " and on cores without one"
	case e.L3s == 1 && e.Zones == 1:
		in = fmt.Sprintf(" in L3 %d", e.L3)
	default:
		in = " in " + counted(e.L3s, "L3")
	}
	free := "free"
	if e.IdleCPUs > 0 {
		free = "cores free"
	}
	switch e.Reason {
	case Tightest:
		return in + fmt.Sprintf(", the tightest with %d %s", e.L3Free, free)
	case NoneHasFree:
		return in + fmt.Sprintf(" because none has %d %s", e.CPUs, free)
	case NoneHasCores:
		return in + fmt.Sprintf(" because none has %s free", counted(e.WholeCores, "whole core"))
	case FewerShared:
		return in + " to share fewer cores"
	case NoneUnbroken:
		return in + " to break no core"
	case BrokenFirst:
		return in + " to fill broken cores first"
	case EvenlyDivided:
		return in + ", spread evenly"
	default:
		return in
	}
}

// notEnough returns an error that says what the zones have and what the request requires.
func (j *job) notEnough(n, room int, zones ...int) error {
	r := &j.request
	what := fmt.Sprintf("%d free", room)
	if r.Cores == OneThreadPerCore {
		what = counted(room, "whole core") + " free"
	}
	if r.L3 == RequireOneL3 {
		what += " in one L3"
	}
	if r.CoreType != "" {
		what += fmt.Sprintf(" on %s cores", r.CoreType)
	}
	if r.Isolated == AvoidIsolated {
		what += " that are not isolated"
	}
	have := "have"
	if len(zones) == 1 {
		have = "has"
	}
	return fmt.Errorf("select %d cpus of %s, which %s %s: %w", n, zoneList(zones), have, what, ErrNotEnough)
}

// counted returns "1 core" or "2 cores".
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
