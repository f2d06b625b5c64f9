//go:build !windows

// Package kernelfs reads files of the kernel, such as those of sysfs and cgroup v2. When
// package os opens such a file, the Go runtime waits for events of it (epoll), and the
// kernel reports one at once. That wakes other threads, which costs more than reading the
// file. This package opens files without waiting for events.
package kernelfs

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"syscall"
)

// firstBytes is enough for most of these files. Larger ones are read into a buffer that
// grows.
const firstBytes = 256

// files is what [os.DirFS] returns.
type files interface {
	fs.StatFS
	fs.ReadFileFS
	fs.ReadDirFS
	fs.ReadLinkFS
}

type tree struct {
	files
	dir string
}

// Dir returns the files below a directory, as [os.DirFS] does. Its open files are of type
// [*os.File].
func Dir(dir string) fs.FS {
	return tree{os.DirFS(dir).(files), dir}
}

func (t tree) Open(name string) (fs.File, error) {
	fd, err := t.open(name)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path.Join(t.dir, name)), nil
}

func (t tree) ReadFile(name string) ([]byte, error) {
	fd, err := t.open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = syscall.Close(fd) }() // opened for reading
	content := make([]byte, 0, firstBytes)
	for {
		if len(content) == cap(content) {
			content = append(content, 0)[:len(content)]
		}
		n, err := again(func() (int, error) { return syscall.Read(fd, content[len(content):cap(content)]) })
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: name, Err: err}
		}
		if n == 0 {
			return content, nil
		}
		content = content[:len(content)+n]
	}
}

func (t tree) open(name string) (fd int, err error) {
	if !fs.ValidPath(name) {
		return 0, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	fd, err = again(func() (int, error) {
		return syscall.Open(path.Join(t.dir, name), syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	})
	if err != nil {
		return 0, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return fd, nil
}

// again repeats a system call that a signal has interrupted.
func again(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}
