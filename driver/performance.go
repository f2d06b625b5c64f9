package driver

import (
	"errors"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/tuning"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
)

// tuned returns the settings on record for a request.
func (p *planner) tuned(claimUID types.UID, request string) deviceclasses.PerformanceSettings {
	recorded, _ := p.grants.Find(claimUID)
	for share, zone := range tuning.Tuned(recorded) {
		if share.Request == request {
			return zone.Performance.Asked
		}
	}
	return deviceclasses.PerformanceSettings{}
}

// tunes reports whether a wish changes CPUs.
func tunes(wish wish) bool {
	zone, is := wish.wanted.(zoneWish)
	return is && !zone.performance.IsZero()
}

// tuneSteps returns the step that makes the CPUs of a grant on record as the claim wants
// them, and records what the kernel made of that; none if they are so.
func (d *Driver) tuneSteps(grant ledger.Grant) []step {
	if !grant.Tunes(true) {
		return nil
	}
	return []step{{"make the CPUs of claim " + grant.FullName() + " as it wants them", func() error {
		next, err := d.tuning.Apply(grant, d.grants.Grants())
		if err != nil {
			return err
		}
		return d.recordStep("record claim "+next.FullName(), d.grants.With(next)).run()
	}}}
}

// untuneSteps returns the steps that give CPUs back what they had, and record that, if the
// claim was allocated again: what its CPUs have now is not what they had before it.
func (d *Driver) untuneSteps(claim *resourceapi.ResourceClaim, wishes []wish) []step {
	recorded, held := d.grants.Find(claim.UID)
	if !held || !recorded.Tunes(false) || fulfils(recorded, wishes) {
		return nil
	}
	others := d.grants.Without(claim.UID).Grants()
	var steps []step
	for _, zone := range tuning.Tuned(recorded) {
		steps = append(steps, d.restoreSteps(zone, recorded.FullName(), others)...)
	}
	released := recorded
	for zone := range tuning.Retune(&released) {
		zone.Performance = nil
	}
	return append(steps, d.recordStep("record claim "+released.FullName(), d.grants.With(released)))
}

// restoreSteps gives the CPUs back what they had, unless one of the other grants has the same CPUs
// and wants the same.
func (d *Driver) restoreSteps(z *ledger.ZoneShare, claim string, others []ledger.Grant) []step {
	if !tuning.Restores(z, others) {
		return nil
	}
	return []step{{"give the CPUs of claim " + claim + " back what they had", func() error {
		if err := d.tuning.Restore(z, d.grants.Grants(), others); err != nil {
			return &NotRestoredError{message.Joined(err)}
		}
		return nil
	}}}
}

// RepairPerformance moves interrupts that have come to CPUs of claims, gives CPUs that were
// offline, and the uncore of their dies, what their claims want, and gives the others the
// default of the NodeConfig. Call it every few seconds. Unless all is true, it reads interrupts
// only if there are other ones than at its last call. Without such claims and without a default
// it does nothing.
func (d *Driver) RepairPerformance(all bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.ready {
		return nil
	}
	changed, err := d.tuning.Repair(d.grants.Grants(), all)
	err = errors.Join(err, d.recordTuned(changed))
	d.note(&d.undone.tuning, errText(err))
	return err
}

// recordTuned records grants of which something else is true now.
func (d *Driver) recordTuned(grants []ledger.Grant) error {
	for _, grant := range grants {
		if _, ended := d.orphans[grant.UID]; ended {
			continue // it has no CDI spec any more
		}
		change, err := d.planner().rendered(change{Grant: grant, grants: []*ledger.Listed{ledger.NewListed(grant)}})
		if err != nil {
			return err
		}
		if err := perform(d.recordSteps(change)); err != nil {
			return err
		}
	}
	return nil
}
