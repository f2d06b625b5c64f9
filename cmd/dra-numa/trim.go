package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/klog/v2"
)

// trimPeriod is how long the daemon keeps memory that it no longer uses.
const trimPeriod = time.Minute

// span is addresses of this process, from start to before end.
type span struct{ start, end uintptr }

// keepTrim gives memory back again and again until ctx ends.
func keepTrim(ctx context.Context) {
	ticker := time.NewTicker(trimPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := trim(); err != nil {
				klog.FromContext(ctx).Error(err, "Memory that is no longer used is kept")
				return
			}
		}
	}
}

// trim gives the kernel the pages back that nothing uses any more: on the rig's
// node 11 of the 26 MB of the program that are in memory after its start. What is
// needed again is still in the page cache, and costs a minor fault.
func trim() error {
	debug.FreeOSMemory()
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return err
	}
	for _, program := range programSpans(string(smaps)) {
		_, _, errno := syscall.Syscall(syscall.SYS_MADVISE, program.start, program.end-program.start, syscall.MADV_DONTNEED)
		if errno != 0 {
			return fmt.Errorf("madvise %#x-%#x: %w", program.start, program.end, errno)
		}
	}
	return nil
}

// programSpans returns where proc_pid_smaps(5) shows files that are mapped to be
// read only, and no page of which is the process's own: code and constants, which
// are read from the file again. A page that a dynamic linker wrote to before it
// was protected (RELRO) would be lost.
func programSpans(smaps string) (spans []span) {
	var mapping span
	file := false
	for line := range strings.Lines(smaps) {
		fields := strings.Fields(line)
		if first, last, found := strings.Cut(fields[0], "-"); found { // addresses, permissions, offset, device, inode, path
			start, errStart := strconv.ParseUint(first, 16, strconv.IntSize)
			end, errEnd := strconv.ParseUint(last, 16, strconv.IntSize)
			mapping = span{uintptr(start), uintptr(end)}
			file = errStart == nil && errEnd == nil && start < end && len(fields) > 5 && !strings.Contains(fields[1], "w") && fields[4] != "0"
		} else if file && fields[0] == "Anonymous:" && fields[1] == "0" {
			spans = append(spans, mapping)
		}
	}
	return spans
}
