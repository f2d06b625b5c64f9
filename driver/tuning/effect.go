// Package tuning makes the CPUs of claims fast and quiet: frequencies, idle states, the uncore
// of their dies and interrupts. The other CPUs have the default of the NodeConfig. What the
// host had first is on record before it is changed, and is restored.
package tuning

import (
	"iter"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// effects are what claims change on the host, in the order of their writes.
func (t *State) effects() []effect { return []effect{frequencies{t}, affinities{t}, dies{t}} }

// effect decides what the claims of a node want of one kind of setting. A package next to this
// one reads and writes it. The methods may be repeated after an error or a crash.
type effect interface {
	// plan notes in planned what these CPUs should have, as it asks.
	plan(cpus cpuset.Set, planned *ledger.Performance) error
	// apply makes the host as the grants on record want it, and returns one of them with what the
	// kernel made of that.
	apply(grant ledger.Grant, recorded []ledger.Grant) (ledger.Grant, error)
	// restore gives back what the host had before a share of a grant on record, unless one of the
	// others wants it.
	restore(z *ledger.ZoneShare, recorded, others []ledger.Grant) error
	// repair makes the host as the grants want it where it has changed since; see State.Repair.
	repair(grants []ledger.Grant, all bool) (changed []ledger.Grant, err error)
	// assume takes what the kernel began with for first values that are lost.
	assume(grants []ledger.Grant) error
	// giveBack gives the host back what it had first. No claim is prepared any more.
	giveBack() error
}

// Tuned yields the shares whose CPUs are made fast or quiet.
func Tuned(grants ...ledger.Grant) iter.Seq2[*ledger.Share, *ledger.ZoneShare] {
	return func(yield func(*ledger.Share, *ledger.ZoneShare) bool) {
		for _, grant := range grants {
			for i := range grant.Shares {
				if zone := grant.Shares[i].Zone(); zone != nil && zone.Performance != nil && !yield(&grant.Shares[i], zone) {
					return
				}
			}
		}
	}
}

// Retune yields copies of these shares, and puts them in their place: recorded shares are never
// changed.
func Retune(grant *ledger.Grant) iter.Seq[*ledger.ZoneShare] {
	grant.Shares = slices.Clone(grant.Shares)
	return func(yield func(*ledger.ZoneShare) bool) {
		for share, zone := range Tuned(*grant) {
			changed, performance := *zone, *zone.Performance
			changed.Performance, share.Kind = &performance, &changed
			if !yield(&changed) {
				return
			}
		}
	}
}
