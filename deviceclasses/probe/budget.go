package probe

import (
	"context"
	"sync"
)

// budget is how many selectors may be evaluated, and until when.
type budget struct {
	ctx  context.Context
	mu   sync.Mutex
	left int  // selectors
	over bool // more were asked for than were left
	paid map[string]bool
}

// Within returns Selectors for one task, such as a review. They share what is compiled and
// known with s. When ctx ends, or when the task has asked for more than most different
// selectors, all further results are incomplete, and everything is possible. The same selectors count once, whether or
// not their result is known already: so a task gets the same answer again.
func (s *Selectors) Within(ctx context.Context, most int) *Selectors {
	return &Selectors{s.compiled, s.texts, s.results, s.possible, &budget{ctx: ctx, left: most, paid: map[string]bool{}}}
}

// spent reports that nothing more may be evaluated.
func (b *budget) spent() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.over || b.ctx.Err() != nil
}

// pay reports whether the selectors with the key may be evaluated. Those that are too many
// end the budget.
func (b *budget) pay(key string, selectors int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.paid == nil || b.paid[key]: // without a limit, or paid
		return true
	case selectors > b.left:
		b.over = true
		return false
	}
	b.left -= selectors
	b.paid[key] = true
	return true
}
