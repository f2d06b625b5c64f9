package pin

import (
	"fmt"
	"strings"
)

// Container returns a container's cgroup, as a path below the cgroup v2 mount.
// procCgroup is the text of /proc/<pid>/cgroup of the container's first process.
//
// Runtimes put the container's id into the name of its cgroup
// (<id>, cri-containerd-<id>.scope, crio-<id>.scope), and crun may put
// the process into a child of that cgroup. So the container's cgroup is the outermost
// one whose name contains the id. If no name contains it, it is the process's own.
func Container(procCgroup, id string) (string, error) {
	for line := range strings.Lines(procCgroup) {
		own, isV2 := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::/")
		if !isV2 {
			continue
		}
		if own == "" || strings.HasPrefix(own, "../") || own == ".." {
			return "", fmt.Errorf("the process is in cgroup %q, want a cgroup of its own below the mount", "/"+own)
		}
		names := strings.Split(own, "/")
		for i, name := range names {
			if id != "" && strings.Contains(name, id) {
				return strings.Join(names[:i+1], "/"), nil
			}
		}
		return own, nil
	}
	return "", fmt.Errorf("no cgroup v2 entry in /proc/<pid>/cgroup (%q): %w", procCgroup, ErrNotSupported)
}
