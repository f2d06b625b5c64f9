// Package keeperfile has the files in which the keeper, which has no network, tells the daemon
// that it works, and which policies the kubelet's managers have. It decides nothing.
package keeperfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
)

const (
	// BeatName is the name of the file in the directory that keeper and daemon share. It is in
	// memory: a heartbeat must not wake a disk.
	BeatName = "keeper.json"
	// BeatPeriod is how often the keeper writes it at least, if it is not stuck.
	BeatPeriod = 10 * time.Second
	// beatLasts is how old a heartbeat may be. A keeper that repairs may wait for the host's
	// lock while a hook is at work.
	beatLasts = 45 * time.Second

	// beatBytes bounds how much is read.
	beatBytes = 64 << 10
)

// Beat is one heartbeat. The counts are since the keeper started.
type Beat struct {
	At         time.Time         `json:"at"`
	Repairs    map[string]uint64 `json:"repairs,omitempty"` // of cgroups, by what was wrong
	Releases   uint64            `json:"releases"`          // of cgroups whose processes had ended
	Unrepaired int               `json:"unrepaired"`        // cgroups that the last look found wrong, and that could not be repaired
}

// Encode returns the content of the file.
func (b Beat) Encode() []byte {
	text, _ := json.Marshal(b) // numbers, strings and a time of this century: no error
	return append(text, '\n')
}

// ReadBeat returns the last heartbeat.
func ReadBeat(dir fs.FS) (b Beat, err error) {
	file, err := dir.Open(BeatName)
	if err != nil {
		return Beat{}, err
	}
	defer func() { _ = file.Close() }() // opened for reading
	text, err := io.ReadAll(io.LimitReader(file, beatBytes))
	if err == nil {
		err = json.Unmarshal(text, &b)
	}
	if err != nil {
		return Beat{}, fmt.Errorf("read %s: %w", BeatName, err)
	}
	return b, nil
}

// Silent says why the keeper seems not to work, from what ReadBeat returned; "" if it works. A
// clock that was set back makes no heartbeat old.
func Silent(b Beat, err error, now time.Time) string {
	switch age := now.Sub(b.At); {
	case errors.Is(err, fs.ErrNotExist):
		return "the keeper has not looked at the cgroups of claims yet"
	case err != nil:
		return "the keeper's heartbeat cannot be read: " + err.Error()
	case age > beatLasts:
		return fmt.Sprintf("the keeper has not looked at the cgroups of claims for %s", age.Round(time.Second))
	}
	return ""
}
