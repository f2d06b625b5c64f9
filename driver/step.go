package driver

import (
	"fmt"
)

// step is one effect of a plan. Doing it again changes nothing, so a crash
// after any step is healed by planning and performing once more.
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
