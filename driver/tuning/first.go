package tuning

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/cpufreq"
	"github.com/dra-driver-numa/dra-driver-numa/driver/interrupts"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/uncore"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// FirstName is the file of the first values in the state directory. It is not the checkpoint,
// because that is deleted when it is damaged, and the host stays as it was changed.
const FirstName = "first.json"

const (
	firstFormat  = deviceclasses.DriverName + "/first"
	firstVersion = 1 // as with checkpointVersion
)

// First is what the node had before claims and the default of its NodeConfig changed it, and
// what it has because of them.
//
// Each boot has its file before it has its checkpoint. So if the checkpoint is of this boot
// and the file is not, the file is lost.
type First struct {
	BootID string `json:"bootID"` // of the boot in which the node had this

	// Interrupts is which CPUs handled interrupts; empty if no claim has a say.
	Interrupts interrupts.First `json:"interrupts,omitzero"`

	// Uncore is what the uncore of dies had, and has; empty if no claim has a say.
	Uncore []uncore.Held `json:"uncore,omitempty"`

	// Defaults are what CPUs have while no claim changes them, and had; empty if the
	// NodeConfig says nothing about that.
	Defaults []Default `json:"defaults,omitempty"`
}

// errFirstDamaged is as ErrDamaged. It is another error, because claims keep what they hold.
var errFirstDamaged = errors.New("damaged first values")

func formatOfFirst() ledger.Format {
	return ledger.Format{
		Name: firstFormat, Newest: firstVersion,
		Damaged: func(err error) error { return fmt.Errorf("%w: %w", errFirstDamaged, err) },
		Other:   func(err error) error { return fmt.Errorf("%w: %w", ledger.ErrOtherBuild, err) },
	}
}

func (f First) equal(other First) bool {
	return f.BootID == other.BootID && f.Interrupts.Equal(other.Interrupts) && slices.Equal(f.Uncore, other.Uncore) &&
		slices.EqualFunc(f.Defaults, other.Defaults, Default.equal)
}

func (f First) validate() error {
	for i, one := range f.Uncore {
		if err := one.Validate(); err != nil {
			return fmt.Errorf("uncore[%d]: %w", i, err)
		}
	}
	for i, one := range f.Defaults {
		if err := errors.Join(one.Asked.Validate(), one.Changes.Validate()); err != nil {
			return fmt.Errorf("defaults[%d].%w", i, err)
		}
	}
	return nil
}

// Encode returns the content of the file.
func (f First) Encode() []byte {
	state, _ := json.Marshal(f) // its types always encode
	return formatOfFirst().Encode(state)
}

// DecodeFirst reads the file of the first values.
func DecodeFirst(data []byte) (First, error) {
	format := formatOfFirst()
	_, state, err := format.Open(data)
	if err != nil {
		return First{}, err
	}
	var decoded First
	if err := format.Decode(data, state, &decoded, func() []byte { return decoded.Encode() }); err != nil {
		return First{}, err
	}
	if err := decoded.validate(); err != nil {
		return First{}, format.Other(err)
	}
	return decoded, nil
}

// loadFirst reads what the node had first in this boot; record is what the other files have.
// If it is lost, unknown says why.
func loadFirst(state *os.Root, bootID string, record ledger.Record) (first First, unknown error) {
	data, err := state.ReadFile(FirstName)
	if err == nil {
		first, err = DecodeFirst(data)
	}
	readable := err == nil || errors.Is(err, fs.ErrNotExist)
	switch {
	case err == nil && first.BootID == bootID:
		return first, nil
	case !record.Begun && (readable || !record.Lost):
		return First{BootID: bootID}, nil // nothing was changed in this boot yet
	case err == nil:
		err = fmt.Errorf("it is of boot %s", first.BootID)
	case readable:
		err = errors.New("it is missing")
	}
	return First{BootID: bootID}, fmt.Errorf("%s: %w", filepath.Join(state.Name(), FirstName), err)
}

