// Package proc reads what a process uses from /proc.
package proc

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// clockTick is USER_HZ, the unit of times in /proc on all architectures of Linux that
// Kubernetes runs on.
const clockTick = time.Second / 100

// CPUTime returns the user and system time of a process, the fields 14 and 15 of
// proc_pid_stat(5).
func CPUTime(proc fs.FS, process int) (time.Duration, error) {
	text, err := fs.ReadFile(proc, fmt.Sprintf("%d/stat", process))
	if err != nil {
		return 0, err
	}
	_, after, _ := bytes.Cut(text, []byte(") ")) // the name may have spaces
	fields := bytes.Fields(after)
	if len(fields) < 13 {
		return 0, fmt.Errorf("%d/stat has %d fields after the name, want 13 or more", process, len(fields))
	}
	var user, system int64
	if _, err := fmt.Sscan(string(fields[11])+" "+string(fields[12]), &user, &system); err != nil {
		return 0, fmt.Errorf("%d/stat: %w", process, err)
	}
	return time.Duration(user+system) * clockTick, nil
}

// Memory returns the bytes of a process that are in memory: VmRSS of
// proc_pid_status(5).
func Memory(proc fs.FS, process int) (int64, error) {
	name := fmt.Sprintf("%d/status", process)
	text, err := fs.ReadFile(proc, name)
	if err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), "VmRSS:"); ok {
			var kib int64
			if _, err := fmt.Sscanf(value, "%d kB", &kib); err != nil {
				return 0, fmt.Errorf("%s: VmRSS is %q: %w", name, value, err)
			}
			return kib << 10, nil
		}
	}
	return 0, fmt.Errorf("%s has no VmRSS", name)
}
