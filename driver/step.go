package driver

import (
	"fmt"
)

// step is one effect of a plan. Running it again changes nothing. So after a crash at
// any step, it is enough to plan and perform again.
type step struct {
	name string // verb and object
	run  func() error
}

func (s step) String() string { return s.name }

func perform(steps []step) error {
	for _, s := range steps {
		if err := s.run(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}
