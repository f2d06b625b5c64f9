package main

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/dra-driver-numa/dra-driver-numa/cdi/pin"
	"github.com/dra-driver-numa/dra-driver-numa/driver/ledger"
	"github.com/dra-driver-numa/dra-driver-numa/driver/nodestate"
)

// hasWays reports whether a claim has ways of a cache. Otherwise it does not matter which
// groups of resctrl tasks are in.
func hasWays(grants []ledger.Grant) bool {
	return slices.ContainsFunc(grants, func(grant ledger.Grant) bool {
		return slices.ContainsFunc(grant.Shares, func(share ledger.Share) bool { return share.Cache() != nil })
	})
}

// taskGroups counts the tasks of each cgroup by their group of resctrl. proc is that of the
// host, and may be of another PID namespace. Tasks may end meanwhile.
func taskGroups(proc fs.FS) ([]nodestate.TaskGroup, error) {
	processes, err := numbers(proc, ".")
	if err != nil {
		return nil, err
	}
	counts := make(map[nodestate.TaskGroup]int)
	for _, process := range processes {
		text, err := fs.ReadFile(proc, process+"/cgroup")
		if isGone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		of := nodestate.TaskGroup{Cgroup: cgroupEnd(string(text))}
		threads, err := numbers(proc, process+"/task")
		if err != nil && !isGone(err) {
			return nil, err
		}
		for _, thread := range threads {
			text, err := fs.ReadFile(proc, path.Join(process, "task", thread, "cpu_resctrl_groups"))
			if isGone(err) {
				continue
			}
			if err == nil {
				of.Group, _, err = pin.ResctrlGroup(string(text))
			}
			if err != nil {
				return nil, err
			}
			counts[of]++
		}
	}
	list := []nodestate.TaskGroup{}
	for of, count := range counts {
		of.Tasks = count
		list = append(list, of)
	}
	slices.SortFunc(list, func(a, b nodestate.TaskGroup) int {
		return cmp.Or(cmp.Compare(a.Cgroup, b.Cgroup), cmp.Compare(a.Group, b.Group))
	})
	return list, nil
}

// numbers returns the names in a folder of /proc that are numbers.
func numbers(proc fs.FS, folder string) (names []string, err error) {
	entries, err := fs.ReadDir(proc, folder)
	for _, entry := range entries {
		if _, notNumber := strconv.Atoi(entry.Name()); notNumber == nil {
			names = append(names, entry.Name())
		}
	}
	return names, err
}

// isGone reports whether a task has ended: its folder is gone, or nothing can be read of it.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH)
}

// cgroupEnd returns the path of a cgroup of version 2 in a file /proc/<pid>/cgroup, without
// the steps up from the reader's own cgroup.
func cgroupEnd(text string) string {
	for line := range strings.Lines(text) {
		cgroup, found := strings.CutPrefix(strings.TrimSpace(line), "0::/")
		for found {
			rest, up := strings.CutPrefix(cgroup, "..")
			if !up || rest != "" && rest[0] != '/' {
				return cgroup
			}
			cgroup = strings.TrimPrefix(rest, "/")
		}
	}
	return ""
}
