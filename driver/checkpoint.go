package driver

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dra-driver-numa/dra-driver-numa/driver/interrupts"
	"github.com/dra-driver-numa/dra-driver-numa/driver/uncore"
)

// CheckpointName is the file of the checkpoint in the state directory.
const CheckpointName = "checkpoint.json"

// Versions of the checkpoint. Version 2 added order and all fields of a Share after
// cpus. Version 3 added idleCPUs, version 4 zones and function, version 5 cache, and
// version 6 performance and interrupts, and version 7 uncore and defaults. Empty fields are
// left out, so one set of types reads all versions.
//
// The driver writes version 3 if no share has a newer field. A node whose zones are
// NUMA nodes, and that attaches no devices, can therefore go back to the previous
// release.
const (
	checkpointV1      = 1
	checkpointV2      = 2
	checkpointV3      = 3
	checkpointV4      = 4
	checkpointV5      = 5
	checkpointV6      = 6
	checkpointV7      = 7
	checkpointVersion = checkpointV7
)

// ErrDamaged says that the record of the node's grants cannot be trusted. It is torn,
// was changed by another program, has a newer version, or is lost. What the claims of
// the node hold is then unknown.
var ErrDamaged = errors.New("damaged checkpoint")

// remedy is what to do about a damaged checkpoint. A drained node runs no containers,
// so a start without grants cannot give away their CPUs.
const remedy = "drain the node, delete the file and restart the daemon"

// Checkpoint is every grant of a node, as the checkpoint file has it.
type Checkpoint struct {
	Version int     `json:"-"`      // of the format
	BootID  string  `json:"bootID"` // of the boot in which the checkpoint was written
	Grants  []Grant `json:"grants"` // ascending by UID, each UID once

	// Interrupts is which CPUs handled interrupts before claims had a say; empty if no claim
	// has.
	Interrupts interrupts.First `json:"interrupts,omitzero"`

	// Uncore is what the uncore of dies had before claims had a say, and has because of them;
	// empty if no claim has.
	Uncore []uncore.Held `json:"uncore,omitempty"`

	// Defaults are what CPUs have while no claim changes them, and had before; empty if the
	// NodeConfig says nothing about that.
	Defaults []Default `json:"defaults,omitempty"`
}

// envelope is the checkpoint file. Each checkpoint has exactly one valid text, so a
// change of any byte is detected.
type envelope struct {
	Version int             `json:"version"`
	SHA256  string          `json:"sha256"` // of State, in hex
	State   json.RawMessage `json:"state"`
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
	for i, one := range c.Uncore {
		if err := one.Validate(); err != nil {
			return fmt.Errorf("uncore[%d]: %w", i, err)
		}
	}
	for i, one := range c.Defaults {
		if err := errors.Join(one.Asked.Validate(), one.Changes.Validate()); err != nil {
			return fmt.Errorf("defaults[%d].%w", i, err)
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

// encodeCheckpoint returns the content of the checkpoint file.
func encodeCheckpoint(c Checkpoint) []byte {
	return appendCheckpoint(make([]byte, 0, 512*(len(c.Grants)+1)), c.Version, c.BootID, func(yield func(string) bool) {
		for i := range c.Grants {
			if !yield(string(c.Grants[i].appendText(nil))) {
				return
			}
		}
	}, c.Interrupts, c.Uncore, c.Defaults)
}

// DecodeCheckpoint reads a checkpoint file of any known version. Its errors wrap
// ErrDamaged and say what to do.
func DecodeCheckpoint(data []byte) (Checkpoint, error) {
	var file envelope
	if err := json.Unmarshal(data, &file); err != nil {
		return Checkpoint{}, damaged(err)
	}
	if file.Version > checkpointVersion {
		return Checkpoint{}, fmt.Errorf("%w: version %d, newest known is %d; install the newer dra-numa that wrote it, or %s",
			ErrDamaged, file.Version, checkpointVersion, remedy)
	}
	if sum := checksum(file.State); sum != file.SHA256 {
		return Checkpoint{}, damaged(fmt.Errorf("checksum %s, recorded is %q", sum, file.SHA256))
	}
	decoded := Checkpoint{Version: file.Version}
	strict := json.NewDecoder(bytes.NewReader(file.State))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&decoded); err != nil {
		return Checkpoint{}, damaged(err)
	}
	if !bytes.Equal(encodeCheckpoint(decoded), data) || decoded.Version < checkpointV1 {
		return Checkpoint{}, damaged(errors.New("not as dra-numa writes it"))
	}
	if err := decoded.upgrade(); err != nil {
		return Checkpoint{}, damaged(err)
	}
	if err := decoded.validateEach(); err != nil {
		return Checkpoint{}, damaged(err)
	}
	return decoded, nil
}

// upgrade fills in what version 1 did not record: the order of the grants. It returns
// an error if a grant has a field that its version did not have.
func (c *Checkpoint) upgrade() error {
	for i := range c.Grants {
		grant := &c.Grants[i]
		if needs := grant.checkpointVersion(); needs > c.Version {
			return fmt.Errorf("version %d has a field of version %d in claim %s", c.Version, needs, grant.UID)
		}
		if c.Version == checkpointV1 {
			grant.Order = uint64(i) + 1 // the real order is unknown, but this one is always the same
		}
	}
	if !c.Interrupts.IsZero() && c.Version < checkpointV6 {
		return fmt.Errorf("version %d has interrupts, which version %d added", c.Version, checkpointV6)
	}
	if len(c.Uncore) > 0 && c.Version < checkpointV7 {
		return fmt.Errorf("version %d has uncore, which version %d added", c.Version, checkpointV7)
	}
	if len(c.Defaults) > 0 && c.Version < checkpointV7 {
		return fmt.Errorf("version %d has defaults, which version %d added", c.Version, checkpointV7)
	}
	return nil
}

// checkpointVersion is the oldest version that can record the whole grant. Version 1
// has no order, and lacks other fields that are filled in when the driver sees the
// claim's allocation again.
func (g *Grant) checkpointVersion() int {
	version := checkpointV1
	if g.Order != 0 {
		version = checkpointV2
	}
	for i := range g.Shares {
		version = max(version, g.Shares[i].Kind.checkpointVersion())
	}
	return version
}

func damaged(err error) error { return fmt.Errorf("%w: %w; %s", ErrDamaged, err, remedy) }

func checksum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
