package pin

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

const watchMask = syscall.IN_MODIFY | syscall.IN_MOVED_TO | syscall.IN_DELETE | syscall.IN_CREATE

// watch reports changes of files and directories with inotify. The kernel reports its
// own changes of cpuset.cpus.partition and cgroup.events in the same way. If the kernel
// has no watch to spare, complete is false and the caller must poll.
type watch struct {
	complete bool // every followed path is watched
	fd       int
	file     *os.File       // of fd; nil if inotify is not available
	ids      map[string]int // watch descriptors by path
}

func newWatch() (watch, error) {
	fd, err := syscall.InotifyInit1(syscall.IN_NONBLOCK | syscall.IN_CLOEXEC)
	if err != nil {
		return watch{}, fmt.Errorf("inotify is not available, polling instead: %w", err)
	}
	// The Go runtime's poller accepts a non-blocking file, so that reads can have a
	// deadline. File.Fd would make the file block again.
	return watch{complete: true, fd: fd, file: os.NewFile(uintptr(fd), "inotify"), ids: make(map[string]int)}, nil
}

func (w *watch) close() {
	if w.file != nil {
		w.file.Close()
	}
}

// add follows one more path. A path that is gone needs no watch.
func (w *watch) add(path string) {
	if _, found := w.ids[path]; found || w.file == nil {
		return
	}
	id, err := syscall.InotifyAddWatch(w.fd, path, watchMask)
	switch {
	case err == nil:
		w.ids[path] = id
	case !errors.Is(err, syscall.ENOENT):
		w.complete = false
	}
}

// follow follows these paths and no others.
func (w *watch) follow(paths []string) {
	if w.file == nil {
		return
	}
	w.complete = true
	keep := make(map[string]bool, len(paths))
	for _, path := range paths {
		keep[path] = true
		w.add(path)
	}
	for path, id := range w.ids {
		if !keep[path] {
			// EINVAL: the kernel removed the watch with the file.
			_, _ = syscall.InotifyRmWatch(w.fd, uint32(id))
			delete(w.ids, path)
		}
	}
}

// wait returns true when something has changed, and false after d.
func (w *watch) wait(d time.Duration) bool {
	if w.file == nil {
		time.Sleep(d)
		return false
	}
	if err := w.file.SetReadDeadline(time.Now().Add(d)); err != nil {
		time.Sleep(d)
		return false
	}
	buf := make([]byte, 4096)
	n, err := w.file.Read(buf)
	w.drop(buf[:max(n, 0)])
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		time.Sleep(d)
	}
	return n > 0
}

// drop forgets the watches that the kernel removed: a new cgroup may get the same name.
func (w *watch) drop(events []byte) {
	for len(events) >= syscall.SizeofInotifyEvent {
		id, mask := int32(binary.NativeEndian.Uint32(events)), binary.NativeEndian.Uint32(events[4:])
		size := syscall.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(events[12:]))
		events = events[min(size, len(events)):]
		if mask&syscall.IN_IGNORED == 0 {
			continue
		}
		for path, known := range w.ids {
			if known == int(id) {
				delete(w.ids, path)
			}
		}
	}
}
