package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/dra-driver-numa/dra-driver-numa/kubeletplugin"
	"github.com/dra-driver-numa/dra-driver-numa/test/scale/proc"
)

// Kind is a kind of requests, whatever the answer.
type Kind struct{ Verb, Resource string }

// Writes says whether the API server stores something for requests of the kind.
func (k Kind) Writes() bool {
	switch k.Verb {
	case "get", "list", "watch", "dry-run":
		return false
	}
	return true
}

// Watches says whether requests of the kind give a daemon all objects there are.
func (k Kind) Watches() bool { return k.Verb == "list" || k.Verb == "watch" }

// Phase is what was measured while one thing happened to the daemons.
type Phase struct {
	Name    string
	Means   string // what happens, in one sentence
	Daemons int    // to how many it happens
	Took    time.Duration
	Counted time.Duration // how long its requests were counted: it ends later than what happens
	// Each is how long it took for each daemon, or for each claim; nil if there is no end
	// that they wait for.
	Each []time.Duration

	Requests     map[Kind]uint64   // of all daemons together, without those that were refused or not answered
	Most         map[Kind]uint64   // the most of one daemon, for each kind
	Stored       map[string]uint64 // the most writes of one daemon that the API server stored, for each resource
	Refused      uint64            // requests that were answered with 429
	Failed       uint64            // requests that were answered with another error, such as a conflict
	Unanswered   uint64            // requests that failed without an answer, such as those that took too long
	Ended        uint64            // watches that the API server ended, or lost
	Watches      uint64            // the most lists, or watches, of one kind by one daemon, without as many as had ended
	Work         []Work            // of each daemon until its slices were back; nil if they were not away
	Seconds      []map[Kind]uint64
	Others       []time.Duration // how long each request of another user took that began before the end
	APIServerCPU time.Duration
}

// Total is the number of requests.
func (p Phase) Total() (sum uint64) {
	for _, count := range p.Requests {
		sum += count
	}
	return sum
}

// Writes is the number of requests that store something.
func (p Phase) Writes() (sum uint64) {
	for kind, count := range p.Requests {
		if kind.Writes() {
			sum += count
		}
	}
	return sum
}

// Busiest is the number of requests in the busiest second.
func (p Phase) Busiest() (most uint64) {
	for _, second := range p.Seconds {
		sum := uint64(0)
		for _, count := range second {
			sum += count
		}
		most = max(most, sum)
	}
	return most
}

// tooMany is the HTTP status 429, by which priority and fairness refuses a request.
// unanswered stands for no status at all.
const (
	tooMany    = http.StatusTooManyRequests
	unanswered = 0
)

// Counts are of one daemon, so far.
type Counts struct {
	Requests map[kubeletplugin.APIRequest]uint64
	Ended    uint64 // watches that the API server ended, or lost
}

// sum adds the requests of daemons that were answered. Client-go repeats what the API server
// was too busy for: that counts once.
func sum(all []Counts) map[Kind]uint64 {
	sums := make(map[Kind]uint64)
	for _, one := range all {
		for request, count := range one.Requests {
			if request.Code != tooMany && request.Code != unanswered {
				sums[Kind{request.Verb, request.Resource}] += count
			}
		}
	}
	return sums
}

// stored adds the writes of a daemon that the API server has stored, for each resource. A create
// of what is there already is a repetition: the answer to the first request was lost. One that
// failed with another error, and is repeated, counts once.
func stored(one Counts) map[string]uint64 {
	sums := make(map[string]uint64)
	for request, count := range one.Requests {
		again := request.Verb == "create" && request.Code == http.StatusConflict
		if (Kind{request.Verb, request.Resource}).Writes() && (again || request.Code/100 == http.StatusOK/100) {
			sums[request.Resource] += count
		}
	}
	return sums
}

// since returns what has come in between, without kinds that did not occur.
func since[K comparable](before, after map[K]uint64) map[K]uint64 {
	between := maps.Clone(after)
	for key, count := range before {
		between[key] -= count
	}
	maps.DeleteFunc(between, func(_ K, count uint64) bool { return count == 0 })
	return between
}

