package ledger

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
)

// CheckpointName is the file of the checkpoint in the state directory.
const CheckpointName = "checkpoint.json"

const (
	// checkpointFormat is the name of the format, which the file has.
	checkpointFormat = deviceclasses.DriverName + "/checkpoint"
	// checkpointVersion is the version of the format. From v0.1.0 on, only a release raises
	// it. Until then it stays 1, and fields of the state may be added. An empty field is left
	// out.
	checkpointVersion = 1
)

// nextRelease makes a build the made-up next release of make upgrade-test: the linker sets
// it, as internal/version says of the program's version. That release writes version 2,
// which has it as one more field. It is empty in all other builds.
var nextRelease string

// newestVersion is the newest version that this build reads, and the one that it writes.
func newestVersion() int {
	if nextRelease != "" {
		return checkpointVersion + 1
	}
	return checkpointVersion
}

// ErrDamaged says that the record of the node's grants is torn, was changed by another
// program, or is lost.
var ErrDamaged = errors.New("damaged checkpoint")

// ErrOtherBuild says that the record of the node's grants is intact, but has a format or a
// field that this build does not know.
var ErrOtherBuild = errors.New("written by another build")

// GrantsUnknown reports whether the error says that the record of the node's grants cannot
// be used. What the claims of the node hold is then unknown.
func GrantsUnknown(err error) bool {
	return errors.Is(err, ErrDamaged) || errors.Is(err, ErrOtherBuild)
}

// Checkpoint is every grant of a node, as the checkpoint file has it.
type Checkpoint struct {
	Version int     `json:"-"`      // of the format
	BootID  string  `json:"bootID"` // of the boot in which the checkpoint was written
	Grants  []Grant `json:"grants"` // ascending by UID, each UID once

	NextRelease string `json:"nextRelease,omitempty"` // see nextRelease
}

// NewCheckpoint returns what this build writes in a boot, without grants.
func NewCheckpoint(bootID string) Checkpoint {
	return Checkpoint{Version: newestVersion(), BootID: bootID, NextRelease: nextRelease}
}

// Validate returns an error if a CPU or a PCI function is in two grants. The driver
// never writes such a checkpoint, but it can read one. Recover then decides which grant
// keeps it.
func (c Checkpoint) Validate() error {
	var all held
	for i := range c.Grants {
		if err := c.validateNames(i); err != nil {
			return err
		}
		if err := all.add(&c.Grants[i], c.Grants[i].words()); err != nil {
			return err
		}
	}
	return nil
}

// validateEach checks the grants one by one.
func (c Checkpoint) validateEach() error {
	if has := c.NextRelease != ""; has != (c.Version > checkpointVersion) {
		return fmt.Errorf("nextRelease: %q in version %d", c.NextRelease, c.Version)
	}
	for i := range c.Grants {
		if err := c.validateNames(i); err != nil {
			return err
		}
		if err := new(held).add(&c.Grants[i], c.Grants[i].words()); err != nil {
			return err
		}
		for j := range c.Grants[i].Shares {
			if err := c.Grants[i].Shares[j].Kind.validate(); err != nil {
				return fmt.Errorf("share %d of claim %s: %w", j, c.Grants[i].UID, err)
			}
		}
	}
	return nil
}

func (c Checkpoint) validateNames(i int) error {
	if i > 0 && c.Grants[i-1].UID >= c.Grants[i].UID {
		return fmt.Errorf("claim %s after claim %s", c.Grants[i].UID, c.Grants[i-1].UID)
	}
	if c.Grants[i].Order == 0 {
		return fmt.Errorf("claim %s has no order", c.Grants[i].UID)
	}
	if pods := c.Grants[i].Pods; !slices.IsSorted(pods) || len(slices.Compact(slices.Clone(pods))) < len(pods) {
		return fmt.Errorf("claim %s has pods %s, want ascending uids", c.Grants[i].UID, pods)
	}
	return nil
}

// loadCheckpoint reads the checkpoint of a state directory. Without a file it
// returns fs.ErrNotExist.
func loadCheckpoint(state *os.Root) (Checkpoint, error) {
	data, err := state.ReadFile(CheckpointName)
	if err != nil {
		return Checkpoint{}, err
	}
	loaded, err := DecodeCheckpoint(data)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("%s: %w", filepath.Join(state.Name(), CheckpointName), err)
	}
	return loaded, nil
}

// Encode returns the content of the checkpoint file.
func (c Checkpoint) Encode() []byte {
	return appendCheckpoint(make([]byte, 0, 512*(len(c.Grants)+1)), &c, func(yield func(string) bool) {
		for i := range c.Grants {
			if !yield(string(c.Grants[i].appendText(nil))) {
				return
			}
		}
	})
}

// DecodeCheckpoint reads a checkpoint file. Its errors wrap ErrDamaged or ErrOtherBuild and
// say what to do.
func DecodeCheckpoint(data []byte) (Checkpoint, error) {
	format := Format{checkpointFormat, newestVersion(), damaged, ofOtherBuild}
	version, state, err := format.Open(data)
	if err != nil {
		return Checkpoint{}, err
	}
	decoded := Checkpoint{Version: version}
	if err := format.Decode(data, state, &decoded, func() []byte { return decoded.Encode() }); err != nil {
		return Checkpoint{}, err
	}
	if err := decoded.validateEach(); err != nil {
		return Checkpoint{}, ofOtherBuild(err)
	}
	return decoded, nil
}

// A drained node runs no containers, so a start without grants cannot give away their CPUs.
func damaged(err error) error {
	return fmt.Errorf("%w: %w; drain the node, delete the file and restart the daemon", ErrDamaged, err)
}

func ofOtherBuild(err error) error {
	return fmt.Errorf("%w: %w; install the build that wrote it, or drain the node, delete %s and the CDI specs %s, and restart the daemon",
		ErrOtherBuild, err, CheckpointName, cdi.ClaimSpecs) // it has written the notes of the specs, too
}
