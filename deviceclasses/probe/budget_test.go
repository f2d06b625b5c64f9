package probe

import (
	"context"
	"fmt"
	"testing"
)

// notOn selects the zones of all sockets but one.
func notOn(socket int) string {
	return fmt.Sprintf(`OURS && A.kind == "zone" && A.?socket.orValue(-1) != %d`, socket)
}

func TestABudgetIsForDifferentSelectors(t *testing.T) {
	all := New()
	task := all.Within(t.Context(), 3)
	complete := func(s *Selectors, expressions ...string) bool {
		result := s.Try(nil, selectors(expand(expressions...)...))
		return result.Zones && !result.Incomplete
	}
	for range 2 {
		for _, expressions := range [][]string{{notOn(1)}, {notOn(1), notOn(2)}} {
			if !complete(task, expressions...) {
				t.Errorf("%q is not evaluated", expressions)
			}
		}
	}
	for _, expressions := range [][]string{{notOn(3)}, {notOn(1)}} {
		if complete(task, expressions...) {
			t.Errorf("%q is evaluated, though the budget is spent", expressions)
		}
		if !complete(all, expressions...) || !complete(all.Within(t.Context(), 3), expressions...) {
			t.Errorf("%q is not evaluated for another task", expressions)
		}
	}
}

// A result that was cut short is not kept.
func TestSelectorsEndWithTheirTask(t *testing.T) {
	all := New()
	ctx, cancel := context.WithCancel(t.Context())
	task, list := all.Within(ctx, 100), selectors(expand(notOn(1))...)
	cancel()
	if result := task.Try(nil, list); !result.Incomplete || result.Zones {
		t.Errorf("of a task that has ended: %+v", result)
	}
	if possible, err := task.Possible(nil, list, nil); err != nil || !possible.Foreign {
		t.Errorf("of a task that has ended, possible is %+v, %v", possible, err)
	}
	if possible, err := all.Possible(nil, list, nil); err != nil || !possible.OnlyZones() {
		t.Errorf("later, possible is %+v, %v", possible, err)
	}
	if result := all.Try(nil, list); !result.Zones || result.Incomplete {
		t.Errorf("later: %+v", result)
	}
}
