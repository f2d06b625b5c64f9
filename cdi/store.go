package cdi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// filePrefix marks the files of this driver in a directory that all CDI
// vendors of the machine share.
const filePrefix = "dra.numa-claim_"

// Store is the directory where the container runtime looks for specs.
type Store struct {
	dir *os.Root
}

// NewStore keeps specs in dir, which other vendors may use too.
func NewStore(dir *os.Root) Store { return Store{dir: dir} }

// Write makes the spec file of a claim what Render says. A file that says so
// already is left alone; it may be called again after a crash at any point.
func (s Store) Write(claim Claim, hookPath string) error {
	spec, err := Render(claim, hookPath)
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		return err
	}
	data = append(data, '\n')
	name := fileName(claim.UID)
	if current, err := s.dir.ReadFile(name); err == nil && bytes.Equal(current, data) {
		return nil
	}
	return ReplaceFile(s.dir, name, data, 0o644)
}

// Remove deletes the spec file of a claim. A claim without one is fine.
func (s Store) Remove(claimUID string) error {
	if problems := validation.IsDNS1123Label(claimUID); len(problems) > 0 {
		return fmt.Errorf("claim uid %q: %s", claimUID, problems[0])
	}
	return s.remove(fileName(claimUID))
}

// RemoveExcept deletes every spec file of this driver, half-written ones
// included, whose claim is not to be kept.
func (s Store) RemoveExcept(keep func(claimUID string) bool) error {
	entries, err := fs.ReadDir(s.dir.FS(), ".")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		uid, ours := strings.CutPrefix(entry.Name(), filePrefix)
		if !ours {
			continue
		}
		uid, complete := strings.CutSuffix(uid, ".json")
		if complete && keep(uid) {
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

func fileName(claimUID string) string { return filePrefix + claimUID + ".json" }
