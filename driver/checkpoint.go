package driver

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

const (
	checkpointName    = "checkpoint.json"
	checkpointVersion = 1
)

// ErrDamaged says that the checkpoint cannot be trusted: torn, changed by
// somebody, or of a newer version. The claims of the node are then unknown.
var ErrDamaged = errors.New("damaged checkpoint")

// checkpoint is every grant of the node.
type checkpoint struct {
	BootID string  `json:"bootID"` // of the boot in which it was written
	Grants []Grant `json:"grants"` // ascending by UID, each UID once, no CPU in two
}

// envelope is the file. There is one text for one checkpoint, so that a change
// of any byte is found.
type envelope struct {
	Version int             `json:"version"`
	SHA256  string          `json:"sha256"` // of State, in hex
	State   json.RawMessage `json:"state"`
}

func newCheckpoint(bootID string, grants map[types.UID]Grant) checkpoint {
	sorted := slices.SortedFunc(maps.Values(grants), func(a, b Grant) int { return cmp.Compare(a.UID, b.UID) })
	return checkpoint{BootID: bootID, Grants: sorted}
}

func (c checkpoint) byUID() map[types.UID]Grant {
	grants := make(map[types.UID]Grant, len(c.Grants))
	for _, grant := range c.Grants {
		grants[grant.UID] = grant
	}
	return grants
}

func (c checkpoint) validate() error {
	var held cpuset.Set
	for i, grant := range c.Grants {
		if i > 0 && c.Grants[i-1].UID >= grant.UID {
			return fmt.Errorf("claim %s after claim %s", grant.UID, c.Grants[i-1].UID)
		}
		for _, share := range grant.Shares {
			if both := held.Intersection(share.CPUs); !both.IsEmpty() {
				return fmt.Errorf("cpus %s are in two shares, one of claim %s", both, grant.UID)
			}
			held = held.Union(share.CPUs)
		}
	}
	return nil
}

// loadCheckpoint reads the checkpoint; a first start has an empty one.
func loadCheckpoint(state *os.Root) (checkpoint, error) {
	data, err := state.ReadFile(checkpointName)
	if errors.Is(err, fs.ErrNotExist) {
		return checkpoint{}, nil
	}
	if err != nil {
		return checkpoint{}, err
	}
	loaded, err := decodeCheckpoint(data)
	if err != nil {
		return checkpoint{}, fmt.Errorf("%w %s: %w", ErrDamaged, filepath.Join(state.Name(), checkpointName), err)
	}
	return loaded, nil
}

func saveCheckpoint(state *os.Root, c checkpoint) error {
	if err := c.validate(); err != nil {
		return err
	}
	data, err := encodeCheckpoint(c)
	if err != nil {
		return err
	}
	return cdi.ReplaceFile(state, checkpointName, data, 0o600)
}

func encodeCheckpoint(c checkpoint) ([]byte, error) {
	if c.Grants == nil {
		c.Grants = []Grant{}
	}
	state, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(envelope{Version: checkpointVersion, SHA256: checksum(state), State: state})
	return append(data, '\n'), err
}

func decodeCheckpoint(data []byte) (checkpoint, error) {
	const remedy = "drain the node, delete the file and start again"
	var file envelope
	if err := json.Unmarshal(data, &file); err != nil {
		return checkpoint{}, fmt.Errorf("%w; %s", err, remedy)
	}
	if file.Version > checkpointVersion {
		return checkpoint{}, fmt.Errorf("version %d, newest known is %d; install the newer dra-numa that wrote it, or %s",
			file.Version, checkpointVersion, remedy)
	}
	if sum := checksum(file.State); sum != file.SHA256 {
		return checkpoint{}, fmt.Errorf("checksum %s, recorded is %q; %s", sum, file.SHA256, remedy)
	}
	decoded, err := decodeState(file.State)
	if err != nil {
		return checkpoint{}, fmt.Errorf("%w; %s", err, remedy)
	}
	if again, err := encodeCheckpoint(decoded); err != nil || !bytes.Equal(again, data) {
		return checkpoint{}, fmt.Errorf("not as dra-numa writes it; %s", remedy)
	}
	return decoded, nil
}

func decodeState(data []byte) (checkpoint, error) {
	var decoded checkpoint
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&decoded); err != nil {
		return checkpoint{}, err
	}
	return decoded, decoded.validate()
}

func checksum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
