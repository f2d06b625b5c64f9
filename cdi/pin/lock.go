package pin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockWait is far longer than any pin takes, and shorter than the two minutes
// that the kubelet waits for a container to be created.
const lockWait = time.Minute

// Lock takes the host's lock on cpuset partitions. It is a file: every caller of [Pin]
// and [Probe] on the host must use the same name. Lock makes the file and its directory.
// It waits without polling, because many polling hooks would starve the one that holds
// the lock. The kernel releases the lock when the process ends, however it ends.
func Lock(name string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	locked := make(chan struct{})
	var answer error
	go func() {
		defer close(locked)
		answer = flock(int(file.Fd()))
	}()
	select {
	case <-locked:
	case <-time.After(lockWait):
		go func() { <-locked; file.Close() }() // a keeper runs on, and must not hold the lock forever
		return nil, fmt.Errorf("lock %s: another numa-pin has held it for %s", name, lockWait)
	}
	if answer != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", name, answer)
	}
	return func() { file.Close() }, nil
}

func flock(fd int) error {
	for {
		err := syscall.Flock(fd, syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
