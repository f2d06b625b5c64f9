package cluster

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"
)

func TestNobodyWaitsForAnAPIServerThatCannotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // within no real time
		r, err := New(t.TempDir()+"/rig", 0, 100, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if err := r.waitAPIServer(t.Context()); err == nil || time.Since(begin) > 5*time.Second {
			t.Errorf("it was waited %s for an API server that has ended (%v)", time.Since(begin), err)
		}
		interrupted, interrupt := context.WithCancel(t.Context())
		interrupt()
		begin = time.Now()
		if err := r.waitAPIServer(interrupted); !errors.Is(err, context.Canceled) || time.Since(begin) > 0 {
			t.Errorf("an interrupt has an effect after %s (%v)", time.Since(begin), err)
		}
	})
}
