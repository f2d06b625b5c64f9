package build

import (
	"sync"
	"time"
)

// A step that takes long says so every progressInterval. One that took less than
// shortStep says no more than its start.
const (
	progressInterval = 30 * time.Second
	shortStep        = 5 * time.Second
	lockInterval     = 200 * time.Millisecond // between two attempts to lock the folder
)

// watch runs a step and logs that it starts, that it goes on, and how long it took. The
// step itself logs nothing.
func (c Cache) watch(name string, step func() error) error {
	c.logf("rig: %s", name)
	start := time.Now()
	done := make(chan struct{})
	var reporter sync.WaitGroup
	reporter.Go(func() {
		tick := time.NewTicker(progressInterval)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				c.logf("rig: %s, %d s so far", name, seconds(time.Since(start)))
			}
		}
	})
	err := step()
	close(done)
	reporter.Wait()
	if took := time.Since(start); err == nil && took >= shortStep {
		c.logf("rig: %s took %d s", name, seconds(took))
	}
	return err
}

func seconds(d time.Duration) int { return int(d.Round(time.Second) / time.Second) }
