//go:build !windows

// Package kernelfs reads files of the kernel, such as those of sysfs and cgroup v2, and waits
// until they are to be read again, and wakes no other thread meanwhile: that costs more than
// reading a file.
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

// dirFS is what [os.DirFS] returns.
type dirFS interface {
	fs.StatFS
	fs.ReadFileFS
	fs.ReadDirFS
	fs.ReadLinkFS
}

type tree struct {
	dirFS
	dir string
}

// Dir returns the files below a directory, as [os.DirFS] does. Its open files are of type
// [*os.File]. When package os opens a file of the kernel, the Go runtime waits for events of
// it (epoll), and the kernel reports one at once, which wakes other threads. These files are
// opened without waiting for events.
func Dir(dir string) fs.FS {
	return tree{os.DirFS(dir).(dirFS), dir}
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
