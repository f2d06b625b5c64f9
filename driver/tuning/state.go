package tuning

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/cpufreq"
	"github.com/dra-driver-numa/dra-driver-numa/driver/interrupts"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/uncore"
	"github.com/dra-driver-numa/dra-driver-numa/internal/message"
	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// A claim may want its CPUs fast and quiet. What they had is recorded before anything
// changes, and stays on record until it is restored.

// Config says how a node makes CPUs fast and quiet for claims.
type Config struct {
	Frequencies *cpufreq.Host
	Interrupts  *interrupts.Host
	Uncore      *uncore.Host
	ClaimsTune  bool // claims can ask for it, and not only their DeviceClasses
	OnlyDefault bool // neither claims nor their DeviceClasses can ask for it

	Default         deviceclasses.PerformanceSettings // of CPUs that no claim changes, without interrupts and the uncore
	DefaultReserved bool                              // also of those that no claim gets
}

// State is what the node has tuned for claims and by default. Its methods may be repeated after
// an error or a crash. The caller has one lock for all of them.
type State struct {
	config *Config
	tunes  bool                    // false if the node changes nothing: the hosts of its config only read
	record func(text []byte) error // writes the file of the first values

	machine   *numa.Machine
	grantable cpuset.Set // CPUs of machine that a claim may ever get

	first     First              // what the node had first
	unknown   error              // see Unknown
	due       []interrupts.Write // that had no room when the last claim ended; lost with the process
	uncoreDue bool               // dies may have come online since the last look
	settled   lookedAt           // when SettleDefaults last succeeded, or found the default unmet
	unmet     error              // why the default was unmet then; nil if it was not
	seen      []int              // numbers of interrupts at the last look
	online    cpuset.Set         // CPUs that came online, and may have lost what claims want
	restarted cpuset.Set         // CPUs that came online, and may have lost their default
}

// New returns the state of a node that has nothing on record. files has the folder sys; a node that changes
// nothing, whose config is nil, only reads it. Record writes the file of the first values.
func New(config *Config, files fs.FS, record func(text []byte) error) *State {
	t := &State{config: config, tunes: config != nil, record: record}
	if config == nil {
		refuse := func(string, string) error { return errNotTuned }
		t.config = &Config{OnlyDefault: true, Frequencies: cpufreq.New(files, refuse), Interrupts: interrupts.New(files, refuse), Uncore: uncore.New(files, refuse)}
	}
	return t
}

// errNotTuned is why nothing is written on a node whose NodeConfig does not allow it any
// more.
var errNotTuned = errors.New("this node changes no frequencies, idle states and interrupts any more: set performance.allow in its NodeConfig")

// Use takes the machine as it is now, and the CPUs of it that a claim may ever get.
func (t *State) Use(machine *numa.Machine, grantable cpuset.Set) {
	if t.machine != nil && t.tunes {
		online := machine.Online.Difference(t.machine.Online)
		t.online, t.restarted = t.online.Union(online), t.restarted.Union(online)
		t.uncoreDue = t.uncoreDue || !online.IsEmpty()
	}
	t.machine, t.grantable = machine, grantable
}

// Load reads what the node had first in this boot. Claims are on record, with these grants.
func (t *State) Load(state *os.Root, bootID string, onRecord ledger.Record, grants []ledger.Grant) {
	if t.first, t.unknown = loadFirst(state, bootID, onRecord); t.unknown != nil {
		for _, e := range t.effects() {
			t.unknown = errors.Join(t.unknown, e.assume(grants))
		}
		t.unknown = message.Joined(t.unknown)
	}
	t.uncoreDue = true
}

// Unknown says why it is not known what the node had before claims and the default of the
// NodeConfig changed it in this boot; nil if it is known. What the kernel began with is then
// taken for it.
func (t *State) Unknown() error { return t.unknown }

// FirstText is the file of the first values.
func (t *State) FirstText() []byte { return t.first.Encode() }

// May refuses settings that this node does not change, or not for this claim. What is on
// record for it stays allowed.
func (t *State) May(ofClass, asked, recorded deviceclasses.PerformanceSettings) error {
	switch {
	case asked.IsZero() || asked.Equal(recorded):
		return nil
	case t.config.OnlyDefault:
		return fmt.Errorf("%s: claims change no frequencies, idle states and interrupts on this node: performance.allow is not set in its NodeConfig", asked.First())
	case !asked.Equal(ofClass) && !t.config.ClaimsTune:
		return fmt.Errorf("%s: only a DeviceClass can change this on this node: performance.allow is %s in its NodeConfig", asked.First(), deviceclasses.AllowClass)
	}
	return nil
}

// Plan decides what these CPUs should have. It reads what they have now.
func (t *State) Plan(cpus cpuset.Set, asked deviceclasses.PerformanceSettings) (*ledger.Performance, error) {
	planned := &ledger.Performance{Asked: asked}
	for _, e := range t.effects() {
		if err := e.plan(cpus, planned); err != nil {
			return nil, err
		}
	}
	return planned, nil
}

// Apply makes the CPUs of a grant as the claim wants them, and returns the grant with what the
// kernel made of that. Recorded are the grants on record, of which it is one.
func (t *State) Apply(grant ledger.Grant, recorded []ledger.Grant) (ledger.Grant, error) {
	next := grant
	for zone := range Retune(&next) {
		zone.Performance.Applied, zone.Performance.Staying = true, nil
	}
	for _, e := range t.effects() {
		var err error
		if next, err = e.apply(next, recorded); err != nil {
			return grant, err
		}
	}
	return next, nil
}

// Restores reports whether the CPUs of a share get back what they had: none of the other grants
// has the same CPUs and wants the same.
func Restores(z *ledger.ZoneShare, others []ledger.Grant) bool {
	for _, zone := range Tuned(others...) {
		if z.Performance != nil && zone.CPUs == z.CPUs && zone.Performance.Asked.Equal(z.Performance.Asked) {
			return false
		}
	}
	return z.Performance != nil
}

// Restore gives the CPUs of a share back what they had. Recorded are the grants on record, of
// which the others stay.
func (t *State) Restore(z *ledger.ZoneShare, recorded, others []ledger.Grant) error {
	for _, e := range t.effects() {
		if err := e.restore(z, recorded, others); err != nil {
			return err
		}
	}
	return nil
}

// Repair makes the host as these grants want it, where it has changed since. It returns those of
// which something else is true now. Unless all is true, it reads little.
func (t *State) Repair(grants []ledger.Grant, all bool) (changed []ledger.Grant, err error) {
	for _, e := range t.effects() {
		now, failed := e.repair(grants, all)
		changed, err = append(changed, now...), errors.Join(err, failed)
	}
	return changed, err
}
