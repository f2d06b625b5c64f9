package cdi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/dra-driver-numa/dra-driver-numa/deviceclasses"
	"github.com/dra-driver-numa/dra-driver-numa/internal/durable"
	"github.com/dra-driver-numa/dra-driver-numa/internal/histogram"
)

// filePrefix marks the files of this driver in a directory that all CDI
// vendors of the machine share.
const filePrefix = deviceclasses.DriverName + "-claim_"

// ClaimSpecs is the pattern of the names of the spec files of claims.
const ClaimSpecs = filePrefix + "*.json"

// Store is the directory where the container runtime looks for specs.
type Store struct {
	dir   *os.Root
	files *durable.Files // in dir
}

// NewStore returns a Store that keeps specs in dir, which other vendors may use too.
func NewStore(dir *os.Root) Store { return Store{dir: dir, files: durable.NewFiles(dir)} }

// SyncTime is the time spent in fsync so far.
func (s Store) SyncTime() time.Duration { return s.files.SyncTime() }

// Syncs says how long each fsync took so far.
func (s Store) Syncs() histogram.Distribution { return s.files.Syncs() }

// WrittenBytes is how much was written to specs so far.
func (s Store) WrittenBytes() uint64 { return s.files.Bytes() }

// ClaimUIDs returns the UIDs of the claims that have a spec file, ascending by file name.
// It does not read the files.
func (s Store) ClaimUIDs() ([]string, error) { return claimUIDs(s.dir.FS()) }

// Encode returns the content of a claim's spec file: the spec of [Render], as JSON.
func Encode(claim Claim, hook Hook) ([]byte, error) {
	spec, err := Render(claim, hook)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(spec)
	return append(text, '\n'), err
}

// Write makes text, which [Encode] returned, the content of a claim's spec file. It may
// be called again after a crash at any point.
func (s Store) Write(claimUID string, text []byte) error {
	return s.files.Replace(fileName(claimUID), text, 0o644)
}

// Ensure does what Write does, but leaves a file alone that already has this content.
func (s Store) Ensure(claimUID string, text []byte) error {
	if current, err := s.dir.ReadFile(fileName(claimUID)); err == nil && bytes.Equal(current, text) {
		return nil
	}
	return s.Write(claimUID, text)
}

// Note is the part of a spec file of this driver that runtimes ignore.
type Note struct {
	ClaimUID string // from the name of the file
	Path     string // of the spec file, for messages
	Text     string // Claim.Note; empty if the file has none or is not a spec
}

// Notes reads the note of every spec of this driver, ascending by file name.
func (s Store) Notes() ([]Note, error) {
	uids, err := claimUIDs(s.dir.FS())
	if err != nil {
		return nil, err
	}
	var notes []Note
	for _, uid := range uids {
		name := fileName(uid)
		data, err := s.dir.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var spec struct {
			Annotations map[string]string `json:"annotations"`
		}
		if json.Unmarshal(data, &spec) != nil {
			spec.Annotations = nil
		}
		notes = append(notes, Note{
			ClaimUID: uid, Path: filepath.Join(s.dir.Name(), name), Text: spec.Annotations[noteKey],
		})
	}
	return notes, nil
}

// Remove deletes the spec file of a claim, if there is one.
func (s Store) Remove(claimUID string) error {
	if problems := validation.IsDNS1123Label(claimUID); len(problems) > 0 {
		return fmt.Errorf("claim uid %q: %s", claimUID, problems[0])
	}
	return s.remove(fileName(claimUID))
}

// RemoveExcept deletes the spec files of this driver, except those of claims for which
// keep returns true. It always deletes half-written files.
func (s Store) RemoveExcept(keep func(claimUID string) bool) error {
	entries, err := fs.ReadDir(s.dir.FS(), ".")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		uid, complete := claimUID(entry.Name())
		if complete && keep(uid) || !strings.HasPrefix(entry.Name(), filePrefix) {
			continue
		}
		if err := s.remove(entry.Name()); err != nil {
			return err
		}
	}
	return nil
}

func (s Store) remove(name string) error {
	if err := s.dir.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// IsOurs reports whether a file of a directory of CDI specs is one of this driver.
func IsOurs(fileName string) bool { return strings.HasPrefix(fileName, filePrefix) }

func fileName(claimUID string) string { return filePrefix + claimUID + ".json" }

// claimUIDs lists the claims that have a spec file in the directory, ascending by file
// name.
func claimUIDs(dir fs.FS) (uids []string, err error) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if uid, complete := claimUID(entry.Name()); complete {
			uids = append(uids, uid)
		}
	}
	return uids, nil
}

// claimUID is the inverse of fileName. ok is false for files of other vendors and for
// half-written files.
func claimUID(fileName string) (uid string, ok bool) {
	rest, ours := strings.CutPrefix(fileName, filePrefix)
	uid, complete := strings.CutSuffix(rest, ".json")
	return uid, ours && complete
}
