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

// onRecord is what claims hold according to the files. Its entries may contradict each
// other.
type onRecord struct {
	bootID  string  // from the checkpoint; of this boot if there is no checkpoint
	lost    bool    // there is no checkpoint
	begun   bool    // checkpoint or specs are of this boot
	entries []entry // each UID once
}

// entry is one grant and where it was read.
type entry struct {
	Grant
	fromSpec bool // the checkpoint does not have it, or has an older one of the claim
}

// loadRecord reads the checkpoint, and the grants that it lacks from the notes of CDI
// specs. It ignores specs of an earlier boot, because no container of that boot is
// running. Without a checkpoint every spec must be readable, because the specs are the
// only record. If there are no specs either, the driver starts for the first time.
func loadRecord(state *os.Root, specs cdi.Store, bootID string) (onRecord, error) {
	saved, err := loadCheckpoint(state)
	lost := errors.Is(err, fs.ErrNotExist)
	if err != nil && !lost {
		return onRecord{}, err
	}
	loaded := onRecord{bootID: saved.BootID, lost: lost, begun: saved.BootID == bootID}
	if lost {
		loaded.bootID = bootID
	}
	for _, grant := range saved.Grants {
		if loaded.bootID != bootID {
			grant = grant.untuned().withoutNodes() // nothing of another boot is restored
		}
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
			loaded.begun = true
			loaded.addNoted(grant)
		}
	}
	return loaded, nil
}

// addNoted adds a grant from a CDI spec. The spec is written after the checkpoint. So
// if the grant in the spec is younger, an old checkpoint was put back.
func (l *onRecord) addNoted(noted Grant) {
	i := slices.IndexFunc(l.entries, func(e entry) bool { return e.UID == noted.UID })
	if i < 0 {
		l.entries = append(l.entries, entry{noted, true})
	} else if l.entries[i].Order < noted.Order {
		l.entries[i] = entry{noted, true}
	}
}

// encodeNote returns what the CDI spec of a claim says of its grant: a checkpoint with
// this grant only. CDI specs are in a tmpfs, so a reboot removes them together with the
// containers. If the checkpoint is deleted, they are still there.
func encodeNote(bootID string, grant *listedGrant) string {
	next := newCheckpoint(bootID)
	text := appendCheckpoint(make([]byte, 0, len(grant.text)+256), &next, slices.Values([]string{grant.text}))
	return string(bytes.TrimSuffix(text, []byte("\n")))
}

// decodeNote reads what encodeNote wrote; current says whether it was written in this
// boot.
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
