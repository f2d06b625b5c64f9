package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"github.com/dra-driver-numa/dra-driver-numa/numa/cpuset"
)

// keepIdle keeps the container's first process, which is about to start, off the idle
// CPUs of its own partition. All tasks that the process starts inherit this. A cpuset
// alone is not enough: the idle CPUs must be in the partition, so that no other task
// runs there. Linux 6.2 and later remember the requested affinity separately from the
// cpuset, so it stays when the cpuset changes. CPUs that other claims of the container
// keep idle stay idle.
func keepIdle(host host, pid int, container string, idle cpuset.Set) error {
	text, err := os.ReadFile(host.cgroups + "/" + container + "/cpuset.cpus.effective")
	if err != nil {
		return err
	}
	own, err := cpuset.Parse(strings.TrimSpace(string(text)))
	if err != nil {
		return err
	}
	runs, err := affinity(pid)
	if err != nil {
		return err
	}
	allowed := everyCPU().Difference(own.Difference(runs)).Difference(idle)
	// A thread that starts meanwhile inherits the affinity of a thread that is done,
	// or the next round finds it.
	for done := map[int]bool{}; ; {
		threads, err := threadsOf(host.proc, pid)
		if err != nil {
			return err
		}
		before := len(done)
		for _, thread := range threads {
			if done[thread] {
				continue
			}
			done[thread] = true
			if err := setAffinity(thread, allowed); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("sched_setaffinity of thread %d: %w", thread, err)
			}
		}
		if len(done) == before {
			return nil
		}
	}
}

func threadsOf(proc string, pid int) (threads []int, err error) {
	entries, err := os.ReadDir(fmt.Sprintf("%s/%d/task", proc, pid))
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		thread, err := strconv.Atoi(entry.Name())
		if err != nil {
			return nil, err
		}
		threads = append(threads, thread)
	}
	return threads, nil
}

// everyCPU returns a mask of all CPUs that exist now or will exist later.
func everyCPU() (all cpuset.Set) {
	for i := range all.Words() {
		all.Words()[i] = ^uint64(0)
	}
	return all
}

// affinity returns where a task may run: the CPUs that it asked for, as far as its
// cpuset allows them.
func affinity(task int) (cpus cpuset.Set, err error) {
	words := cpus.Words()
	_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, uintptr(task), unsafe.Sizeof(*words), uintptr(unsafe.Pointer(words)))
	if errno != 0 {
		return cpuset.Set{}, fmt.Errorf("sched_getaffinity of thread %d: %w", task, errno)
	}
	return cpus, nil
}

// setAffinity asks for CPUs. At least one of them must be in the task's cpuset.
func setAffinity(task int, cpus cpuset.Set) error {
	words := cpus.Words()
	_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, uintptr(task), unsafe.Sizeof(*words), uintptr(unsafe.Pointer(words)))
	if errno != 0 {
		return errno
	}
	return nil
}
