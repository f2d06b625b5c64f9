package driver

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/driver/cpufreq"
	"github.com/dra-driver-numa/dra-driver-numa/driver/interrupts"
	"github.com/dra-driver-numa/dra-driver-numa/driver/uncore"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// FirstName is the file of the first values in the state directory. It is not the checkpoint,
// because that is deleted when it is damaged, and the host stays as it was changed.
const FirstName = "first.json"

const (
	firstFormat  = Name + "/first"
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

func formatOfFirst() format {
	return format{
		firstFormat, firstVersion,
		func(err error) error { return fmt.Errorf("%w: %w", errFirstDamaged, err) },
		func(err error) error { return fmt.Errorf("%w: %w", ErrOtherBuild, err) },
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

// encodeFirst returns the content of the file.
func encodeFirst(f First) []byte {
	state, _ := json.Marshal(f) // its types always encode
	text := appendHeader(nil, firstFormat, firstVersion, checksum(state))
	return append(append(text, state...), "}\n"...)
}

// DecodeFirst reads the file of the first values.
func DecodeFirst(data []byte) (First, error) {
	format := formatOfFirst()
	_, state, err := format.open(data)
	if err != nil {
		return First{}, err
	}
	var decoded First
	if err := format.decode(data, state, &decoded, func() []byte { return encodeFirst(decoded) }); err != nil {
		return First{}, err
	}
	if err := decoded.validate(); err != nil {
		return First{}, format.other(err)
	}
	return decoded, nil
}

// loadFirst reads what the node had first in this boot; record is what the other files have.
// If it is lost, unknown says why.
func loadFirst(state *os.Root, bootID string, record onRecord) (first First, unknown error) {
	data, err := state.ReadFile(FirstName)
	if err == nil {
		first, err = DecodeFirst(data)
	}
	readable := err == nil || errors.Is(err, fs.ErrNotExist)
	switch {
	case err == nil && first.BootID == bootID:
		return first, nil
	case !record.begun && (readable || !record.lost):
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
func (d *Driver) recordFirst(next First) error {
	if next.equal(d.first) {
		return nil
	}
	if err := d.replace(FirstName, encodeFirst(next)); err != nil {
		return fmt.Errorf("record first values: %w", err)
	}
	d.first = next
	return nil
}

func (d *Driver) recordInterrupts(next interrupts.First) error {
	first := d.first
	first.Interrupts = next
	return d.recordFirst(first)
}

func (d *Driver) recordUncore(next []uncore.Held) error {
	first := d.first
	first.Uncore = next
	return d.recordFirst(first)
}

func (d *Driver) recordDefaults(next []Default) error {
	first := d.first
	first.Defaults = next
	return d.recordFirst(first)
}

// Restore gives the host back what it had first in this boot, in which no claim is prepared
// any more. A CPU or a die that is offline is an error.
func (f First) Restore(host Tuning) error {
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
func (d *Driver) assumeFirst() error {
	grants := d.grants.grants()
	return errors.Join(d.assumeInterrupts(grants), d.assumeUncore(grants), d.assumeDefaults())
}

func (d *Driver) assumeInterrupts(grants []Grant) error {
	demands, err := d.demands(grants)
	if err != nil || len(demands) == 0 {
		return err
	}
	d.first.Interrupts.Default, err = d.tuning().Interrupts.Began()
	return err
}

func (d *Driver) assumeUncore(grants []Grant) error {
	demands := uncoreDemands(grants)
	if len(demands) == 0 {
		return nil
	}
	dies, err := d.tuning().Uncore.Read()
	d.first.Uncore = uncore.Began(dies, demands)
	return err
}

func (d *Driver) assumeDefaults() error {
	asked, cpus := d.defaultOf()
	if asked.IsZero() {
		return nil
	}
	policies, err := d.policiesOf(d.machine.Online)
	if err != nil {
		return err
	}
	cpus = whole(cpus, d.machine.Cores, policies)
	state, err := cpufreq.Read(d.tuning().Frequencies.Files(), cpus, asked)
	if err != nil {
		return err
	}
	changes, err := cpufreq.Plan(cpufreq.Began(state), d.machine.Cores, cpus, asked)
	if err == nil && !changes.IsZero() {
		d.first.Defaults = []Default{{Asked: asked, Changes: changes}}
	}
	return err
}
