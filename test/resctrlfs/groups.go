package resctrlfs

import (
	"math/bits"
	"path"
	"slices"
	"strings"
	"syscall"
)

// mkdir makes a control group below the mount, or a monitoring group in a folder
// mon_groups. An error that the kernel finds before it asks resctrl leaves
// last_cmd_status as it was.
func (f *FS) mkdir(name string) error {
	parent, err := f.findNew(name)
	if err != nil {
		return err
	}
	base := path.Base(name)
	if strings.Contains(base, "\n") {
		return syscall.EINVAL
	}
	isControl := parent.group == f.root && parent.kind == isGroup && f.machine.classes() > 0
	isMonitoring := parent.kind == monGroups && base != "mon_groups"
	switch {
	case !isControl && (f.machine.RMIDs == 0 || !isMonitoring && f.machine.Kernel == Linux612):
		return syscall.EPERM
	case parent.group == nil:
		return syscall.ENODEV // info, and folders in it
	}
	f.newCommand(Linux72)
	if isControl {
		return f.mkdirControl(base)
	}
	if !isMonitoring {
		return syscall.EPERM
	}
	g := &group{name: base, parent: parent.group, closid: parent.group.closid}
	if err := f.takeRMID(g); err != nil {
		return err
	}
	parent.group.children = append(parent.group.children, g)
	return nil
}

func (f *FS) mkdirControl(name string) error {
	g := &group{name: name}
	if g.closid = f.freeClass(); g.closid < 0 {
		return f.refuse(syscall.ENOSPC, "Out of CLOSIDs")
	}
	if err := f.takeRMID(g); err != nil {
		return err
	}
	if err := f.initialize(g); err != nil {
		f.releaseRMID(g)
		return err
	}
	f.groups = append(f.groups, g)
	return nil
}

// freeClass returns the lowest CLOSID that no group has, or -1.
func (f *FS) freeClass() int {
	taken := make([]bool, f.machine.classes())
	for _, g := range f.controlGroups() {
		taken[g.closid] = true
	}
	return slices.Index(taken, false)
}

// initialize gives a new group all ways that are free or shared: of these, the lowest
// that follow each other. Values of lines before one that is refused stay.
func (f *FS) initialize(g *group) error {
	m := f.machine
	for _, s := range f.schemas {
		staged := map[int]uint64{}
		for _, id := range f.domains() {
			staged[id] = s.initial
			if !s.isCache {
				continue
			}
			shared, used := m.Shareable, m.Shareable
			for _, other := range f.controlGroups() {
				for _, s := range f.schemas { // code and data are in the same cache
					if !s.isCache {
						continue
					}
					used |= s.values[id][other.closid]
					if !other.exclusive {
						shared |= s.values[id][other.closid]
					}
				}
			}
			staged[id] = firstRun(shared | m.full()&^used)
			if bits.OnesCount64(staged[id]) < m.MinBits {
				return f.refuse(syscall.ENOSPC, "No space on %s:%d", s.name, id)
			}
		}
		for id, value := range staged {
			s.values[id][g.closid] = value
		}
	}
	return nil
}

// rmdir never changes last_cmd_status.
func (f *FS) rmdir(name string) error {
	n, err := f.find(name)
	switch {
	case err != nil:
		return err
	case !n.isFolder():
		return syscall.ENOTDIR
	case name == ".":
		return syscall.EBUSY // a mount point
	case n.kind != isGroup:
		return syscall.EPERM
	}
	g := n.group
	heir := f.root
	if g.parent != nil {
		heir = g.parent
		g.parent.children = slices.DeleteFunc(g.parent.children, func(other *group) bool { return other == g })
	} else {
		f.groups = slices.DeleteFunc(f.groups, func(other *group) bool { return other == g })
		f.root.cpus = f.root.cpus.Union(g.cpus)
	}
	for _, t := range f.tasks {
		if g.has(t) {
			t.closid, t.rmid = heir.closid, heir.rmid
		}
	}
	f.releaseRMID(g)
	for _, child := range g.children {
		f.releaseRMID(child)
	}
	return nil
}

func (f *FS) rename(from, to string) error {
	n, err := f.find(from)
	if err != nil {
		return err
	}
	parent, err := f.find(path.Dir(to))
	if err != nil {
		return err
	}
	if !parent.isFolder() {
		return syscall.ENOTDIR
	}
	target, err := f.find(to)
	switch {
	case from == to:
		return nil
	case err == nil && target.isFolder() && !n.isFolder():
		return syscall.EISDIR
	case err == nil && !target.isFolder() && n.isFolder():
		return syscall.ENOTDIR
	}
	exists := err == nil
	if n.group == nil || parent.group == nil {
		return syscall.ENOENT // info
	}
	f.newCommand(Linux612)
	if !n.isFolder() {
		f.status = "Source and destination must be directories" // without a newline
		return syscall.EPERM
	}
	if err := f.mayMove(n, parent, path.Base(to)); err != nil {
		return err
	}
	if exists {
		return syscall.EEXIST
	}
	f.move(n.group, parent.group, path.Base(to))
	return nil
}

// mayMove refuses to move a folder that is no monitoring group, or to a place where none
// can be.
func (f *FS) mayMove(n, parent node, name string) error {
	switch {
	case n.kind != isGroup || n.group.parent == nil:
		return f.refuse(syscall.EPERM, "Source must be a MON group")
	case parent.kind != monGroups || name == "mon_groups":
		return f.refuse(syscall.EPERM, "Destination must be a mon_groups subdirectory")
	case !n.group.cpus.IsEmpty() && n.group.parent != parent.group:
		return f.refuse(syscall.EPERM, "Cannot move a MON group that monitors CPUs")
	}
	return nil
}

// move gives a monitoring group another name and another parent. Its tasks go with it.
func (f *FS) move(g, parent *group, name string) {
	g.name = name
	if g.parent == parent {
		return
	}
	g.parent.children = slices.DeleteFunc(g.parent.children, func(other *group) bool { return other == g })
	parent.children = append(parent.children, g)
	g.parent, g.closid = parent, parent.closid
	for _, t := range f.tasks {
		if t.rmid == g.rmid {
			t.closid = parent.closid
		}
	}
}
