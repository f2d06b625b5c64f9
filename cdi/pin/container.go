package pin

import (
	"errors"
	"fmt"
	"strings"
)

// Container returns a container's cgroup, as a path below the cgroup v2 mount. procCgroup
// is the text of /proc/<pid>/cgroup of the container's first process.
//
// Runtimes put the container's id into the name of its cgroup (<id>,
// cri-containerd-<id>.scope, crio-<id>.scope). crun may put the process into a child of
// that cgroup. So the container's cgroup is the outermost one whose name has the id.
//
// If no name has it, the process is in a cgroup that is not the container's. This is so
// for runtimes that run containers in virtual machines: their pid is the hypervisor's.
// Container returns an error then, because such a cgroup must not become a partition.
func Container(procCgroup, id string) (string, error) {
	if id == "" {
		return "", errors.New("the OCI state has no container id")
	}
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
			if strings.Contains(name, id) {
				return strings.Join(names[:i+1], "/"), nil
			}
		}
		return "", fmt.Errorf("the process is in cgroup %q, which does not have the container's id %s in its name: "+
			"it is not the container's cgroup, as with a runtime that uses virtual machines: %w", "/"+own, id, ErrNotSupported)
	}
	return "", fmt.Errorf("no cgroup v2 entry in /proc/<pid>/cgroup (%q): %w", procCgroup, ErrNotSupported)
}
