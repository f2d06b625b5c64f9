package pin

import (
	"fmt"
	"strings"
)

// ResctrlGroup returns the group of resctrl that a task is in, which is empty for the
// default group, and the group of its CPU then counts. The text is that of
// /proc/<pid>/cpu_resctrl_groups; proc_resctrl_show in fs/resctrl/rdtgroup.c. Mounted is
// false if no resctrl is mounted.
func ResctrlGroup(text string) (group string, mounted bool, err error) {
	for line := range strings.Lines(text) {
		if name, found := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "res:"); found {
			return strings.TrimPrefix(name, "/"), name != "", nil
		}
	}
	return "", false, fmt.Errorf("no line res: in %.80q", text)
}
