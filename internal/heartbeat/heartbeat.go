// Package heartbeat carries from the keeper to the daemon that the keeper works, and what it
// has repaired. The keeper has no network, so it writes a file, in a directory of the pod
// that is in memory: a heartbeat must not wake a disk. The package decides nothing.
package heartbeat

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
)

const (
	// File is the name of the file in the directory that keeper and daemon share.
	File = "keeper.json"
	// Period is how often the keeper writes it at least, if it is not stuck.
	Period = 10 * time.Second
	// Lasts is how old a heartbeat may be. A keeper that repairs may wait for the host's
	// lock while a hook is at work.
	Lasts = 45 * time.Second

	// fileBytes bounds how much is read.
	fileBytes = 64 << 10
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

// Read returns the last heartbeat.
func Read(dir fs.FS) (b Beat, err error) {
	file, err := dir.Open(File)
	if err != nil {
		return Beat{}, err
	}
	defer func() { _ = file.Close() }() // opened for reading
	text, err := io.ReadAll(io.LimitReader(file, fileBytes))
	if err == nil {
		err = json.Unmarshal(text, &b)
	}
	if err != nil {
		return Beat{}, fmt.Errorf("read %s: %w", File, err)
	}
	return b, nil
}

// Silent says why the keeper seems not to work, from what Read returned; "" if it works. A
// clock that was set back makes no heartbeat old.
func Silent(b Beat, err error, now time.Time) string {
	switch age := now.Sub(b.At); {
	case errors.Is(err, fs.ErrNotExist):
		return "the keeper has not looked at the cgroups of claims yet"
	case err != nil:
		return "the keeper's heartbeat cannot be read: " + err.Error()
	case age > Lasts:
		return fmt.Sprintf("the keeper has not looked at the cgroups of claims for %s", age.Round(time.Second))
	}
	return ""
}
