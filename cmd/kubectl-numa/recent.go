package main

import (
	"context"
	"sync"
	"time"
)

// recentAge is how long an answer of a node or of the API server counts for a page. A page
// that follows the cluster asks once a second while claims come and go.
const recentAge = 10 * time.Second

// recent remembers answers for recentAge. It asks for each key at most once at a time.
type recent[V any] struct {
	now func() time.Time

	mu      sync.Mutex
	answers map[string]*answered[V] // by key
}

// answered is the last answer for a key.
type answered[V any] struct {
	turn  chan struct{} // contains a value while a goroutine uses the rest
	at    time.Time     // zero before the first answer
	value V
}

func newRecent[V any]() *recent[V] {
	return &recent[V]{now: time.Now, answers: make(map[string]*answered[V])}
}

// of returns the last answer for the key, or asks for a new one. If ctx ends, it returns
// the error of ctx and remembers nothing.
func (r *recent[V]) of(ctx context.Context, key string, ask func(context.Context) V) (value V, err error) {
	answer := r.answer(key)
	select {
	case <-ctx.Done():
		return value, ctx.Err()
	case answer.turn <- struct{}{}:
	}
	defer func() { <-answer.turn }()
	if answer.at.IsZero() || r.now().Sub(answer.at) >= recentAge {
		asked := ask(ctx)
		if err := ctx.Err(); err != nil {
			return value, err
		}
		answer.at, answer.value = r.now(), asked
	}
	return answer.value, nil
}

// answer returns the entry of the key, and forgets old entries when it adds one.
func (r *recent[V]) answer(key string) *answered[V] {
	r.mu.Lock()
	defer r.mu.Unlock()
	if answer := r.answers[key]; answer != nil {
		return answer
	}
	for other, answer := range r.answers {
		select {
		case answer.turn <- struct{}{}:
			if r.now().Sub(answer.at) >= recentAge {
				delete(r.answers, other)
			}
			<-answer.turn
		default: // it is in use
		}
	}
	answer := &answered[V]{turn: make(chan struct{}, 1)}
	r.answers[key] = answer
	return answer
}
