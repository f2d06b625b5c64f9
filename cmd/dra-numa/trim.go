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

// trimPeriod is how long the daemon keeps memory that it no longer uses. It gives back
// nothing while it has less than trimBytes in memory: most of that it would soon need again.
const (
	trimPeriod = time.Minute
	trimBytes  = 35 << 20
)

// span is a range of addresses of this process: start is in it, end is not.
type span struct{ start, end uintptr }

// keepTrim gives unused memory back every trimPeriod, until ctx ends or trim fails.
func keepTrim(ctx context.Context) {
	ticker := time.NewTicker(trimPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if err := trimIfAbove(trimBytes); err != nil {
				klog.FromContext(ctx).Error(err, "Giving unused memory back failed, not trying again")
				return
			}
		}
	}
}

// trimIfAbove gives unused memory back if the process has more than so many bytes in memory.
func trimIfAbove(bytes int) error {
	resident, err := residentBytes()
	if err != nil || resident <= bytes {
		return err
	}
	return trim()
}

// residentBytes is how much of the process is in memory, with the pages of its program. It
// is counted: the sums that proc_pid_statm(5) and proc_pid_status(5) have are off by pages
// of each CPU, which is some MiB with 14 CPUs, and hundreds with 256.
func residentBytes() (int, error) {
	const name = "/proc/self/smaps_rollup"
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	_, rss, _ := strings.Cut(string(text), "\nRss:")
	var kB int
	if _, err := fmt.Sscan(rss, &kB); err != nil {
		return 0, fmt.Errorf("%s: %q, want a line Rss with a number of kB: %w", name, text, err)
	}
	return kB << 10, nil
}

// trim gives pages that nothing uses any more back to the kernel. On the rig's node,
// these are 11 of the 26 MB of the program that are in memory after its start. Pages
// that are needed again are still in the page cache, and cost a minor fault.
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

// programSpans returns the mappings in the text of proc_pid_smaps(5) that map a file,
// are not writable and have no pages of the process's own. These are code and
// constants, which the kernel can read from the file again. Pages that a dynamic linker
// wrote before they were protected (RELRO) would be lost.
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