// recordFirst puts what the node had first on record, unless it is. After an error, what was
// on record before counts.
func (t *State) recordFirst(next First) error {
	if next.equal(t.first) {
		return nil
	}
	if err := t.record(next.Encode()); err != nil {
		return fmt.Errorf("record first values: %w", err)
	}
	t.first = next
	return nil
}

func (t *State) recordInterrupts(next interrupts.First) error {
	first := t.first
	first.Interrupts = next
	return t.recordFirst(first)
}

func (t *State) recordUncore(next []uncore.Held) error {
	first := t.first
	first.Uncore = next
	return t.recordFirst(first)
}

func (t *State) recordDefaults(next []Default) error {
	first := t.first
	first.Defaults = next
	return t.recordFirst(first)
}

// Restore gives the host back what it had first in this boot, in which no claim is prepared
// any more. A CPU or a die that is offline is an error.
func (f First) Restore(host Config) error {
	var errs []error
	for _, one := range f.Defaults {
		errs = append(errs, host.Frequencies.Restore(one.Changes))
	}
	return errors.Join(append(errs, f.restoreUncore(host.Uncore), f.restoreInterrupts(host.Interrupts))...)
}

func (f First) restoreUncore(host *uncore.Host) error {
	if len(f.Uncore) == 0 {
		return nil
	}
	dies, err := host.Read()
	if err != nil {
		return err
	}
	held, err := host.Probe(f.Uncore, dies)
	if err != nil {
		return err
	}
	next, writes := uncore.Plan(dies, held, nil)
	if err := host.Apply(writes); err != nil {
		return err
	}
	for _, left := range uncore.Settled(dies, next, nil) {
		err = errors.Join(err, fmt.Errorf("uncore of %s: %w", left.ID, errDieOffline))
	}
	return err
}

var errDieOffline = errors.New("its CPUs are offline")

func (f First) restoreInterrupts(host *interrupts.Host) error {
	if f.Interrupts.IsZero() {
		return nil
	}
	state, all, err := host.Read()
	if err != nil {
		return err
	}
	_, writes := interrupts.Plan(state, all, f.Interrupts, forgotten(all), nil)
	_, err = host.Apply(writes)
	return err
}

// forgotten are the demands of claims that are not on record any more: any CPUs may have been
// theirs.
func forgotten(all cpuset.Set) []interrupts.Demand { return []interrupts.Demand{{CPUs: all}} }

// assumeFirst is for a boot whose first values are lost. For what claims and the NodeConfig
// have changed it takes what the kernel began with. The governor and the energy preference
// of a default stay: the kernel does not say with which it began.
func (t *State) assumeFirst(grants []ledger.Grant) error {
	return errors.Join(t.assumeInterrupts(grants), t.assumeUncore(grants), t.assumeDefaults())
}

func (t *State) assumeInterrupts(grants []ledger.Grant) error {
	demands, err := t.demands(grants)
	if err != nil || len(demands) == 0 {
		return err
	}
	t.first.Interrupts.Default, err = t.hosts().Interrupts.Began()
	return err
}

func (t *State) assumeUncore(grants []ledger.Grant) error {
	demands := uncoreDemands(grants)
	if len(demands) == 0 {
		return nil
	}
	dies, err := t.hosts().Uncore.Read()
	t.first.Uncore = uncore.Began(dies, demands)
	return err
}

func (t *State) assumeDefaults() error {
	asked, cpus := t.defaultOf()
	if asked.IsZero() {
		return nil
	}
	policies, err := t.policiesOf(t.machine.Online)
	if err != nil {
		return err
	}
	cpus = whole(cpus, t.machine.Cores, policies)
	state, err := cpufreq.Read(t.hosts().Frequencies.Files(), cpus, asked)
	if err != nil {
		return err
	}
	changes, err := cpufreq.Plan(cpufreq.Began(state), t.machine.Cores, cpus, asked)
	if err == nil && !changes.IsZero() {
		t.first.Defaults = []Default{{Asked: asked, Changes: changes}}
	}
	return err
}
