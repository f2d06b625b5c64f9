// Package durable replaces files so that a crash or a power failure leaves the old
// content or the new, never a part of either. It knows nothing of what is in them.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Replace gives a file of a directory new content, see [Files.Replace].
func Replace(dir *os.Root, name string, data []byte, mode fs.FileMode) error {
	files := NewFiles(dir)
	return errors.Join(files.Replace(name, data, mode), files.close())
}

// Files replaces files of one directory and counts how long the disk takes: it
// is most of the time of a claim, and says which node has a slow one.
type Files struct {
	dir    *os.Root
	opened *os.File     // dir itself; nil if it could not be opened
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
// "<name>.new" means nothing and is overwritten by the next call. The name is one
// of this directory, without a slash. One caller at a time per name.
func (f *Files) Replace(name string, data []byte, mode fs.FileMode) error {
	if f.opened == nil {
		opened, err := f.dir.Open(".")
		if err != nil {
			return err
		}
		f.opened = opened
	}
	fresh := name + ".new"
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
	file, err := f.createNew(name, mode)
	if !errors.Is(err, fs.ErrExist) {
		return file, err
	}
	if err := ignoreMissing(f.dir.Remove(name)); err != nil {
		return nil, err
	}
	return f.createNew(name, mode)
}

// What follows does what os.Root does with half the system calls: they are most
// of the time of a claim. A name without a slash leads to no other directory, and
// O_EXCL and rename(2) follow no link.

func (f *Files) createNew(name string, mode fs.FileMode) (*os.File, error) {
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_CLOEXEC
	var fd int
	err := f.inDir("openat", name, func(dir int) (err error) {
		fd, err = unix.Openat(dir, name, flags, uint32(mode.Perm()))
		return err
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), filepath.Join(f.dir.Name(), name)), nil
}

func (f *Files) rename(from, to string) error {
	return f.inDir("renameat", to, func(dir int) error { return unix.Renameat(dir, from, dir, to) })
}

// inDir makes a system call with the directory until no signal interrupts it.
func (f *Files) inDir(call, name string, do func(dir int) error) error {
	if name == "" || strings.ContainsRune(name, '/') {
		return &fs.PathError{Op: call, Path: name, Err: errors.New("no name of a file in one directory")}
	}
	err := do(int(f.opened.Fd()))
	for errors.Is(err, unix.EINTR) {
		err = do(int(f.opened.Fd()))
	}
	if err != nil {
		return &fs.PathError{Op: call, Path: filepath.Join(f.dir.Name(), name), Err: err}
	}
	return nil
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
