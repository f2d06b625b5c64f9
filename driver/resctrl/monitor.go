package resctrl

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/dra-driver-numa/dra-driver-numa/numa"
	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// Monitor is a monitoring group of the default group: a claim whose use of caches the
// kernel counts by itself. It takes no class, and limits nothing.
type Monitor struct {
	Name string     // see [MonitorName]
	CPUs cpuset.Set // no two monitors have the same CPU
}

// monitorsFolder has the monitoring groups of the default group. Groups of ours have none:
// to write the CPUs of a group empties its monitoring groups.
const monitorsFolder = "mon_groups"

// ErrNoCounter says that the kernel cannot count one more group: all RMIDs are in use, or
// lines of a group that has ended may still be in a cache.
var ErrNoCounter = errors.New("the kernel has no counter (RMID) left")

// MonitorName returns the name of the monitoring group of a claim.
func MonitorName(claimUID string) string { return prefix + claimUID }

// IsOurMonitor reports whether a monitoring group of the default group is of a claim.
func IsOurMonitor(name string) bool { return strings.HasPrefix(name, prefix) }

// MonitorPath returns the folder of a monitoring group of the default group, below the
// mount.
func MonitorPath(name string) string { return path.Join(monitorsFolder, name) }

// Monitoring is what the default group has.
type Monitoring struct {
	CPUs   cpuset.Set
	Groups []numa.MonitorGroup // by name, also those of other tools
}

// MonitoringOf returns what a state says. All groups of the state must have been read.
func MonitoringOf(state numa.ResctrlState) Monitoring {
	root, _ := state.Group("")
	return Monitoring{root.CPUs, root.Monitors}
}

// MonitorRoom returns how many monitoring groups of ours there can be, if the groups that
// are wanted exist: each group needs an RMID. All groups of the state must have been read.
func MonitorRoom(state numa.ResctrlState, wanted []Group) int {
	rmids := 0
	for _, monitor := range state.Info.Monitors {
		if rmids == 0 || monitor.RMIDs < rmids {
			rmids = monitor.RMIDs
		}
	}
	taken := len(state.Groups)
	for _, group := range wanted {
		if _, exists := state.Group(group.Name); !exists {
			taken++
		}
	}
	for _, group := range state.Groups {
		for _, monitor := range group.Monitors {
			if group.Name != "" || !IsOurMonitor(monitor.Name) {
				taken++
			}
		}
	}
	return max(0, rmids-taken)
}

// Monitor makes monitoring groups of the default group, and gives them their CPUs: those
// that the default group has, and no monitoring group of another tool. It returns what
// there is then. After [ErrNoCounter], it makes no more groups; the others get their CPUs.
func (h *Host) Monitor(now Monitoring, want ...Monitor) (Monitoring, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now.Groups = slices.Clone(now.Groups)
	var errs []error
	full := false
	for _, m := range want {
		i, exists := slices.BinarySearchFunc(now.Groups, m.Name, byName)
		cpus := now.available(m)
		switch {
		case exists && now.Groups[i].CPUs == cpus, !exists && (full || cpus.IsEmpty()):
			continue
		case !exists:
			err := h.makeMonitor(m.Name)
			if err != nil {
				full = full || errors.Is(err, ErrNoCounter)
				errs = append(errs, err)
				continue
			}
			now.Groups = slices.Insert(now.Groups, i, numa.MonitorGroup{Name: m.Name})
		}
		granted, err := h.writeMonitor(m.Name, cpus)
		errs = append(errs, err)
		now.give(i, granted)
	}
	return now, errors.Join(errs...)
}

// Unmonitor removes monitoring groups of ours. It returns what there is then.
func (h *Host) Unmonitor(now Monitoring, names ...string) (Monitoring, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now.Groups = slices.Clone(now.Groups)
	var errs []error
	for _, name := range names {
		i, exists := slices.BinarySearchFunc(now.Groups, name, byName)
		if !exists || !IsOurMonitor(name) {
			continue
		}
		if err := h.files.Rmdir(MonitorPath(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("monitoring group %s: %w", name, err))
			continue
		}
		now.Groups = slices.Delete(now.Groups, i, i+1)
	}
	return now, errors.Join(errs...)
}

// BytesOf returns the bytes that are counted for a group in one level-3 cache.
func (h *Host) BytesOf(group string, cache int) (numa.Counters, error) {
	return numa.ReadBytesOf(h.files, group, cache)
}

func byName(group numa.MonitorGroup, name string) int { return strings.Compare(group.Name, name) }

// available returns the CPUs that a monitor can have. The kernel takes CPUs from other
// monitoring groups without a word, so those of other tools are left out.
func (m Monitoring) available(want Monitor) cpuset.Set {
	cpus := want.CPUs.Intersection(m.CPUs)
	for _, group := range m.Groups {
		if !IsOurMonitor(group.Name) {
			cpus = cpus.Difference(group.CPUs)
		}
	}
	return cpus
}

// give notes that a group has these CPUs now, and no other group.
func (m Monitoring) give(to int, cpus cpuset.Set) {
	for i := range m.Groups {
		m.Groups[i].CPUs = m.Groups[i].CPUs.Difference(cpus)
	}
	m.Groups[to].CPUs = cpus
}

// makeMonitor makes a monitoring group, unless it exists.
func (h *Host) makeMonitor(name string) error {
	err := h.files.Mkdir(MonitorPath(name))
	switch {
	case err == nil || errors.Is(err, fs.ErrExist):
		return nil
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EBUSY):
		return fmt.Errorf("%w: %w", ErrNoCounter, h.refused(err))
	}
	return fmt.Errorf("monitoring group %s: %w", name, h.refused(err))
}

// writeMonitor writes the CPUs of a monitoring group, and returns those that it has then.
func (h *Host) writeMonitor(name string, cpus cpuset.Set) (granted cpuset.Set, err error) {
	s := step{MonitorPath(name), cpusFile, cpus.String() + "\n"}
	err = h.write(s)
	text, unread := fs.ReadFile(h.files, s.name())
	if unread == nil {
		granted, unread = cpuset.Parse(strings.TrimSpace(string(text)))
	}
	switch {
	case err != nil:
		return granted, err
	case unread != nil:
		return granted, fmt.Errorf("read %s: %w", s.name(), unread)
	case granted != cpus:
		return granted, h.differs(s)
	}
	return granted, nil
}
