package resctrl

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// Move is new masks or bandwidths of one group that exists.
type Move struct {
	Group    string // of ours; empty for the default group
	Schemata numa.Schemata
}

// Move writes masks and bandwidths in the order that is given, and nothing else. If the
// kernel refuses one, or grants something else, Move puts back what it wrote before, in
// reverse order. After a crash, [Host.Repair] puts all masks where they should be.
func (h *Host) Move(moves []Move) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var before []Move
	for _, move := range moves {
		old, err := h.current(move)
		if err == nil {
			before = append(before, old)
			err = h.move(move)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("move masks of %s: %w", nameOf(move.Group), err), h.putBack(before))
		}
	}
	return nil
}

// current returns what the group of a move has now, of what the move changes.
func (h *Host) current(move Move) (old Move, err error) {
	if move.Group != "" && !IsOurs(move.Group) {
		return Move{}, fmt.Errorf("group %q: want a name such as %s", move.Group, Name(0))
	}
	_, group, err := h.group(move.Group)
	if err != nil {
		return Move{}, err
	}
	old.Group = move.Group
	for _, mask := range move.Schemata.Masks {
		if now, found := group.Schemata.Mask(mask.Resource, mask.Cache); found {
			mask.Mask = now
			old.Schemata.Masks = append(old.Schemata.Masks, mask)
		}
	}
	for _, bandwidth := range move.Schemata.Bandwidths {
		if now, found := group.Schemata.Bandwidth(bandwidth.Resource, bandwidth.Cache); found {
			bandwidth.Bandwidth = now
			old.Schemata.Bandwidths = append(old.Schemata.Bandwidths, bandwidth)
		}
	}
	return old, nil
}

func (h *Host) group(name string) (numa.Resctrl, numa.ResctrlGroup, error) {
	state, err := h.read(name)
	if err != nil {
		return numa.Resctrl{}, numa.ResctrlGroup{}, err
	}
	group, found := state.Group(name)
	if !found {
		return numa.Resctrl{}, numa.ResctrlGroup{}, fs.ErrNotExist
	}
	return state.Info, group, nil
}

// move writes what differs, and reads it back.
func (h *Host) move(move Move) error {
	s, err := h.difference(move)
	if err != nil || s.text == "" {
		return err
	}
	if err := h.write(s); err != nil {
		return err
	}
	if s, err = h.difference(move); err == nil && s.text != "" {
		err = h.differs(s)
	}
	return err
}

// difference returns the write that is needed; its text is empty if none is.
func (h *Host) difference(move Move) (step, error) {
	info, group, err := h.group(move.Group)
	if err != nil {
		return step{}, err
	}
	m, err := newMember(info, group, Group{Schemata: move.Schemata})
	if err != nil {
		return step{}, err
	}
	schemata := numa.Schemata{Masks: m.write(m.pending()), Bandwidths: m.bandwidths}
	schemata.Sort()
	return step{move.Group, schemataFile, schemata.String()}, nil
}

func (h *Host) putBack(before []Move) error {
	var errs []error
	for _, move := range slices.Backward(before) {
		if err := h.move(move); err != nil {
			errs = append(errs, fmt.Errorf("put masks of %s back: %w", nameOf(move.Group), err))
		}
	}
	return errors.Join(errs...)
}
