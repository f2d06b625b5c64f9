package numa

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// ResctrlState is what a mounted resctrl filesystem has: the resources and the groups
// that share them.
type ResctrlState struct {
	Info   Resctrl
	Groups []ResctrlGroup // the default group comes first, with the name "". The others are by name
	Usage  []WayUsage     // by resource, then cache
}

// ResctrlGroup is one group of CPUs and tasks that share ways and bandwidth. A task that
// is in no group but the default one belongs to the group of the CPU that it runs on.
//
// Invariant: apart from pseudo-locked groups, no two groups have the same CPU, and each
// online CPU is in one of them.
type ResctrlGroup struct {
	Name     string // of its folder; empty for the default group
	Mode     ResctrlMode
	Schemata Schemata
	CPUs     cpuset.Set // cpus_list: online CPUs only
	Tasks    TaskPresence
	Monitors []MonitorGroup // by name; nil from ReadResctrlGroups
}

// MonitorGroup is a part of a group whose use of caches is counted by itself.
type MonitorGroup struct {
	Name string
	CPUs cpuset.Set // of those of its group
}

// ResctrlMode is what the kernel says about overlaps of a group's masks with others.
type ResctrlMode string

// The modes. The empty mode is that of a machine that can only count.
const (
	ModeShareable ResctrlMode = "shareable"
	ModeExclusive ResctrlMode = "exclusive" // the kernel refuses overlaps
	ModeLockSetup ResctrlMode = "pseudo-locksetup"
	ModeLocked    ResctrlMode = "pseudo-locked" // a part of the cache holds fixed data
)

// TaskPresence is whether a group has tasks of its own.
type TaskPresence int

// Unknown is the zero value. It has to count as HasTasks wherever an overlap would hurt.
const (
	TasksUnknown TaskPresence = iota // the reader sees none, but cannot see all
	NoTasks
	HasTasks
)

// ResctrlView is what a reader of resctrl sees of it.
type ResctrlView struct {
	// AllTasks says that the reader is in the PID namespace of the host. A reader in
	// another one does not see the tasks outside of it: show_rdt_tasks in
	// fs/resctrl/rdtgroup.c.
	AllTasks bool
}

// ReadResctrl reads the groups of a resctrl filesystem; mount is where it is mounted. It
// returns nil if it is not mounted there. It leaves out groups that are removed meanwhile.
func ReadResctrl(mount fs.FS, view ResctrlView) (*ResctrlState, error) {
	t := fleetingTree(mount)
	info, err := t.resctrlInfo("info")
	if err != nil || info == nil {
		return nil, err
	}
	state := &ResctrlState{Info: *info}
	for _, cache := range info.Caches {
		usage, _, err := parseFile(t, "info/"+cache.Name+"/bit_usage", cache.parseUsage)
		if err != nil {
			return nil, err
		}
		state.Usage = append(state.Usage, usage...)
	}
	names, err := t.folders(".")
	if err == nil {
		state.Groups, err = t.resctrlGroups(*info, view, names)
	}
	for i := range state.Groups {
		if err == nil {
			state.Groups[i].Monitors, err = t.monitorGroups(path.Join(state.Groups[i].Name, monitorsFolder))
		}
	}
	if err != nil {
		return nil, err
	}
	return state, nil
}

// monitorsFolder has the monitoring groups of a group.
const monitorsFolder = "mon_groups"

// ReadResctrlGroups reads the default group and some others, of a filesystem that has
// these resources. It leaves out groups that do not exist. It does not read their
// monitoring groups: there may be hundreds.
func ReadResctrlGroups(mount fs.FS, view ResctrlView, info Resctrl, names ...string) ([]ResctrlGroup, error) {
	return fleetingTree(mount).resctrlGroups(info, view, names)
}

// resctrlGroups reads the default group, and those of the names that are groups.
func (t tree) resctrlGroups(info Resctrl, view ResctrlView, names []string) (groups []ResctrlGroup, err error) {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.Contains([]string{"", "info", "mon_data", monitorsFolder}, name)
	})
	for _, name := range append([]string{""}, names...) {
		group, found, err := t.resctrlGroup(info, view, name)
		if err != nil {
			return nil, err
		}
		if found {
			groups = append(groups, group)
		}
	}
	return groups, nil
}

