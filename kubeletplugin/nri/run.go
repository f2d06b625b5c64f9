package nri

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/klog/v2"
)

const (
	firstReconnect = 100 * time.Millisecond
	lastReconnect  = 10 * time.Second
)

// Run connects to the runtime, and connects again whenever the connection ends, until
// ctx ends. Call it only once, so that there is one connection at a time.
func (p *Plugin) Run(ctx context.Context) {
	var keeping sync.WaitGroup
	keeping.Go(func() { p.narrowed.keep(ctx) })
	defer keeping.Wait()
	logger := klog.FromContext(ctx)
	told := ""
	for retry := firstReconnect; ctx.Err() == nil; retry = min(2*retry, lastReconnect) {
		began := time.Now()
		connected, err := p.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		if connected {
			told = ""
		}
		if time.Since(began) > lastReconnect {
			retry = firstReconnect // the attempt lasted too long to be a failure to connect
		}
		if reason := err.Error(); reason != told {
			logger.Info("Not connected to the container runtime", "socket", p.options.Socket, "reason", reason)
			told = reason
		}
		select {
		case <-ctx.Done():
		case <-time.After(jittered(retry)):
		}
	}
}

// jittered returns between half of the wait and all of it, so that the plugins of a
// cluster do not reconnect in step.
func jittered(wait time.Duration) time.Duration {
	return wait/2 + rand.N(wait/2+1)
}
