package histogram

import (
	"sync"
	"testing"
	"time"
)

func TestDurationsAreCountedUpToTheirBound(t *testing.T) {
	var d Durations
	for _, took := range []time.Duration{0, time.Millisecond, time.Millisecond + 1, 2 * time.Minute} {
		d.Add(took)
	}
	got := d.Read()
	if want := 2*time.Millisecond + 1 + 2*time.Minute; got.Count != 4 || got.Sum != want || d.Sum() != want {
		t.Errorf("%d durations of %s, want 4 of %s", got.Count, got.Sum, want)
	}
	for bound, want := range map[time.Duration]uint64{500 * time.Microsecond: 1, time.Millisecond: 2, 2500 * time.Microsecond: 3, time.Minute: 3} {
		for _, within := range got.Within {
			if within.Bound == bound && within.Count != want {
				t.Errorf("%d within %s, want %d", within.Count, bound, want)
			}
		}
	}
	for i, within := range got.Within[1:] {
		if before := got.Within[i]; within.Bound <= before.Bound || within.Count < before.Count {
			t.Errorf("%v after %v, want ascending", within, before)
		}
	}
}

func TestNoDurationIsLost(t *testing.T) {
	const workers, each = 4, 1000
	var d Durations
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for range each {
				d.Add(time.Second)
			}
		})
	}
	running.Wait()
	if got := d.Read(); got.Count != workers*each || got.Sum != workers*each*time.Second {
		t.Errorf("%d durations of %s, want %d", got.Count, got.Sum, workers*each)
	}
}

func TestSavedDurationsGoOn(t *testing.T) {
	var first, second, other Durations
	first.Add(time.Millisecond)
	first.Add(time.Hour)
	second.Load(first.Save())
	second.Add(time.Second)
	if got := second.Read(); got.Count != 3 || got.Sum != time.Hour+time.Second+time.Millisecond {
		t.Errorf("%d durations of %s, want 3", got.Count, got.Sum)
	}
	other.Add(time.Second)
	other.Load(Saved{Counts: []uint64{1, 2}, Sum: time.Hour})
	if got := other.Read(); got.Count != 0 || got.Sum != 0 {
		t.Errorf("%d durations of %s from a version with other ranges, want none", got.Count, got.Sum)
	}
}
