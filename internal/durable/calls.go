//go:build !windows

package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// The functions below do what os.Root does, with half the system calls. System calls
// are most of the time to prepare a claim. This is as safe as os.Root: a name without a
// slash leads to no other directory, and O_EXCL and rename(2) follow no link.

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

// inDir makes a system call with the directory. It repeats the call while a signal
// interrupts it.
func (f *Files) inDir(call, name string, do func(dir int) error) error {
	if name == "" || strings.ContainsRune(name, '/') {
		return &fs.PathError{Op: call, Path: name, Err: errors.New("want a file name without a slash")}
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
