package tuning

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

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
	config *Config                 // nil if the node changes nothing
	files  fs.FS                   // has the folder sys: what a node that changes nothing reads
	record func(text []byte) error // writes the file of the first values

	machine   *numa.Machine
	grantable cpuset.Set // CPUs of machine that a claim may ever get

	first     First              // what the node had first
	unknown   error              // see Unknown
	due       []interrupts.Write // that had no room when the last claim ended; lost with the process
	uncoreDue bool               // dies may have come online since the last look
	settled   lookedAt           // when settleDefaults last succeeded
	seen      []int              // numbers of interrupts at the last look
	online    cpuset.Set         // CPUs that came online since the last look, and may have lost what claims want
}

// New returns the state of a node that has nothing on record. files has the folder sys.
// Record writes the file of the first values.
func New(config *Config, files fs.FS, record func(text []byte) error) *State {
	return &State{config: config, files: files, record: record}
}

// Use takes the machine as it is now, and the CPUs of it that a claim may ever get.
func (t *State) Use(machine *numa.Machine, grantable cpuset.Set) {
	if t.machine != nil && t.config != nil {
		online := machine.Online.Difference(t.machine.Online)
		t.online, t.uncoreDue = t.online.Union(online), t.uncoreDue || !online.IsEmpty()
	}
	t.machine, t.grantable = machine, grantable
}

// Load reads what the node had first in this boot. Claims are on record, with these grants.
func (t *State) Load(state *os.Root, bootID string, onRecord ledger.Record, grants []ledger.Grant) {
	if t.first, t.unknown = loadFirst(state, bootID, onRecord); t.unknown != nil {
		t.unknown = message.Joined(errors.Join(t.unknown, t.assumeFirst(grants)))
	}
	t.uncoreDue = len(t.first.Uncore) > 0 || len(uncoreDemands(grants)) > 0
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
	case t.config == nil || t.config.OnlyDefault:
		return fmt.Errorf("%s: claims change no frequencies, idle states and interrupts on this node: performance.allow is not set in its NodeConfig", asked.First())
	case !asked.Equal(ofClass) && !t.config.ClaimsTune:
		return fmt.Errorf("%s: only a DeviceClass can change this on this node: performance.allow is %s in its NodeConfig", asked.First(), deviceclasses.AllowClass)
	}
	return nil
}

// Plan decides what these CPUs should have. It reads what they have now.
func (t *State) Plan(cpus cpuset.Set, asked deviceclasses.PerformanceSettings) (*ledger.Performance, error) {
	state, err := cpufreq.Read(t.hosts().Frequencies.Files(), cpus, asked)
	if err != nil {
		return nil, err
	}
	changes, err := cpufreq.Plan(state, t.machine.Cores, cpus, asked)
	if err != nil {
		return nil, err
	}
	demands, err := t.planUncore(cpus, asked.MinUncoreFrequency)
	if err != nil {
		return nil, err
	}
	return &ledger.Performance{Asked: asked, Changes: changes, Uncore: demands}, nil
}

// errNotTuned is why nothing is written on a node whose NodeConfig does not allow it any
// more.
var errNotTuned = errors.New("this node changes no frequencies, idle states and interrupts any more: set performance.allow in its NodeConfig")

// hosts returns the hosts that change CPUs. On a node that changes none, they only read.
func (t *State) hosts() Config {
	if t.config != nil {
		return *t.config
	}
	refuse := func(string, string) error { return errNotTuned }
	return Config{Frequencies: cpufreq.New(t.files, refuse), Interrupts: interrupts.New(t.files, refuse), Uncore: uncore.New(t.files, refuse)}
}

// Apply makes the CPUs of a grant as the claim wants them, and returns the grant with what the
// kernel made of that. Recorded are the grants on record, of which it is one.
func (t *State) Apply(grant ledger.Grant, recorded []ledger.Grant) (ledger.Grant, error) {
	next := grant
	next.Shares = slices.Clone(grant.Shares)
	for i := range next.Shares {
		zone := next.Shares[i].Zone()
		if zone == nil || zone.Performance == nil {
			continue
		}
		applied, err := t.hosts().Frequencies.Apply(zone.Performance.Changes)
		if err != nil {
			return grant, err
		}
		tuned := *zone
		tuned.Performance = &ledger.Performance{Asked: zone.Performance.Asked, Changes: applied, Uncore: zone.Performance.Uncore, Applied: true}
		next.Shares[i].Kind = &tuned
	}
	next, err := t.quieten(next, recorded)
	if err != nil {
		return grant, err
	}
	return next, t.settleUncore(recorded, &next)
}

// Restores reports whether the CPUs of a share get back what they had: none of the other grants
// has the same CPUs and wants the same.
func Restores(z *ledger.ZoneShare, others []ledger.Grant) bool {
	kept := func(other ledger.Share) bool {
		zone := other.Zone()
		return zone != nil && zone.CPUs == z.CPUs && zone.Performance != nil && zone.Performance.Asked.Equal(z.Performance.Asked)
	}
	return z.Performance != nil && !slices.ContainsFunc(others, func(g ledger.Grant) bool { return slices.ContainsFunc(g.Shares, kept) })
}

// Restore gives the CPUs of a share back what they had. Recorded are the grants on record, of
// which the others stay.
func (t *State) Restore(z *ledger.ZoneShare, recorded, others []ledger.Grant) error {
	err := t.hosts().Frequencies.Restore(z.Performance.Changes)
	if err == nil && z.Performance.Asked.Interrupts != "" {
		_, err = t.moveInterrupts(recorded, others)
	}
	if err == nil && len(z.Performance.Uncore) > 0 {
		err = t.settleUncore(others, nil)
	}
	return err
}
