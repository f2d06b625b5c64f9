package resctrlfs

import (
	"errors"
	"io/fs"
	"os"
	"testing"
)

// Change is a call that changes the filesystem.
type Change struct {
	Call string // mkdir, rmdir, rename or write
	Name string
	Text string // what is written, or the new name
}

// fault is what tests do to the changes that come.
type fault struct {
	around func(Change, func() error) error
}

// Around has the function do each change that comes: it calls effect, or it returns an
// error in its place. With nil, changes are as before. The function may be called at the
// same time by several goroutines.
func (f *FS) Around(around func(c Change, effect func() error) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault.around = around
}

// Fail has the n-th change that comes fail with the error, and no other. The next one has
// n = 1. It replaces what [FS.Around] said.
func (f *FS) Fail(n int, err error) {
	f.Around(func(_ Change, effect func() error) error {
		if n--; n == 0 {
			return err
		}
		return effect()
	})
}

type killedError struct{}

// Killed runs a job as a process that is killed after n changes: nothing of the job runs
// after that, its deferred functions excepted. It returns false, and the job's error, if
// the job made no more than n changes. The job starts no goroutine that changes the
// filesystem. Killed replaces what [FS.Around] said.
func (f *FS) Killed(n int, job func() error) (killed bool, err error) {
	defer f.Around(nil)
	defer func() {
		if p := recover(); p != nil && p != any(killedError{}) {
			panic(p)
		} else if p != nil {
			killed = true
		}
	}()
	f.Around(func(_ Change, effect func() error) error {
		if n--; n < 0 {
			panic(killedError{})
		}
		return effect()
	})
	return false, job()
}

// KilledAtEach calls run with 0, 1, 2 and so on, which are the n of [FS.Killed], until its
// job is not killed any more. It fails the test if the job made fewer than least changes.
func KilledAtEach(t testing.TB, least int, run func(n int) (killed bool)) {
	t.Helper()
	n := 0
	for run(n) {
		n++
	}
	if n < least {
		t.Errorf("only %d changes, want at least %d", n, least)
	}
}

// change does a change as the test wants it to be done.
func (f *FS) change(c Change, do func() error) error {
	f.mu.Lock()
	around := f.fault.around
	f.mu.Unlock()
	effect := func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		return do()
	}
	var err error
	if around == nil {
		err = effect()
	} else {
		err = around(c, effect)
	}
	var already *fs.PathError
	switch {
	case err == nil || errors.As(err, &already):
		return err
	case c.Call == "rename":
		return &os.LinkError{Op: c.Call, Old: c.Name, New: c.Text, Err: err}
	}
	return &fs.PathError{Op: c.Call, Path: c.Name, Err: err}
}
