package pin

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"
)

// A workqueue whose mask has changed works with other threads. Its old ones end later, and
// one thread of the kernel ends them all (pwq_release_workfn in kernel/workqueue.c). It waits
// for each while it holds the lock of all pools of threads. The kernel takes the same lock
// when an isolated partition begins or ends, even if its mask does not change, and holds
// the lock of all cpusets meanwhile. A task that joins a cgroup holds up the end of all
// threads, and waits for that lock. So before an isolated partition changes, that thread must
// be idle.
const (
	releaser        = "pool_workqueue_release"
	lastReleaser    = 100                    // the kernel starts it early: it is process 3 of Linux 6.12
	releaserPause   = 200 * time.Millisecond // was enough for 600 partitions of an emulated machine
	releaserLook    = time.Millisecond
	releaserTimeout = 10 * time.Second
)

// FindReleaser returns the directory of that thread below the mount of proc(5), for
// [Host.Releaser]. It is nil if the thread is not visible, as in a container, and before
// Linux 6.6.
func FindReleaser(processes fs.FS) fs.FS {
	for number := 3; number <= lastReleaser; number++ { // 1 is init, and 2 the parent of the kernel's threads
		pid := strconv.Itoa(number)
		dir, err := fs.Sub(processes, pid)
		if err != nil {
			panic(err) // impossible: a number is a valid name
		}
		if p, err := readProcess(dir); err == nil && p.name == releaser && p.flags&kernelThread != 0 {
			return dir
		}
	}
	return nil
}

// awaitReleaser waits until the kernel has ended the threads that its workqueues no longer
// need. If that cannot be seen, it returns at once: see pauseForReleaser.
func (h Host) awaitReleaser() error {
	if h.Releaser == nil {
		return nil
	}
	for end := time.Now().Add(releaserTimeout); ; time.Sleep(releaserLook) {
		p, err := readProcess(h.Releaser)
		if err != nil {
			return fmt.Errorf("look whether the kernel ends threads of its workqueues: %w", err)
		}
		if p.state == "S" { // asleep until there is work
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("the kernel still ends threads of its workqueues after %s: its thread %s is in state %s", releaserTimeout, releaser, p.state)
		}
	}
}

// pauseForReleaser gives the kernel time after a change of the mask. The thread may still be
// asleep while the last work of old threads ends. On a busy emulated machine, a look at the
// thread without this pause was too early once, and the kernel stopped.
func pauseForReleaser() { time.Sleep(releaserPause) }

// process is a part of proc_pid_stat(5).
type process struct {
	name, state string
	flags       uint64
}

// kernelThread is PF_KTHREAD of include/linux/sched.h: any process can have any name.
const kernelThread = 0x00200000

// readProcess reads the directory of a process.
func readProcess(dir fs.FS) (p process, err error) {
	line, err := readLine(dir, "stat") // pid (name) state ppid pgrp session tty tpgid flags …
	if err != nil {
		return p, err
	}
	_, line, _ = strings.Cut(line, "(")
	end := strings.LastIndex(line, ")") // the name can have one, too
	if fields := strings.Fields(line[end+1:]); end >= 0 && len(fields) > 6 {
		p.name, p.state = line[:end], fields[0]
		p.flags, err = strconv.ParseUint(fields[6], 10, 64)
		return p, err
	}
	return p, fmt.Errorf("stat ends with %q, want a name in parentheses and 7 fields", line)
}
