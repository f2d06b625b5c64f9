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

// trim gives the kernel the pages back that nothing uses any more. Of the program
// itself two thirds are for its start only, yet a fault maps sixteen pages. What
// is needed again is still in the page cache, and costs a minor fault.
func trim() error {
	debug.FreeOSMemory()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return err
	}
	for _, program := range programSpans(string(maps)) {
		_, _, errno := syscall.Syscall(syscall.SYS_MADVISE, program.start, program.end-program.start, syscall.MADV_DONTNEED)
		if errno != 0 {
			return fmt.Errorf("madvise %#x-%#x: %w", program.start, program.end, errno)
		}
	}
	return nil
}

// programSpans returns where proc_pid_maps(5) shows files that are mapped to be
// read only: in a static program its own code and constants. They can be
// dropped, for they are read from the file again.
func programSpans(maps string) (spans []span) {
	for line := range strings.Lines(maps) {
		fields := strings.Fields(line) // addresses, permissions, offset, device, inode, path
		if len(fields) < 6 || strings.Contains(fields[1], "w") || fields[4] == "0" {
			continue
		}
		first, last, _ := strings.Cut(fields[0], "-")
		start, errStart := strconv.ParseUint(first, 16, strconv.IntSize)
		end, errEnd := strconv.ParseUint(last, 16, strconv.IntSize)
		if errStart == nil && errEnd == nil && start < end {
			spans = append(spans, span{uintptr(start), uintptr(end)})
		}
	}
	return spans
}
