package pin

import (
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"

	"github.com/dra-driver-numa/dra-driver-numa/internal/kernelfs"
)

// What is reported of a directory is entries that come and go, and not what is written to
// its files: some files of a cgroup change all the time.
const (
	dirMask  = syscall.IN_MOVED_TO | syscall.IN_DELETE | syscall.IN_CREATE
	fileMask = syscall.IN_MODIFY
)

// watch reports changes of files and directories with inotify. The kernel reports its
// own changes of cpuset.cpus.partition and cgroup.events in the same way. If the kernel
// has no watch to spare, complete is false and the caller must poll.
type watch struct {
	complete  bool // every followed path is watched
	available bool // inotify is
	fd        int
	ids       map[string]int // watch descriptors by path
}

func newWatch() (watch, error) {
	fd, err := syscall.InotifyInit1(syscall.IN_NONBLOCK | syscall.IN_CLOEXEC)
	if err != nil {
		return watch{}, fmt.Errorf("inotify is not available, polling instead: %w", err)
	}
	return watch{complete: true, available: true, fd: fd, ids: make(map[string]int)}, nil
}

func (w *watch) close() {
	if w.available {
		_ = syscall.Close(w.fd)
		w.available = false
	}
}

// files are those that can be read when something has changed.
func (w *watch) files() []int {
	if !w.available {
		return nil
	}
	return []int{w.fd}
}

// add follows one more path. A path that is gone needs no watch.
func (w *watch) add(path string, mask uint32) (added bool) {
	if _, found := w.ids[path]; found || !w.available {
		return false
	}
	id, err := syscall.InotifyAddWatch(w.fd, path, mask)
	switch {
	case err == nil:
		w.ids[path] = id
	case !errors.Is(err, syscall.ENOENT):
		w.complete = false
	}
	return err == nil
}

// follow follows these paths and no others. Added is true if it did not follow all of
// them before.
func (w *watch) follow(dirs, files []string) (added bool) {
	if !w.available {
		return false
	}
	w.complete = true
	keep := make(map[string]bool, len(dirs)+len(files))
	for _, dir := range dirs {
		keep[dir] = true
		added = w.add(dir, dirMask) || added
	}
	for _, file := range files {
		keep[file] = true
		added = w.add(file, fileMask) || added
	}
	for path, id := range w.ids {
		if !keep[path] {
			// EINVAL: the kernel removed the watch with the file.
			_, _ = syscall.InotifyRmWatch(w.fd, uint32(id))
			delete(w.ids, path)
		}
	}
	return added
}

// poll reports whether something has changed, and does not wait.
func (w *watch) poll() (changed bool) {
	if !w.available {
		return true
	}
	for buf := make([]byte, 4096); ; {
		n, err := kernelfs.Read(w.fd, buf)
		if n <= 0 || err != nil {
			return changed // EAGAIN
		}
		w.drop(buf[:n])
		changed = true
	}
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