func fleetingTree(mount fs.FS) tree {
	t := newTree(mount)
	t.fleeting = true
	return t
}

// resctrlGroup reads one group. A group that has no list of CPUs is gone, because each
// has one; a locked group does not show it while its cache has no CPU.
func (t tree) resctrlGroup(info Resctrl, view ResctrlView, name string) (group ResctrlGroup, found bool, err error) {
	group.Name = name
	folder := cmp.Or(name, ".")
	mode, _, err := parseFile(t, path.Join(folder, "mode"), parseResctrlMode)
	if err != nil {
		return ResctrlGroup{}, false, err
	}
	group.Mode = mode
	if group.Schemata, _, err = parseFile(t, path.Join(folder, "schemata"), info.ParseSchemata); err != nil {
		return ResctrlGroup{}, false, err
	}
	if name != "" { // each task that is in no other group is in the default one
		if group.Tasks, err = t.tasksOf(folder, view); err != nil {
			return ResctrlGroup{}, false, err
		}
	}
	group.CPUs, found, err = t.cpusOfGroup(folder)
	if err != nil || !found && mode != ModeLocked {
		return ResctrlGroup{}, false, err
	}
	return group, true, nil
}

// cpusOfGroup reads the CPUs of a group; found is false if the group is gone.
func (t tree) cpusOfGroup(folder string) (cpus cpuset.Set, found bool, err error) {
	name := path.Join(folder, "cpus_list")
	list, found, err := t.text(name)
	if err != nil || !found {
		return cpuset.Set{}, false, err
	}
	if cpus, err = cpuset.Parse(list); err != nil {
		return cpuset.Set{}, false, fmt.Errorf("read %s: %w", name, err)
	}
	return cpus, true, nil
}

// tasksOf reports whether a group has tasks. The kernel leaves out those that have no
// number in the reader's PID namespace.
func (t tree) tasksOf(folder string, view ResctrlView) (TaskPresence, error) {
	text, found, err := t.text(path.Join(folder, "tasks"))
	switch {
	case err != nil:
		return TasksUnknown, err
	case text != "":
		return HasTasks, nil
	case found && view.AllTasks:
		return NoTasks, nil
	}
	return TasksUnknown, nil
}

// monitorGroups reads the monitoring groups in a folder.
func (t tree) monitorGroups(folder string) (list []MonitorGroup, err error) {
	names, err := t.folders(folder)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		cpus, found, err := t.cpusOfGroup(path.Join(folder, name))
		if err != nil {
			return nil, err
		}
		if found {
			list = append(list, MonitorGroup{name, cpus})
		}
	}
	return list, nil
}

// folders returns the names of the folders in a folder, in order; none if it is absent.
func (t tree) folders(folder string) (names []string, err error) {
	entries, err := fs.ReadDir(t.root, folder)
	if err != nil && !t.isAbsent(err) {
		return nil, err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

func parseResctrlMode(text string) (ResctrlMode, error) {
	mode := ResctrlMode(text)
	if !slices.Contains([]ResctrlMode{ModeShareable, ModeExclusive, ModeLockSetup, ModeLocked}, mode) {
		return "", fmt.Errorf("%.80q is not the mode of a group", text)
	}
	return mode, nil
}

// Group returns the group with a name; found is false if there is none.
func (s ResctrlState) Group(name string) (group ResctrlGroup, found bool) {
	for i := range s.Groups { // a set of CPUs is 1 KiB
		if s.Groups[i].Name == name {
			return s.Groups[i], true
		}
	}
	return ResctrlGroup{}, false
}

// Online returns the CPUs that can be in groups.
func (s ResctrlState) Online() (cpus cpuset.Set) {
	for i := range s.Groups {
		if group := &s.Groups[i]; group.Mode != ModeLocked {
			cpus = cpus.Union(group.CPUs)
		}
	}
	return cpus
}

// ResctrlOptions returns the options that resctrl is mounted with, such as cdp and
// mba_MBps. Mounts is the text of /proc/<pid>/mounts. Found is false if resctrl is not
// mounted for that process.
func ResctrlOptions(mounts string) (options []string, found bool) {
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line) // what is mounted, where, filesystem, options
		if len(fields) >= 4 && fields[2] == "resctrl" {
			return strings.Split(fields[3], ","), true
		}
	}
	return nil, false
}
