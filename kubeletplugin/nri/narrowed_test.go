package nri

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/driver"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

// A container that was restricted once follows the pool until it ends, also with another
// daemon: it has a cpuset of its own. Others are left alone while no claim needs it.
func TestRestrictedContainersAreKnownAfterARestart(t *testing.T) {
	socket, dir := filepath.Join(t.TempDir(), "nri.sock"), files.OpenTemp(t)
	r, core := newRuntime(t, socket), &fakeCore{}
	first, cancel := context.WithCancel(t.Context())
	p, ended := New(Options{Socket: socket, Core: core, State: dir}), make(chan struct{})
	go func() { p.Run(first); close(ended) }()
	eventually(t, "connected", p.Connected)
	r.create("early")
	r.create("ends")
	core.hold(map[string]driver.Pinned{"a": claimA})
	refresh(t, p)
	r.create("late")
	wantState(t, r, map[string]string{"early": "0-1,4-7/", "ends": "0-1,4-7/", "late": "0-1,4-7/"})
	cancel()
	<-ended

	r.stop("ends")
	core.holdInKernel(map[string]driver.Pinned{"b": claimB}) // of which the kernel keeps others off
	p = startPlugin(t.Context(), t, New(Options{Socket: socket, Core: core, State: dir}))
	eventually(t, "connected", p.Connected)
	r.create("new")
	refresh(t, p)
	wantState(t, r, map[string]string{"early": "0-3/", "late": "0-3/", "new": "/"})
	if p.narrowed.has("ends") || !p.narrowed.has("early") || !p.narrowed.has("late") || p.narrowed.has("new") {
		t.Errorf("restricted containers are %v", p.narrowed.ids)
	}
	r.stop("early")
	eventually(t, "the file has container late only", func() bool {
		text, err := dir.ReadFile(narrowedFile)
		return err == nil && string(text) == "late\n"
	})
}

// After two seconds, a runtime drops a plugin that does not answer, and starts containers on
// the CPUs of claims.
func TestHandlersDoNotWaitForTheDisk(t *testing.T) {
	socket, dir := filepath.Join(t.TempDir(), "nri.sock"), files.OpenTemp(t)
	r, core := newRuntime(t, socket), &fakeCore{}
	p := startPlugin(t.Context(), t, New(Options{Socket: socket, Core: core, State: dir}))
	eventually(t, "connected", p.Connected)
	core.hold(map[string]driver.Pinned{"a": claimA})
	refresh(t, p)

	p.narrowed.file.Lock() // as while a disk does not answer
	r.create("late")
	wantState(t, r, map[string]string{"late": "0-1,4-7/"})
	if !p.narrowed.has("late") {
		t.Error("the container is not known")
	}
	r.create("ends")
	r.stop("ends")
	p.narrowed.file.Unlock()
	eventually(t, "the file has container late only", func() bool {
		text, err := dir.ReadFile(narrowedFile)
		return err == nil && string(text) == "late\n"
	})
}

func TestRefusedUpdatesAreKnown(t *testing.T) {
	core := &fakeCore{}
	r, p := connected(t, core)
	r.create("x")
	r.set(func() { r.broken["x"] = true })
	core.hold(map[string]driver.Pinned{"a": {CPUs: cpuset.New(2, 3)}})
	if err := p.Refresh(t.Context()); err == nil {
		t.Fatal("a refused update is no error")
	}
	eventually(t, "refused", p.Refused)
	r.set(func() { r.broken["x"] = false })
	refresh(t, p)
	eventually(t, "not refused", func() bool { return !p.Refused() })
}
