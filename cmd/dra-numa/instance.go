package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// instanceFile is the file that the daemon of the node locks. It is in the plugin
// directory, which all daemons of a node share.
const instanceFile = "instance.lock"

// lockPeriod is how often a waiting daemon tries to get the lock. It bounds how long a
// node has no daemon when one takes over from another.
const lockPeriod = 250 * time.Millisecond

// lockInstance waits until no other daemon has the node. If it has to wait, it calls
// waiting once. The kernel releases the lock when the process ends, however it ends.
func lockInstance(ctx context.Context, dir string, waiting func()) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, instanceFile)
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for told := false; ; told = true {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			file.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if !told {
			waiting()
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, ctx.Err()
		case <-time.After(lockPeriod):
		}
	}
}
