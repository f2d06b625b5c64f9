package pin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// Host has the directories that a pin reads and writes, and the boot id.
type Host struct {
	Cgroups *os.Root // the cgroup v2 mount
	Records *os.Root // the directory of the records
	Boot    string   // the id of the current boot: records of other boots are dead

	// Workqueues is [WorkqueuesDir] of the host. If it is nil, isolated partitions change the
	// kernel's workqueues, which can stop some kernels.
	Workqueues *os.Root
	// Releaser is what [FindReleaser] returns. If it is nil, only a pause follows each change of
	// the kernel's workqueues.
	Releaser fs.FS
	// System is devices/system below the mount of sysfs. What it does not say counts as online,
	// and as not isolated at boot.
	System fs.FS

	// planned, if it is not nil, gets all writes that are planned.
	planned *Plan
	// around is for tests. It wraps every effect, and the verification after them:
	// a test can die there, or put a fake kernel in place.
	around func(w Write, effect func() error) error
}

// recordBytes is the size of the largest valid record. One claim takes about 150 bytes.
const recordBytes = 1 << 20

// loadRecords returns the records of a directory in the order of their file names, and
// what is wrong with files that are not valid records. A missing directory has no
// records. loadRecords skips files that killed writers left.
func loadRecords(records fs.FS) (list []record, faults []error, err error) {
	entries, err := fs.ReadDir(records, ".")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list records: %w", err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), recordSuffix) {
			continue
		}
		r, err := loadRecord(records, entry)
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile
		case err != nil:
			faults = append(faults, fmt.Errorf("read record %q: %w", entry.Name(), err))
		default:
			list = append(list, r)
		}
	}
	return list, faults, nil
}

func loadRecord(records fs.FS, entry fs.DirEntry) (record, error) {
	if !entry.Type().IsRegular() {
		return record{}, fmt.Errorf("not a regular file (%s)", entry.Type())
	}
	data, err := readRecord(records, entry.Name())
	if err != nil {
		return record{}, err
	}
	if len(data) > recordBytes {
		return record{}, fmt.Errorf("more than %d bytes", recordBytes)
	}
	r, err := parseRecord(data)
	if err == nil && r.file() != entry.Name() {
		err = fmt.Errorf("it belongs to cgroup %q", r.Cgroup)
	}
	return r, err
}

// readRecord returns no more than one byte too many.
func readRecord(records fs.FS, name string) ([]byte, error) {
	file, err := records.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // opened for reading
	return io.ReadAll(io.LimitReader(file, recordBytes+1))
}

// outline is what can be read of a record that another build has written.
type outline struct {
	Boot   string     `json:"boot"`
	Cgroup string     `json:"cgroup"`
	Claims []ClaimRef `json:"claims"`
}

// readOutline returns nothing for a file that was removed meanwhile, or is no JSON.
func readOutline(records fs.FS, entry fs.DirEntry) (o outline, err error) {
	if !entry.Type().IsRegular() {
		return outline{}, nil
	}
	data, err := readRecord(records, entry.Name())
	if errors.Is(err, fs.ErrNotExist) {
		return outline{}, nil
	}
	if err != nil || json.Unmarshal(data, &o) != nil {
		return outline{}, err
	}
	return o, nil
}

// save writes a record so that a reader sees either the old one or the new one. A record
// need not outlive the boot, so it is not synced to disk. Callers hold the host's lock.
func (h Host) save(r record) error {
	data, err := r.render()
	if err == nil {
		err = h.step(r.file(), string(data), func() error { return Replace(h.Records, r.file(), data) })
	}
	if err != nil {
		return fmt.Errorf("write record of cgroup %s: %w", r.Cgroup, err)
	}
	return nil
}

// Replace replaces the content of a file in dir, so that a reader sees either the old
// content or the new one, also while several processes replace the file. It does not sync
// the file to disk: use it for what need not outlive the boot.
func Replace(dir *os.Root, name string, data []byte) error {
	fresh := strings.TrimSuffix(name, recordSuffix) + ".new"
	file, err := openFresh(dir, fresh)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // after the rename: until then, other writers wait
	_, err = file.Write(data)
	// The daemon reads the file as another user, so the hook's umask must not apply.
	if err := errors.Join(err, file.Chmod(0o644)); err != nil {
		return errors.Join(err, dir.Remove(fresh))
	}
	return dir.Rename(fresh, name)
}

// forget removes a record, if it exists.
func (h Host) forget(r record) error {
	err := h.step(r.file(), "", func() error { return h.Records.Remove(r.file()) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove record of cgroup %s: %w", r.Cgroup, err)
	}
	return nil
}

func (h Host) step(file, value string, effect func() error) error {
	if h.around == nil {
		return effect()
	}
	return h.around(Write{file, value}, effect)
}

// split separates live records from dead ones. A record is dead if it is from another
// boot, or if its cgroup is gone or has no process. A container has a process while its
// hook runs. A cgroup that has lost all processes belongs to no container any more. One that
// cannot be read is live, and among the faults.
func split(cgroups fs.FS, boot string, list []record) (live, dead []record, faults []error) {
	for _, r := range list {
		populated := false
		if r.Boot == boot {
			var err error
			if populated, err = isPopulated(cgroups, r.Cgroup); err != nil {
				faults = append(faults, err)
			}
		}
		if populated {
			live = append(live, r)
		} else {
			dead = append(dead, r)
		}
	}
	return live, dead, faults
}

// isPopulated reports whether the cgroup or one of its descendants has a process. If it cannot
// tell, one may have.
func isPopulated(cgroups fs.FS, cgroup string) (bool, error) {
	text, err := fs.ReadFile(cgroups, cgroup+"/cgroup.events")
	if isGone(err) {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	return strings.HasPrefix(string(text), "populated 1\n") || strings.Contains(string(text), "\npopulated 1\n"), nil
}
