// Package durable replaces files so that a crash or a power failure leaves the old
// content or the new content, never a part of either. It knows nothing about the content.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/internal/histogram"
)

// Replace replaces the content of a file in a directory; see [Files.Replace].
func Replace(dir *os.Root, name string, data []byte, mode fs.FileMode) error {
	files := NewFiles(dir)
	return errors.Join(files.Replace(name, data, mode), files.close())
}

// Files replaces files in one directory. It also measures the time that the disk takes.
// This is most of the time to prepare a claim, and shows which node has a slow disk.
type Files struct {
	dir    *os.Root
	opened *os.File // dir itself; nil if it could not be opened
	syncs  histogram.Durations
	bytes  atomic.Uint64
}

// NewFiles returns a Files for dir. It keeps dir open.
func NewFiles(dir *os.Root) *Files {
	opened, err := dir.Open(".")
	if err != nil {
		opened = nil // Replace tries again, and can return the error
	}
	return &Files{dir: dir, opened: opened}
}

func (f *Files) close() error {
	if f.opened == nil {
		return nil
	}
	return f.opened.Close()
}

// SyncTime returns the time spent in fsync so far, including calls that failed.
func (f *Files) SyncTime() time.Duration { return f.syncs.Sum() }

// Syncs returns how long each fsync took so far, including those that failed.
func (f *Files) Syncs() histogram.Distribution { return f.syncs.Read() }

// Bytes returns how much was written to files so far.
func (f *Files) Bytes() uint64 { return f.bytes.Load() }

// Replace replaces the content of a file. A crash or a power failure at any point
// leaves the old content or the new content, never a part of either. A leftover
// "<name>.new" means nothing, and the next call replaces it. name is a file name in
// this directory, without a slash. Only one caller at a time may replace a file.
func (f *Files) Replace(name string, data []byte, mode fs.FileMode) error {
	if f.opened == nil {
		opened, err := f.dir.Open(".")
		if err != nil {
			return err
		}
		f.opened = opened
	}
	fresh := Unfinished(name)
	if err := f.writeSynced(fresh, data, mode); err != nil {
		return errors.Join(err, ignoreMissing(f.dir.Remove(fresh)))
	}
	if err := f.rename(fresh, name); err != nil {
		return errors.Join(err, ignoreMissing(f.dir.Remove(fresh)))
	}
	return f.sync(f.opened) // the rename itself is durable only now
}

func (f *Files) writeSynced(name string, data []byte, mode fs.FileMode) error {
	file, err := f.create(name, mode)
	if err != nil {
		return err
	}
	written, err := file.Write(data)
	f.bytes.Add(uint64(written))
	if err == nil {
		err = file.Chmod(mode) // the umask may have taken bits away
	}
	if err == nil {
		err = f.sync(file)
	}
	return errors.Join(err, file.Close())
}

// create makes a new file. It removes a leftover and does not write to it, because a
// leftover may be a link or have another mode.
func (f *Files) create(name string, mode fs.FileMode) (*os.File, error) {
	file, err := f.createNew(name, mode)
	if !errors.Is(err, fs.ErrExist) {
		return file, err
	}
	if err := ignoreMissing(f.dir.Remove(name)); err != nil {
		return nil, err
	}
	return f.createNew(name, mode)
}

func (f *Files) sync(file *os.File) error {
	began := time.Now() // monotonic: a clock that jumps does not matter
	err := file.Sync()
	f.syncs.Add(time.Since(began))
	return err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Unfinished returns the name of the file that a Replace of name leaves if it is killed.
func Unfinished(name string) string { return name + ".new" }
