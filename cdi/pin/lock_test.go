package pin

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"
)

func TestLockIsHeldUntilUnlock(t *testing.T) {
	name := t.TempDir() + "/dra.numa/lock"
	unlock, err := Lock(name)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	try := func() error { return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
	if err := try(); !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Errorf("second lock: %v, want %v", err, syscall.EWOULDBLOCK)
	}
	waiting := make(chan struct{})
	go func() {
		defer close(waiting)
		if unlock, err := Lock(name); err != nil {
			t.Error(err)
		} else {
			unlock()
		}
	}()
	select {
	case <-waiting:
		t.Error("a second Lock did not wait")
	case <-time.After(20 * time.Millisecond):
	}
	unlock()
	<-waiting
	if err := try(); err != nil {
		t.Errorf("lock after unlock: %v", err)
	}
	if _, err := Lock(fmt.Sprintf("/proc/%d/x/lock", os.Getpid())); err == nil {
		t.Error("lock in a folder that cannot be made is nil")
	}
}
