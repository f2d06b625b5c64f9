package driver

import (
	"bytes"
	"errors"

	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
)

// Mismatches says where the files of the node differ from what its claims hold. The Driver
// writes them, so a difference means that another program has changed them, or that a disk
// has lost what it had synced.
type Mismatches struct {
	Checkpoint   bool // the checkpoint has other grants
	MissingSpecs int  // claims without a CDI spec: their containers do not start
	ExtraSpecs   int  // CDI specs of no claim
}

// errBusy says that the files may be about to change.
var errBusy = errors.New("an operation is under way")

// Mismatches compares the files with the claims. While an operation is under way it returns an
// error, and does not wait.
func (d *Driver) Mismatches() (found Mismatches, err error) {
	if !d.mu.TryLock() {
		return Mismatches{}, errBusy
	}
	defer d.mu.Unlock()
	if !d.ready {
		return Mismatches{}, ErrNotRecovered
	}
	want, err := d.records.checkpoint(d.config.BootID, d.grants)
	if err != nil {
		return Mismatches{}, err
	}
	got, err := d.records.dir.ReadFile(ledger.CheckpointName)
	found.Checkpoint = err != nil || !bytes.Equal(got, want)
	missing, extra, err := d.compareSpecs()
	if err != nil {
		return Mismatches{}, err
	}
	found.MissingSpecs, found.ExtraSpecs = len(missing), extra
	return found, nil
}
