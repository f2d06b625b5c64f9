package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// start runs a program that outlives us, its output in logs/<name>.log. Its process id
// and start time are recorded, so that a later stop cannot hit a stranger who got the
// same id.
func (r *Cluster) start(order int, name string, args ...string) error {
	for _, dir := range []string{"logs", "pids"} {
		if err := os.MkdirAll(r.Path(dir), 0o700); err != nil {
			return err
		}
	}
	log, err := os.OpenFile(r.Path("logs", name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.Dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // reap it while we are still here
	record := fmt.Sprintf("%d %s\n", cmd.Process.Pid, startTime(cmd.Process.Pid))
	return os.WriteFile(r.Path("pids", pidFile(order, name)), []byte(record), 0o600)
}

// machineOrder is the place of a node's machine among what is started.
func machineOrder(n Node) int { return 10 + n.Subnet }

func pidFile(order int, name string) string { return fmt.Sprintf("%02d-%s", order, name) }

// stop ends one process, kindly for three seconds.
func (r *Cluster) stop(file string) error {
	pid, alive := r.alive(file)
	for i := 0; alive && i < 150; i++ {
		signal := syscall.SIGTERM
		if i >= 30 {
			signal = syscall.SIGKILL
		}
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop %s (process %d): %w", file, pid, err)
		}
		time.Sleep(100 * time.Millisecond)
		_, alive = r.alive(file)
	}
	if alive {
		return fmt.Errorf("stop %s: process %d is still there 12 s after SIGKILL", file, pid)
	}
	if err := os.Remove(r.Path("pids", file)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Restart ends a program, such as the scheduler, and starts it again with the same
// arguments.
func (r *Cluster) Restart(name string) error {
	file, pid, err := r.running(name)
	if err != nil {
		return fmt.Errorf("restart %w", err)
	}
	command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return err
	}
	order, err := strconv.Atoi(file[:2])
	if err != nil {
		return err
	}
	if err := r.stop(file); err != nil {
		return err
	}
	return r.start(order, name, strings.Split(strings.TrimSuffix(string(command), "\x00"), "\x00")...)
}

// Process returns the process id of a program that runs, such as the scheduler.
func (r *Cluster) Process(name string) (int, error) {
	_, pid, err := r.running(name)
	return pid, err
}

// running returns the file and the process id of a program that runs.
func (r *Cluster) running(name string) (file string, pid int, err error) {
	files, err := filepath.Glob(r.Path("pids", "[0-9][0-9]-"+name))
	if err != nil {
		return "", 0, err
	}
	if len(files) != 1 {
		return "", 0, fmt.Errorf("%q: %d programs have this name", name, len(files))
	}
	file = filepath.Base(files[0])
	pid, alive := r.alive(file)
	if !alive {
		return "", 0, fmt.Errorf("%q: it does not run", name)
	}
	return file, pid, nil
}

// Ended reports whether the cluster had processes and none of them runs any more.
func (r *Cluster) Ended() bool {
	records, err := os.ReadDir(r.Path("pids"))
	return err == nil && len(records) > 0 && !slices.ContainsFunc(records, func(record fs.DirEntry) bool {
		_, alive := r.alive(record.Name())
		return alive
	})
}

func (r *Cluster) alive(file string) (pid int, alive bool) {
	text, err := os.ReadFile(r.Path("pids", file))
	if err != nil {
		return 0, false
	}
	id, started, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	pid, err = strconv.Atoi(id)
	return pid, err == nil && pid > 1 && started != "" && startTime(pid) == started
}

// startTime is field 22 of /proc/<pid>/stat (proc_pid_stat(5)), empty for a process that
// is gone or a zombie.
func startTime(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(string(stat), ") ") // the name before may hold spaces; ours hold no ')'
	fields := strings.Fields(after)
	if len(fields) < 20 || fields[0] == "Z" {
		return ""
	}
	return fields[19]
}
