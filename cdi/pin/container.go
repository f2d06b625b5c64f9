package pin

import (
	"fmt"
	"strings"
)

// Container finds a container's cgroup, as a path below the cgroup v2 mount,
// in procCgroup, the text of /proc/<pid>/cgroup of its first process.
//
// Runtimes put the container's id into the name of its cgroup
// (<id>, cri-containerd-<id>.scope, crio-<id>.scope), and crun may put
// the process into a child of that. So the outermost cgroup whose name contains
// the id is the container's; where none does it is the process's own.
func Container(procCgroup, id string) (string, error) {
	for line := range strings.Lines(procCgroup) {
		own, isV2 := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::/")
		if !isV2 {
			continue
		}
		if own == "" || strings.HasPrefix(own, "../") || own == ".." {
			return "", fmt.Errorf("the process is in cgroup %q, not in one of its own below the mount", "/"+own)
		}
		names := strings.Split(own, "/")
		for i, name := range names {
			if id != "" && strings.Contains(name, id) {
				return strings.Join(names[:i+1], "/"), nil
			}
		}
		return own, nil
	}
	return "", fmt.Errorf("the process is in no cgroup v2 (%q): %w", procCgroup, ErrNotSupported)
}
