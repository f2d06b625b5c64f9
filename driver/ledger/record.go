package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/cdi"
)

// Record is what claims hold according to the files. Its entries may contradict each
// other.
type Record struct {
	BootID  string  // from the checkpoint; of this boot if there is no checkpoint
	Lost    bool    // there is no checkpoint
	Begun   bool    // checkpoint or specs are of this boot
	Entries []Entry // each UID once
}

// Entry is one grant and where it was read.
type Entry struct {
	Grant
	FromSpec bool   // the checkpoint does not have it, or has an older one of the claim
	Noted    *Grant // another one that the CDI spec has: the older one, unless an old checkpoint was put back; nil for none
}

// Load reads the checkpoint, and the grants that it lacks from the notes of CDI
// specs. It ignores specs of an earlier boot, because no container of that boot is
// running. Without a checkpoint every spec must be readable, because the specs are the
// only record. If there are no specs either, the driver starts for the first time.
func Load(state *os.Root, specs cdi.Store, bootID string) (Record, error) {
	saved, err := loadCheckpoint(state)
	lost := errors.Is(err, fs.ErrNotExist)
	if err != nil && !lost {
		return Record{}, err
	}
	loaded := Record{BootID: saved.BootID, Lost: lost, Begun: saved.BootID == bootID}
	if lost {
		loaded.BootID = bootID
	}
	for _, grant := range saved.Grants {
		if loaded.BootID != bootID {
			grant = grant.AfterBoot()
		}
		loaded.Entries = append(loaded.Entries, Entry{Grant: grant})
	}
	notes, err := specs.Notes()
	if err != nil {
		return Record{}, err
	}
	for _, note := range notes {
		grant, current, err := decodeNote(note, bootID)
		if err != nil && lost {
			return Record{}, fmt.Errorf("%s, and the checkpoint is missing: %w", note.Path, err)
		}
		if err == nil && current {
			loaded.Begun = true
			loaded.addNoted(grant, bootID)
		}
	}
	return loaded, nil
}

// addNoted adds a grant from a CDI spec of this boot. The spec is written after the checkpoint.
// So if the checkpoint is of another boot, or if the grant in the spec is younger, an old
// checkpoint was put back. Otherwise that is unknown: an order is given again after grants end.
func (l *Record) addNoted(noted Grant, bootID string) {
	switch i := slices.IndexFunc(l.Entries, func(e Entry) bool { return e.UID == noted.UID }); {
	case i < 0:
		l.Entries = append(l.Entries, Entry{Grant: noted, FromSpec: true})
	case l.BootID != bootID || l.Entries[i].Order < noted.Order:
		l.Entries[i] = Entry{Grant: noted, FromSpec: true}
	case !l.Entries[i].holdsAs(noted):
		l.Entries[i].Noted = &noted
	}
}

// holdsAs reports whether both are the same grant, of which details may have changed.
func (g *Grant) holdsAs(other Grant) bool {
	return g.Order == other.Order && slices.EqualFunc(g.Shares, other.Shares, func(a, b Share) bool {
		return a.Request == b.Request && a.Device == b.Device && a.ShareID == b.ShareID && a.CPUs() == b.CPUs()
	})
}

// EncodeNote returns what the CDI spec of a claim says of its grant: a checkpoint with
// this grant only. CDI specs are in a tmpfs, so a reboot removes them together with the
// containers. If the checkpoint is deleted, they are still there.
func EncodeNote(bootID string, grant *Listed) string {
	next := NewCheckpoint(bootID)
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
