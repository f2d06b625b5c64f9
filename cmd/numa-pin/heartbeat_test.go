package main

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/internal/keeperfile"
)

func TestKeeperTellsTheDaemonThatItWorks(t *testing.T) {
	host, dir := fakeHost(t), t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	began := time.Now()
	go func() {
		_, err := runWith(ctx, host, "", "keep", "--cgroups="+host.cgroups, "--lock="+dir+"/lock", "--records="+dir+"/pins", "--heartbeat="+dir)
		ended <- err
	}()
	var beat keeperfile.Beat
	err := os.ErrNotExist
	for deadline := time.Now().Add(time.Minute); err != nil && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		beat, err = keeperfile.ReadBeat(os.DirFS(dir))
	}
	if err != nil || beat.At.Before(began) || time.Since(beat.At) > time.Minute {
		t.Errorf("heartbeat %+v, %v, want one of now", beat, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// The file is in memory, but a keeper that does nothing writes it rarely.
func TestHeartBeatsRarelyOrForNews(t *testing.T) {
	dir := t.TempDir()
	h, err := newHeart(dir, stuckAfter)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	now := time.Now()
	beat := func(after time.Duration, counts pin.Counts, written bool) {
		t.Helper()
		if err := h.beat(now.Add(after), counts); err != nil {
			t.Fatal(err)
		}
		got, err := keeperfile.ReadBeat(os.DirFS(dir))
		if err != nil || got.At.Equal(now.Add(after)) != written {
			t.Errorf("after %s: heartbeat of %s, %v, want one of now: %t", after, got.At.Sub(now), err, written)
		}
		if written && (got.Releases != counts.Releases || got.Repairs["partition"] != counts.Repairs[pin.CausePartition] || got.Unrepaired != counts.Unrepaired) {
			t.Errorf("heartbeat %+v, want %+v", got, counts)
		}
	}
	beat(0, pin.Counts{}, true)
	beat(keeperfile.BeatPeriod-1, pin.Counts{}, false)
	beat(keeperfile.BeatPeriod, pin.Counts{}, true)
	beat(keeperfile.BeatPeriod+1, pin.Counts{Releases: 1}, true)
	repaired := pin.Counts{Releases: 1, Repairs: map[pin.Cause]uint64{pin.CausePartition: 2}}
	beat(keeperfile.BeatPeriod+2, repaired, true)
	beat(keeperfile.BeatPeriod+3, repaired, false)
	repaired.Unrepaired = 1
	beat(keeperfile.BeatPeriod+4, repaired, true)
	beat(-time.Hour, repaired, true) // the clock was set back
}

// A keeper that hangs in the kernel ends, so that the kubelet starts it again.
func TestHeartThatStops(t *testing.T) {
	h, err := newHeart("", 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	select {
	case <-h.stuck.C:
	case <-time.After(10 * time.Second):
		t.Error("a heart that does not beat is not noticed")
	}
	if err := h.beat(time.Now(), pin.Counts{}); err != nil {
		t.Error(err)
	}
	select {
	case <-h.stuck.C:
		t.Error("a heart that beats is stuck")
	case <-time.After(50 * time.Millisecond):
	}
}
