package fleet

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// at is a moment of a process that gets the CPUs in half of the time.
func at(ms int) Moment {
	return Moment{time.UnixMilli(int64(ms)), time.Duration(ms) * time.Millisecond / 2}
}

func TestOnlyWhatADaemonWaitsForByItselfIsItsWait(t *testing.T) {
	request := func(begin, end int) Span { return Span{Begin: at(begin), End: at(end), Request: true} }
	event := func(when int) Span { return Span{Begin: at(when), End: at(when)} }
	watch, refused := request(400, 500), request(400, 500)
	watch.Watch, refused.Refused = true, true
	const ms = time.Millisecond
	for name, row := range map[string]struct {
		spans []Span
		want  Work
	}{
		"nothing":                        {nil, Work{}},
		"a request at once":              {[]Span{event(100), request(100, 900)}, Work{RoundTrips: 1}},
		"a timer after the event":        {[]Span{event(200), request(500, 900)}, Work{1, 150 * ms, 300 * ms}},
		"a timer instead of the event":   {[]Span{event(-300), request(300, 900)}, Work{1, 150 * ms, 300 * ms}},
		"the event comes late":           {[]Span{event(-300), event(700), request(700, 900)}, Work{RoundTrips: 1}},
		"requests one after the other":   {[]Span{event(0), request(0, 300), request(400, 600)}, Work{1, 50 * ms, 100 * ms}},
		"requests at once":               {[]Span{event(100), request(100, 800), request(200, 300), request(900, 950)}, Work{3, 50 * ms, 100 * ms}},
		"a wait before a watch":          {[]Span{event(100), watch, request(500, 900)}, Work{1, 150 * ms, 300 * ms}},
		"the API server says when":       {[]Span{event(400), refused, request(900, 950)}, Work{RoundTrips: 1}},
		"something before and after":     {[]Span{request(-500, -400), event(-10), event(100), request(100, 200), request(1001, 1002)}, Work{RoundTrips: 1}},
		"spans are noted when they end":  {[]Span{event(0), request(300, 400), request(1, 900)}, Work{2, ms / 2, ms}},
		"an event while a request lasts": {[]Span{event(100), request(100, 600), event(200), request(600, 900)}, Work{RoundTrips: 2}},
	} {
		if got := workIn(row.spans, Window{at(0).Real, at(1000).Real}); got != row.want {
			t.Errorf("%s: %+v, want %+v", name, got, row.want)
		}
	}
}

// A daemon that ends its watch, or ends itself, has lost none.
func TestOnlyWatchesThatTheAPIServerEndsHaveEnded(t *testing.T) {
	hold := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/refused":
			w.WriteHeader(tooMany)
		case "/held":
			_, _ = w.Write([]byte("{"))
			w.(http.Flusher).Flush()
			<-hold
		}
	}))
	defer server.Close()
	defer close(hold)
	var c clock
	d := trace{clock: &c}
	ctx, end := context.WithCancel(t.Context())
	client := http.Client{Transport: d.of(ctx)(server.Client().Transport)}
	open := func(path string) io.ReadCloser {
		t.Helper()
		answer, err := client.Get(server.URL + path) //nolint:bodyclose // its caller does
		if err != nil {
			t.Fatal(err)
		}
		return answer.Body
	}
	read := func(body io.ReadCloser) {
		_, _ = io.ReadAll(body)
		_ = body.Close()
	}
	read(open("/?watch=true"))
	read(open("/"))
	read(open("/refused?watch=true"))
	if ends := d.ends(); ends != 1 {
		t.Errorf("%d watches have ended, want 1", ends)
	}
	var requests, watches, refused, events int
	for _, span := range d.take() {
		switch {
		case !span.Request:
			events++
		case span.Refused:
			refused++
		case span.Watch:
			watches++
		default:
			requests++
		}
	}
	if requests != 1 || watches != 1 || refused != 1 || events == 0 {
		t.Errorf("%d requests, %d watches, %d refused, %d events of watches", requests, watches, refused, events)
	}
	held := open("/held?watch=true")
	_ = held.Close()
	read(held)
	held = open("/held?watch=true")
	if _, err := held.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	end()
	server.CloseClientConnections()
	read(held)
	if ends := d.ends(); ends != 1 {
		t.Errorf("%d watches have ended, want 1 still", ends)
	}
}
