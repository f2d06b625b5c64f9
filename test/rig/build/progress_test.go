package build

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestLongStepSaysThatItGoesOn(t *testing.T) {
	for _, row := range []struct {
		takes time.Duration
		err   error
		want  string
	}{
		{takes: 0, want: "rig: make a\n"},
		{takes: 4 * time.Second, want: "rig: make a\n"},
		{takes: 12 * time.Second, want: "rig: make a\nrig: make a took 12 s\n"},
		{takes: 75 * time.Second, want: "rig: make a\nrig: make a, 30 s so far\nrig: make a, 60 s so far\nrig: make a took 75 s\n"},
		{takes: 45 * time.Second, err: errors.New("broken"), want: "rig: make a\nrig: make a, 30 s so far\n"},
	} {
		synctest.Test(t, func(t *testing.T) { // fails if the goroutine stays
			var log strings.Builder
			c := Cache{Dir: t.TempDir(), Log: &log}
			step := func() error { time.Sleep(row.takes); return row.err }
			if err := c.once(t.Context(), "a", "inputs", step); !errors.Is(err, row.err) {
				t.Errorf("a step of %s: error %v, want %v", row.takes, err, row.err)
			}
			if log.String() != row.want {
				t.Errorf("a step of %s logs\n%s\nwant\n%s", row.takes, log.String(), row.want)
			}
			log.Reset()
			if row.err != nil {
				return
			}
			if err := c.once(t.Context(), "a", "inputs", step); err != nil || log.String() != "" {
				t.Errorf("the same step again: %v, log %q", err, log.String())
			}
		})
	}
}

// What an interrupted step leaves is no longer what was made before it.
func TestThingIsMadeAgainAfterAnotherOneWasBegun(t *testing.T) {
	c := Cache{Dir: t.TempDir(), Log: io.Discard}
	made := 0
	step := func() error { made++; return nil }
	interrupted := errors.New("interrupted")
	if err := c.once(t.Context(), "a", "inputs", step); err != nil {
		t.Fatal(err)
	}
	if err := c.once(t.Context(), "a", "others", func() error { return interrupted }); !errors.Is(err, interrupted) {
		t.Fatal(err)
	}
	if err := c.once(t.Context(), "a", "inputs", step); err != nil || made != 2 {
		t.Errorf("made %d times (%v), want 2", made, err)
	}
}

func TestSeveralProcessesMakeAThingOnce(t *testing.T) {
	dir := t.TempDir()
	var made atomic.Int32
	var makers sync.WaitGroup
	for range 4 {
		makers.Go(func() {
			c := Cache{Dir: dir, Log: io.Discard} // as of a process of its own: the lock is of an opened file
			err := c.once(t.Context(), "a", "inputs", func() error {
				made.Add(1)
				time.Sleep(20 * time.Millisecond)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	makers.Wait()
	if got := made.Load(); got != 1 {
		t.Errorf("made %d times, want 1", got)
	}
}

func TestWaitingForAnotherProcessCanBeCancelled(t *testing.T) {
	c := Cache{Dir: t.TempDir(), Log: io.Discard}
	unlock, err := c.lock(t.Context(), commonLock)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	err = c.once(cancelled, "a", "inputs", func() error { t.Error("made without the lock"); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
}

func TestMissingIsSaidBeforeItIsMade(t *testing.T) {
	var log strings.Builder
	c := Cache{Dir: t.TempDir(), Source: "../../..", Log: &log}
	needs := Needs{Kubernetes: DefaultKubernetes, Nodes: true, Kernel: "6.12", Init: "busybox", CRI: "containerd"}
	if err := c.AnnounceMissing(needs); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Making it takes about ", " min on 2 cores, less if Go has compiled it before.\n",
		"rig:   kubernetes/1.37-kube-apiserver, about 330 s\n", "rig:   bin/etcd-v3, about 25 s\n", "rig:   kernel/6.12/package, about 20 s\n",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in\n%s", want, log.String())
		}
	}

	// What once has made is no longer missing, and what is not for a node is not needed
	// without one.
	all := make(map[string]bool)
	names, err := c.missing(needs)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		all[name] = true
	}
	kernel := kernelThing("6.12")
	c.Log = io.Discard
	if err := c.once(t.Context(), kernel.name, kernel.inputs, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if names, err = c.missing(needs); err != nil || len(names) != len(all)-1 {
		t.Errorf("missing are %q, %v; want all of %v but the kernel", names, err, all)
	}
	names, err = c.missing(Needs{Kubernetes: DefaultKubernetes})
	if err != nil || strings.Contains(strings.Join(names, " "), "system/") || !strings.Contains(strings.Join(names, " "), "kubernetes/") {
		t.Errorf("without nodes missing are %q, %v", names, err)
	}
}

func TestNothingIsSaidOfAFullCache(t *testing.T) {
	var log strings.Builder
	c := Cache{Dir: t.TempDir(), Source: "../../..", Log: io.Discard}
	sets, err := c.controlPlane(DefaultKubernetes)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range sets {
		made, err := c.thingOf(b)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.once(t.Context(), made.name, made.inputs, func() error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	c.Log = &log
	if err := c.AnnounceMissing(Needs{Kubernetes: DefaultKubernetes}); err != nil || log.String() != "" {
		t.Errorf("a full cache: %v, log %q", err, log.String())
	}
}
