package tuning

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/driver/interrupts"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/uncore"
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

// recordFirst puts a change of what the node had first on record, unless it is. After an error,
// what was on record before counts.
func (t *State) recordFirst(change func(first *First)) error {
	next := t.first
	change(&next)
	text := next.Encode()
	if bytes.Equal(text, t.first.Encode()) {
		return nil
	}
	if err := t.record(text); err != nil {
		return fmt.Errorf("record first values: %w", err)
	}
	t.first = next
	return nil
}

// Restore gives the host back what it had first in this boot, in which no claim is prepared
// any more. A CPU or a die that is offline is an error.
func (f First) Restore(host Config) (err error) {
	t := New(&host, nil, func([]byte) error { return nil })
	t.first = f
	for _, e := range t.effects() {
		err = errors.Join(err, e.giveBack())
	}
	return err
}
