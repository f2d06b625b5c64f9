package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// startStuckAfter is how long one step of the start may take. The requests to the API server
// of a step end after 30 s, and reading all files of a node takes seconds on a slow disk.
const startStuckAfter = 2 * time.Minute

// starting knows what a daemon does before it serves its node. The zero value does nothing
// that could hang.
type starting struct {
	mu    sync.Mutex
	step  string        // what it does now; "" while it waits for another daemon
	since time.Time     // when it began, or was last seen to go on
	done  func() uint64 // grows while the step goes on; may be nil
	last  uint64        // what done returned last
}

// begin says what the daemon does from now on. Done grows while that goes on, however long
// it takes. It is nil for a step that never takes long.
func (s *starting) begin(step string, done func() uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step, s.since, s.done, s.last = step, time.Now(), done, 0
}

// rest says that the daemon waits for another one, for any time.
func (s *starting) rest() { s.begin("", nil) }

// alive returns an error if the start hangs in a disk or in the kernel. It must be called
// more often than each startStuckAfter.
func (s *starting) alive(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done != nil {
		if now := s.done(); now != s.last {
			s.last, s.since = now, time.Now()
		}
	}
	if age := time.Since(s.since); s.step != "" && age > startStuckAfter {
		return fmt.Errorf("the start hangs: %s has gone on for %s, want at most %s", s.step, age.Round(time.Second), startStuckAfter)
	}
	return nil
}
