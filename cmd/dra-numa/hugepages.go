package main

import (
	"fmt"
	"syscall"
)

// prSetTHPDisable is PR_SET_THP_DISABLE of prctl(2).
const prSetTHPDisable = 41

// refuseHugePages turns transparent hugepages off for this process. Where they are set
// to "always", khugepaged would put the whole program and heap into memory, 2 MiB at a
// time: 47 MiB instead of 37 MiB on the rig's node.
func refuseHugePages() error {
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetTHPDisable, 1, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("prctl PR_SET_THP_DISABLE: %w", errno)
	}
	return nil
}
