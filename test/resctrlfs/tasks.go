package resctrlfs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// task is a process with one thread.
type task struct{ pid, closid, rmid int }

// Start adds a process to the root group. A pid is positive, and used once at a time.
func (f *FS) Start(pid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tasks = append(f.tasks, &task{pid: pid})
}

// End removes a process; it does nothing if there is none.
func (f *FS) End(pid int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tasks = slices.DeleteFunc(f.tasks, func(t *task) bool { return t.pid == pid })
}

// TaskGroups returns the text of /proc/<pid>/cpu_resctrl_groups; it has two lines, such
// as "res:dra-numa.1\nmon:\n". It is empty if there is no such process.
func (f *FS) TaskGroups(pid int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.task(pid)
	if t == nil {
		return ""
	}
	for _, g := range f.controlGroups() {
		if g.closid != t.closid {
			continue
		}
		control, monitor := g.name, ""
		if g == f.root {
			control = "/"
		}
		for _, child := range g.children {
			if child.rmid == t.rmid {
				monitor = child.name
			}
		}
		return fmt.Sprintf("res:%s\nmon:%s\n", control, monitor)
	}
	return ""
}

func (f *FS) task(pid int) *task {
	for _, t := range f.tasks {
		if t.pid == pid {
			return t
		}
	}
	return nil
}

// has reports whether a task is in the group. A control group has the tasks of its
// monitoring groups too.
func (g *group) has(t *task) bool {
	if g.parent == nil {
		return t.closid == g.closid
	}
	return t.closid == g.closid && t.rmid == g.rmid
}

func (f *FS) tasksText(g *group) string {
	var text strings.Builder
	for _, t := range f.tasks {
		if g.has(t) {
			fmt.Fprintln(&text, t.pid)
		}
	}
	return text.String()
}

// writeTasks moves processes, one after the other until one is refused.
func (f *FS) writeTasks(g *group, text string) error {
	f.newCommand(Linux612)
	for text != "" && text[0] != '\n' {
		var part string
		part, text, _ = strings.Cut(text, ",")
		part = strings.TrimSpace(part)
		pid, err := strconv.ParseInt(part, 10, 32)
		if err != nil {
			return f.refuse(syscall.EINVAL, "Task list parsing error pid %s", part)
		}
		if pid < 0 {
			return f.refuse(syscall.EINVAL, "Invalid pid %d", pid)
		}
		if err := f.moveTask(g, int(pid)); err != nil {
			f.say("Error while processing task %d", pid)
			return err
		}
	}
	return nil
}

func (f *FS) moveTask(g *group, pid int) error {
	t := f.task(pid)
	if t == nil {
		return f.refuse(syscall.ESRCH, "No task %d", pid)
	}
	if g.parent != nil && t.closid != g.closid {
		return f.refuse(syscall.EINVAL, "Can't move task to different control group")
	}
	t.closid, t.rmid = g.closid, g.rmid
	return nil
}
