package kernel

import (
	"context"
	_ "embed" // watch.sh, allowed.sh
	"fmt"
	"strconv"
	"strings"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

//go:embed watch.sh
var watchScript string

//go:embed allowed.sh
var allowedScript string

// Task is a thread of the node that ran on a watched CPU.
type Task struct {
	ID   int
	Name string // may be cut, as the kernel keeps 15 characters
	// Cgroup is its path in the cgroup v2 tree, with a leading slash; "" of a
	// task that is gone.
	Cgroup string
	flags  uint64 // PF_* of linux/sched.h; 0 of a task that is gone
}

// flagKernelThread is PF_KTHREAD of include/linux/sched.h.
const flagKernelThread = 0x00200000

// Kernel reports whether the task is a thread of the kernel. No cpuset sends those away
// that belong to one CPU (PF_NO_SETAFFINITY: ksoftirqd/4, migration/4, the workers of
// work queues), as they serve what runs there; and newer kernels place the others
// (kcompactd1, kthreadd) by themselves, near their memory: seen on Linux 7.2 in a
// partition of type root, and not on 6.12. Workers are gone after some idle minutes,
// psimon with the pressure trigger (of systemd, for one) that it serves; they are then
// known by their names only, which no pod of the tests uses.
func (t Task) Kernel() bool {
	return t.flags&flagKernelThread != 0 || t.Cgroup == "" && (strings.HasPrefix(t.Name, "kworker/") || t.Name == "psimon")
}

// String returns name, id and cgroup.
func (t Task) String() string {
	return fmt.Sprintf("%s (task %d of %q)", t.Name, t.ID, t.Cgroup)
}

// Watch begins to record which tasks the scheduler of the kernel puts on the
// CPUs: not samples but every switch, however short (the event sched_switch, see
// Documentation/trace/events.rst). What was recorded before is dropped.
// Unwatch must be called after use.
func (o *Observer) Watch(ctx context.Context, cpus cpuset.Set) error {
	args := []string{"start"}
	for cpu := range cpus.All() {
		args = append(args, strconv.Itoa(cpu))
	}
	if _, err := o.Run(ctx, watchScript, args...); err != nil {
		return fmt.Errorf("watch cpus %s: %w", cpus, err)
	}
	return nil
}

// Ran returns the tasks that ran on the watched CPUs since Watch, each once. It is
// an error if there were more than the kernel could keep.
func (o *Observer) Ran(ctx context.Context) ([]Task, error) {
	text, err := o.Run(ctx, watchScript, "list")
	var tasks []Task
	if err == nil {
		tasks, err = parseTasks(text)
	}
	if err != nil {
		return nil, fmt.Errorf("list tasks of the watched cpus: %w", err)
	}
	return tasks, nil
}

// Unwatch ends what Watch began. It is not an error if there is nothing.
func (o *Observer) Unwatch(ctx context.Context) error {
	_, err := o.Run(ctx, watchScript, "stop")
	return err
}

// parseTasks reads the output of watch.sh list.
func parseTasks(text string) ([]Task, error) {
	var tasks []Task
	complete := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		fields := strings.SplitN(line, " ", 5)
		switch {
		case line == "lost 0":
			complete = true
		case fields[0] == "lost":
			return nil, fmt.Errorf("the record has no room for more tasks: %q", line)
		case fields[0] == "task" && len(fields) == 5:
			task := Task{Name: strings.TrimSpace(fields[4])}
			var err error
			if task.ID, err = strconv.Atoi(fields[1]); err != nil {
				return nil, fmt.Errorf("parse task %q: %w", line, err)
			}
			if fields[2] != "-" && fields[3] != "-" {
				task.Cgroup = fields[3]
				if task.flags, err = strconv.ParseUint(fields[2], 10, 64); err != nil {
					return nil, fmt.Errorf("parse task %q: %w", line, err)
				}
			}
			tasks = append(tasks, task)
		default:
			return nil, fmt.Errorf("parse task %q: want a task", line)
		}
	}
	if !complete {
		return nil, fmt.Errorf("parse tasks: no number of lost ones in %q", text)
	}
	return tasks, nil
}

// Allowed is a set of CPUs that some tasks of user space may run on.
type Allowed struct {
	CPUs  cpuset.Set
	Tasks int    // how many may run on exactly these
	One   string // id and name of one of them
}

// AllowedOutside returns what the tasks of user space may run on that are not in
// these cgroups, given with a leading slash, or below: every set once.
func (o *Observer) AllowedOutside(ctx context.Context, cgroups ...string) ([]Allowed, error) {
	text, err := o.Run(ctx, allowedScript, cgroups...)
	if err != nil {
		return nil, err
	}
	return parseAllowed(text)
}

// parseAllowed reads the output of allowed.sh.
func parseAllowed(text string) ([]Allowed, error) {
	var sets []Allowed
	for line := range strings.Lines(text) {
		fields := strings.SplitN(strings.TrimSpace(line), " ", 4)
		if len(fields) != 4 || fields[0] != "allowed" {
			return nil, fmt.Errorf("parse allowed CPUs %q: want a list", line)
		}
		cpus, err := cpuset.Parse(fields[1])
		if err != nil {
			return nil, fmt.Errorf("parse allowed CPUs %q: %w", line, err)
		}
		tasks, err := strconv.Atoi(fields[2])
		if err != nil {
			return nil, fmt.Errorf("parse allowed CPUs %q: %w", line, err)
		}
		sets = append(sets, Allowed{CPUs: cpus, Tasks: tasks, One: fields[3]})
	}
	if len(sets) == 0 {
		return nil, fmt.Errorf("parse allowed CPUs: no task in %q", text)
	}
	return sets, nil
}
