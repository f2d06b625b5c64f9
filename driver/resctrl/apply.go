package resctrl

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"syscall"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
)

// Report is what the kernel made of a wish.
type Report struct {
	State numa.ResctrlState // of the groups, read after the last write; [Host.Apply] reads only the groups of its wish
	Wrote []string          // each change that was made, such as "dra-numa.0/cpus_list <- 4-7"

	// Missing are the groups that cannot be made now, and why: the machine has no more
	// classes, or a counter is not free yet.
	Missing []Missing
	// Shared are groups that the kernel does not make exclusive, and why.
	Shared []Missing
}

// Missing is a group that has not all that it should have.
type Missing struct {
	Group string
	Why   error
}

// Apply gives some groups what they should have, and the default group if it is named. It
// compares their masks with each other only: the masks of other groups must not be in
// their way. To release CPUs of a group, apply it without them. All groups must exist; see
// [Host.Repair]. If the kernel refuses something for one group, the others get theirs.
func (h *Host) Apply(want Wanted) (Report, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := want.validate(); err != nil {
		return Report{}, err
	}
	state, err := h.read(want.namesToRead()...)
	if err != nil {
		return Report{}, err
	}
	return h.applyTo(state, want)
}

// ApplyTo is Apply for a caller that has read the state a short while ago. It reads the
// groups only after they are written.
func (h *Host) ApplyTo(state numa.ResctrlState, want Wanted) (Report, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := want.validate(); err != nil {
		return Report{}, err
	}
	return h.applyTo(state, want)
}

func (h *Host) applyTo(state numa.ResctrlState, want Wanted) (Report, error) {
	names, all := want.namesToRead(), state.Groups
	state.Groups = make([]numa.ResctrlGroup, 0, len(names)+1) // a set of CPUs is 1 KiB
	for i := range all {
		if all[i].Name == "" || slices.Contains(names, all[i].Name) {
			state.Groups = append(state.Groups, all[i])
		}
	}
	for _, group := range want.Groups {
		if _, found := state.Group(group.Name); !found {
			return Report{}, fmt.Errorf("group %s: %w", group.Name, fs.ErrNotExist)
		}
		if !group.CPUs.IsSubsetOf(state.Online()) {
			names = nil // they are offline, or in another group: only all groups tell
		}
	}
	var report Report
	if names == nil {
		return report, h.converge(&report, want, nil, nil)
	}
	return report, h.converge(&report, want, names, &state)
}

// Repair gives all groups of ours what they should have, whatever happened to them: after
// a start, a reboot, a remount, when CPUs come and go, and when another program wrote. It
// makes the groups that do not exist, and removes those that are not wanted. If the kernel
// refuses something for one group, the others get theirs. Groups of others that have CPUs
// of ours keep them, which is an error.
func (h *Host) Repair(want Wanted) (Report, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := want.validate(); err != nil {
		return Report{}, err
	}
	state, err := h.read()
	if err != nil {
		return Report{}, err
	}
	var report Report
	var errs []error
	for _, group := range state.Groups {
		if IsOurs(group.Name) && !slices.Contains(want.names(), group.Name) {
			errs = append(errs, h.remove(&report, group.Name))
		}
	}
	for _, group := range want.Groups {
		if _, found := state.Group(group.Name); !found {
			errs = append(errs, h.make(&report, group))
		}
	}
	errs = append(errs, h.converge(&report, want, nil, nil))
	return report, errors.Join(errs...)
}

func (h *Host) remove(report *Report, name string) error {
	err := h.files.Rmdir(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("group %s: %w", name, err)
	}
	report.Wrote = append(report.Wrote, "rmdir "+name)
	return nil
}

// make makes a group. It is an error that there is no class left only if the group should
// have CPUs.
func (h *Host) make(report *Report, group Group) error {
	err := h.files.Mkdir(group.Name)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err == nil:
		report.Wrote = append(report.Wrote, "mkdir "+group.Name)
		return nil
	}
	err = h.refused(err)
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EBUSY) {
		report.Missing = append(report.Missing, Missing{group.Name, err})
		if group.CPUs.IsEmpty() {
			return nil
		}
	}
	return fmt.Errorf("group %s: %w", group.Name, err)
}

// converge plans, writes and reads back until the groups have what they should have. A
// group for which the kernel refuses something stays as it is from then on. Each round
// but the last has one more such group, so the rounds end. The first one is of the state
// that was known, if there is one; it may be outdated.
func (h *Host) converge(report *Report, want Wanted, names []string, known *numa.ResctrlState) error {
	failed := map[string]error{}
	for written := false; ; {
		isKnown := known != nil
		if isKnown {
			report.State, known = *known, nil
		} else {
			state, err := h.read(names...)
			if err != nil {
				return errors.Join(append(inOrder(failed), err)...)
			}
			report.State = state
		}
		p := newPlan(report.State, want, failed)
		if !isKnown {
			maps.Copy(failed, p.errs)
		}
		switch {
		case isKnown && len(p.steps) == 0:
			continue
		case len(p.steps) == 0:
			return errors.Join(inOrder(failed)...)
		case written: // all was accepted, and still the kernel shows something else
			for _, s := range p.steps {
				failed[s.group] = h.differs(s)
			}
			return errors.Join(inOrder(failed)...)
		}
		refused, err := h.writeAll(report, p.steps)
		switch {
		case err == nil:
			written = !isKnown
		case refused.file == modeFile && refused.text == string(numa.ModeExclusive)+"\n":
			report.Shared = append(report.Shared, Missing{refused.group, err})
			want.Groups = slices.Clone(want.Groups)
			for i := range want.Groups {
				if want.Groups[i].Name == refused.group {
					want.Groups[i].Exclusive = false
				}
			}
		default:
			failed[refused.group] = err
		}
	}
}

// writeAll writes steps in order. It returns the first that is refused.
func (h *Host) writeAll(report *Report, steps []step) (refused step, err error) {
	for _, s := range steps {
		if err := h.write(s); err != nil {
			return s, err
		}
		report.Wrote = append(report.Wrote, s.name()+" <- "+oneLine(s.text))
	}
	return step{}, nil
}

func (h *Host) write(s step) error {
	if err := h.files.Write(s.name(), s.text); err != nil {
		return fmt.Errorf("write %q to %s: %w", oneLine(s.text), s.name(), h.refused(err))
	}
	return nil
}

// refused adds to an error what the kernel says about it.
func (h *Host) refused(err error) error {
	status, failed := fs.ReadFile(h.files, "info/last_cmd_status")
	if text := oneLine(string(status)); failed == nil && text != "" && text != "ok" {
		return fmt.Errorf("%w: %s", err, text)
	}
	return err
}

// differs says what a file shows in place of what was written to it.
func (h *Host) differs(s step) error {
	text, err := fs.ReadFile(h.files, s.name())
	if err != nil {
		return err
	}
	return fmt.Errorf("%s reads %q: want %q", s.name(), oneLine(string(text)), oneLine(s.text))
}

// oneLine joins the lines of a text.
func oneLine(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.TrimSpace(strings.Join(lines, ", "))
}

func inOrder(failed map[string]error) (list []error) {
	for _, name := range slices.Sorted(maps.Keys(failed)) {
		list = append(list, fmt.Errorf("%s: %w", nameOf(name), failed[name]))
	}
	return list
}

// nameOf names a group for people.
func nameOf(group string) string {
	if group == "" {
		return "the default group"
	}
	return "group " + group
}
