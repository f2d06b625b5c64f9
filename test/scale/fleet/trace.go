package fleet

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// tick is how long the goroutine of a clock sleeps.
const tick = 10 * time.Millisecond

// clock counts how often a goroutine of this process has slept for a tick. While the process
// waits for the CPUs, it falls behind real time: what all daemons of the process wait for is no
// wait of one of them.
type clock struct{ ticks atomic.Int64 }

// run counts until the process ends.
func (c *clock) run() {
	for {
		time.Sleep(tick)
		c.ticks.Add(1)
	}
}

func (c *clock) now() Moment { return Moment{time.Now(), time.Duration(c.ticks.Load()) * tick} }

// Moment is a moment in real time, and on the clock of a process.
type Moment struct {
	Real  time.Time
	Clock time.Duration
}

// Span is what the API server has to do with a daemon: a request, from its begin to its
// answer, or a moment in which a watch has brought something or has ended.
type Span struct {
	Begin, End Moment
	Request    bool
	Watch      bool // the request begins one
	Refused    bool // with 429: the API server says when to ask again
}

// trace has the spans of a daemon.
type trace struct {
	clock *clock

	mu    sync.Mutex
	spans []Span
	ended uint64 // watches that did not end with the daemon
}

// take returns the spans so far, and forgets them.
func (t *trace) take() (spans []Span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	spans, t.spans = t.spans, nil
	return spans
}

// ends returns how many watches have ended so far, other than with the daemon.
func (t *trace) ends() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended
}

func (t *trace) add(span Span) {
	t.mu.Lock()
	t.spans = append(t.spans, span)
	t.mu.Unlock()
}

// of returns a transport that notes the requests of another one. They are those of a daemon
// that runs until ctx ends.
func (t *trace) of(ctx context.Context) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper { return tracingTransport{ctx, t, next} }
}

type tracingTransport struct {
	ctx   context.Context
	trace *trace
	next  http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t tracingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	span := Span{Begin: t.trace.clock.now(), Request: true, Watch: request.URL.Query().Has("watch")}
	answer, err := t.next.RoundTrip(request)
	span.End, span.Refused = t.trace.clock.now(), err == nil && answer.StatusCode == tooMany
	t.trace.add(span)
	if err == nil && span.Watch && answer.StatusCode == http.StatusOK {
		answer.Body = &tracedWatch{ReadCloser: answer.Body, tracingTransport: t}
	}
	return answer, err
}

// WrappedRoundTripper lets client-go find the transport below.
func (t tracingTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// tracedWatch is the body of a watch.
type tracedWatch struct {
	io.ReadCloser
	tracingTransport
	closed atomic.Bool
}

// Read implements [io.Reader].
func (w *tracedWatch) Read(into []byte) (n int, err error) {
	n, err = w.ReadCloser.Read(into)
	now := w.trace.clock.now()
	w.trace.add(Span{Begin: now, End: now})
	if err != nil && w.ctx.Err() == nil && !w.closed.Swap(true) {
		w.trace.mu.Lock()
		w.trace.ended++
		w.trace.mu.Unlock()
	}
	return n, err
}

// Close implements [io.Closer]. A watch that the daemon closes has not ended by itself.
func (w *tracedWatch) Close() error {
	w.closed.Store(true)
	return w.ReadCloser.Close()
}

// Window is a time in which a daemon had something to do.
type Window struct{ From, To time.Time }

// Work is what a daemon did in a window.
type Work struct {
	RoundTrips int // requests, without those that begin a watch
	// Waits is for how long it waited by itself: it had no request under way, the API server had
	// not said when to ask again, and the next thing that happened was that it asked something.
	// Idle is the same in real time, so it has what the daemon waited for the CPUs: on a machine
	// with nothing else to do, both are the same.
	Waits, Idle time.Duration
}

// workIn returns what a daemon with these spans did in the window.
func workIn(spans []Span, w Window) (work Work) {
	spans = slices.SortedFunc(slices.Values(spans), func(a, b Span) int { return a.Begin.Real.Compare(b.Begin.Real) })
	var last Span // the one that ended last
	for _, span := range spans {
		if span.Begin.Real.After(w.To) {
			break
		}
		if span.Request && span.Begin.Real.After(w.From) {
			if !span.Watch && !span.Refused {
				work.RoundTrips++
			}
			if idle := span.Begin.Real.Sub(last.End.Real); !last.End.Real.IsZero() && !last.Refused && idle > 0 {
				inside := min(idle, span.Begin.Real.Sub(w.From))
				work.Idle += inside
				work.Waits += min(inside, time.Duration(float64(span.Begin.Clock-last.End.Clock)*float64(inside)/float64(idle)))
			}
		}
		if span.End.Real.After(last.End.Real) {
			last = span
		}
	}
	return work
}
