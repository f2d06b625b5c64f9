package nodestate

// TaskGroup is tasks of one cgroup that are in the same group of resctrl.
type TaskGroup struct {
	// Cgroup is the end of the cgroup's path below the mount point: the kernel leaves out
	// what the reader's own cgroup has in common with it.
	Cgroup string `json:"cgroup"`
	Group  string `json:"group"` // of resctrl; empty for the default group: then the group of the CPU counts
	Tasks  int    `json:"tasks"` // how many threads
}

// TasksPart is that of Tasks.
const TasksPart Part = "tasks"
