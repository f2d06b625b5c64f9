package driver

import (
	"sync"
	"sync/atomic"
	"time"
)

// mutex is a lock that knows since when it is held. An operation that holds the Driver's
// lock for long waits for a disk or for the kernel, and all other operations wait for it.
type mutex struct {
	sync.Mutex
	since atomic.Pointer[time.Time] // nil: not held
}

// Lock locks the mutex.
func (m *mutex) Lock() {
	m.Mutex.Lock()
	m.since.Store(new(time.Now()))
}

// TryLock locks the mutex if it is free, and reports whether it has.
func (m *mutex) TryLock() bool {
	if !m.Mutex.TryLock() {
		return false
	}
	m.since.Store(new(time.Now()))
	return true
}

// Unlock unlocks the mutex.
func (m *mutex) Unlock() {
	m.since.Store(nil)
	m.Mutex.Unlock()
}

func (m *mutex) held() time.Duration {
	since := m.since.Load()
	if since == nil {
		return 0
	}
	return time.Since(*since)
}

// Busy returns for how long the operation that changes the Driver now has been at work; 0
// if there is none. It does not wait for the operation.
func (d *Driver) Busy() time.Duration { return d.mu.held() }