// settle is how long daemons go on after a phase has come to its end: some requests are
// made in the background. These belong to the phase.
const settle = 5 * time.Second

// measure runs a phase.
func (f *Fleet) measure(ctx context.Context, p Phase, do func(context.Context) ([]time.Duration, error)) (Phase, error) {
	f.Progress("%s: %d daemons", p.Name, p.Daemons)
	counting := time.Now()
	before, err := f.counts(ctx)
	if err != nil {
		return p, err
	}
	if err := f.traces(ctx, nil); err != nil {
		return p, err
	}
	cpu, err := proc.CPUTime(f.Proc, f.APIServer)
	if err != nil {
		return p, err
	}
	watching, stop := context.WithCancel(ctx)
	asking, enough := context.WithCancel(watching)
	var group sync.WaitGroup
	var others []time.Duration
	var sampleFailed, othersFailed error
	group.Go(func() { p.Seconds, sampleFailed = f.sample(ctx, watching) })
	group.Go(func() { others, othersFailed = f.askAsAnother(ctx, asking) })
	began := time.Now()
	p.Each, err = do(ctx)
	p.Took = time.Since(began)
	enough()
	if err == nil {
		err = sleep(ctx, settle)
	}
	stop()
	group.Wait()
	if err == nil {
		err = errors.Join(sampleFailed, othersFailed)
	}
	if err != nil {
		return p, fmt.Errorf("%s: %w", p.Name, err)
	}
	after, err := f.counts(ctx)
	if err != nil {
		return p, err
	}
	p.Counted = time.Since(counting)
	end, err := proc.CPUTime(f.Proc, f.APIServer)
	if err != nil {
		return p, err
	}
	p.Requests, p.Most, p.Others, p.APIServerCPU = since(sum(before), sum(after)), make(map[Kind]uint64), others, end-cpu
	p.Stored, p.Work = make(map[string]uint64), f.work
	for i := range after {
		ended := after[i].Ended - before[i].Ended
		p.Ended += ended
		for kind, count := range since(sum(before[i:i+1]), sum(after[i:i+1])) {
			p.Most[kind] = max(p.Most[kind], count)
			if kind.Watches() && count > ended {
				p.Watches = max(p.Watches, count-ended)
			}
		}
		for resource, count := range since(stored(before[i]), stored(after[i])) {
			p.Stored[resource] = max(p.Stored[resource], count)
		}
		for request, count := range after[i].Requests {
			count -= before[i].Requests[request]
			switch {
			case request.Code == tooMany:
				p.Refused += count
			case request.Code == unanswered:
				p.Unanswered += count
			case request.Code >= http.StatusBadRequest:
				p.Failed += count
			}
		}
	}
	f.Progress("%s: %s, %d requests, %d of them in the busiest second, %d writes", p.Name, p.Took.Round(time.Millisecond), p.Total(), p.Busiest(), p.Writes())
	return p, nil
}

// sample returns what the daemons ask in each second until watching ends. A busy machine may
// take longer for a look: what came in between is spread evenly.
func (f *Fleet) sample(ctx, watching context.Context) (seconds []map[Kind]uint64, err error) {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	began := time.Now()
	last, err := f.sum(ctx)
	for err == nil {
		ended := false
		select {
		case <-watching.Done():
			ended = true
		case <-every.C:
		}
		var now map[Kind]uint64
		if now, err = f.sum(ctx); err != nil {
			break
		}
		passed := int(time.Since(began).Round(time.Second) / time.Second)
		seconds = append(seconds, spread(since(last, now), max(passed-len(seconds), 1))...)
		last = now
		if ended {
			return seconds, nil
		}
	}
	return nil, err
}

// spread divides counts evenly over so many seconds.
func spread(counts map[Kind]uint64, over int) []map[Kind]uint64 {
	seconds := make([]map[Kind]uint64, over)
	for i := range seconds {
		seconds[i] = make(map[Kind]uint64)
		for kind, count := range counts {
			seconds[i][kind] = count*uint64(i+1)/uint64(over) - count*uint64(i)/uint64(over)
		}
	}
	return seconds
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
