package driver

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
)

// onRecord is what the files say that claims hold. Its entries may contradict each
// other.
type onRecord struct {
	bootID  string  // of the checkpoint, of this boot if there is none
	entries []entry // each UID once
}

// entry is one grant and where it was read.
type entry struct {
	Grant
	fromSpec bool // the checkpoint does not have it
}

// loadRecord reads the checkpoint, and from the notes of CDI specs what it does
// not have. Specs of an earlier boot say nothing: no container runs by them.
// Without a checkpoint every spec must be readable, for what it says is all
// there is; without specs, too, it is a first start.
func loadRecord(state *os.Root, specs cdi.Store, bootID string) (onRecord, error) {
	saved, err := loadCheckpoint(state)
	lost := errors.Is(err, fs.ErrNotExist)
	if err != nil && !lost {
		return onRecord{}, err
	}
	loaded := onRecord{bootID: saved.BootID}
	if lost {
		loaded.bootID = bootID
	}
	for _, grant := range saved.Grants {
		loaded.entries = append(loaded.entries, entry{Grant: grant})
	}
	notes, err := specs.Notes()
	if err != nil {
		return onRecord{}, err
	}
	for _, note := range notes {
		grant, current, err := decodeNote(note, bootID)
		if err != nil && lost {
			return onRecord{}, fmt.Errorf("%s, and the checkpoint is missing: %w", note.Path, err)
		}
		if err == nil && current {
			loaded.addNoted(grant)
		}
	}
	return loaded, nil
}

// addNoted adds a grant that a spec has. It is written after the checkpoint, so
// if it is the younger one, an old checkpoint was put back.
func (l *onRecord) addNoted(noted Grant) {
	i := slices.IndexFunc(l.entries, func(e entry) bool { return e.UID == noted.UID })
	if i < 0 {
		l.entries = append(l.entries, entry{noted, true})
	} else if l.entries[i].Order < noted.Order {
		l.entries[i] = entry{noted, true}
	}
}

// encodeNote is what the CDI spec of a claim says of its grant: a checkpoint of
// just this one. CDI specs are in a tmpfs, so they are lost when the containers
// are, and not when somebody deletes the checkpoint.
func encodeNote(bootID string, grant *listedGrant) string {
	text := appendCheckpoint(make([]byte, 0, len(grant.text)+256), grant.version, bootID, slices.Values([]string{grant.text}))
	return string(bytes.TrimSuffix(text, []byte("\n")))
}

// decodeNote reads what encodeNote wrote; current says that it was in this boot.
func decodeNote(note cdi.Note, bootID string) (grant Grant, current bool, err error) {
	if note.Text == "" {
		return Grant{}, false, damaged(errors.New("the CDI spec has no grant"))
	}
	noted, err := DecodeCheckpoint([]byte(note.Text + "\n"))
	if err != nil {
		return Grant{}, false, err
	}
	if len(noted.Grants) != 1 || string(noted.Grants[0].UID) != note.ClaimUID {
		return Grant{}, false, damaged(errors.New("the CDI spec has the grant of another claim"))
	}
	return noted.Grants[0], noted.BootID == bootID, nil
}
