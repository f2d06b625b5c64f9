package cdi

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"sync/atomic"
	"time"
)

// ReplaceFile gives a file of a directory new content, see [Files.Replace].
func ReplaceFile(dir *os.Root, name string, data []byte, mode fs.FileMode) error {
	files := NewFiles(dir)
	return errors.Join(files.Replace(name, data, mode), files.close())
}

// Files replaces files of one directory and counts how long the disk takes: it
// is most of the time of a claim, and says which node has a slow one.
type Files struct {
	dir    *os.Root
	opened *os.File     // dir itself, to be synced; nil if it cannot be opened
	synced atomic.Int64 // nanoseconds
}

// NewFiles replaces files in dir, which it keeps open.
func NewFiles(dir *os.Root) *Files {
	opened, err := dir.Open(".")
	if err != nil {
		opened = nil // Replace tries again, and has somebody to tell
	}
	return &Files{dir: dir, opened: opened}
}

func (f *Files) close() error {
	if f.opened == nil {
		return nil
	}
	return f.opened.Close()
}

// SyncTime is the time spent in fsync so far, also by calls that it failed.
func (f *Files) SyncTime() time.Duration { return time.Duration(f.synced.Load()) }

// Replace gives a file new content so that a crash or a power failure at any
// point leaves the old content or the new, never a part. A leftover
// "<name>.new" means nothing and is overwritten by the next call. One caller at
// a time per name.
func (f *Files) Replace(name string, data []byte, mode fs.FileMode) error {
	fresh := name + ".new"
	if err := f.writeSynced(fresh, data, mode); err != nil {
		return errors.Join(err, ignoreMissing(f.dir.Remove(fresh)))
	}
	if err := f.dir.Rename(fresh, name); err != nil {
		return errors.Join(err, ignoreMissing(f.dir.Remove(fresh)))
	}
	return f.syncDir(path.Dir(name)) // the rename itself is durable only now
}

func (f *Files) writeSynced(name string, data []byte, mode fs.FileMode) error {
	file, err := f.create(name, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Chmod(mode) // the umask may have taken bits away
	}
	if err == nil {
		err = f.sync(file)
	}
	return errors.Join(err, file.Close())
}

// create makes a file that was not there. A leftover may be a link or have
// another mode: it is not written to.
func (f *Files) create(name string, mode fs.FileMode) (*os.File, error) {
	const flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	file, err := f.dir.OpenFile(name, flags, mode)
	if !errors.Is(err, fs.ErrExist) {
		return file, err
	}
	if err := ignoreMissing(f.dir.Remove(name)); err != nil {
		return nil, err
	}
	return f.dir.OpenFile(name, flags, mode)
}

func (f *Files) syncDir(name string) error {
	if name == "." && f.opened != nil {
		return f.sync(f.opened)
	}
	file, err := f.dir.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.sync(file), file.Close())
}

func (f *Files) sync(file *os.File) error {
	began := time.Now() // monotonic: a clock that jumps does not matter
	err := file.Sync()
	f.synced.Add(int64(time.Since(began)))
	return err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
