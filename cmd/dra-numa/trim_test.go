package main

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dra-driver-numa/dra-driver-numa/test/files"
)

func TestProgramSpans(t *testing.T) {
	const smaps = `00400000-01340000 r-xp 00000000 fe:00 1301    /dra-numa
Rss:               11504 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
01340000-0237a000 r--p 00f40000 fe:00 1301    /dra-numa (deleted)
Anonymous:             0 kB
0237a000-0237b000 r--p 01f7a000 fe:00 1301    /dra-numa
Anonymous:             4 kB
0237b000-02405000 rw-p 01f7b000 fe:00 1301    /dra-numa
Anonymous:             0 kB
02405000-04400000 rw-p 00000000 00:00 0
Anonymous:             0 kB
7fff1000-7fff5000 r--p 00000000 00:00 0       [vvar]
Anonymous:             0 kB
7fff5000-7fff7000 r-xp 00000000 00:00 0       [vdso]
Anonymous:             0 kB
`
	want := []span{{0x400000, 0x1340000}, {0x1340000, 0x237a000}}
	if got := programSpans(smaps); !slices.Equal(got, want) {
		t.Errorf("spans %x, want %x", got, want)
	}
}

func TestTrim(t *testing.T) {
	before := programPages(t)
	if err := trim(); err != nil {
		t.Fatal(err)
	}
	if after := programPages(t); before == 0 || after > before/2 {
		t.Errorf("%d kB of the program in memory before, %d kB after", before, after)
	}
}

func TestTrimOnlyAboveALimit(t *testing.T) {
	collections := func() uint32 {
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		return memory.NumForcedGC
	}
	for limit, want := range map[int]uint32{1 << 40: 0, 1 << 20: 1} {
		before := collections()
		if err := trimIfAbove(limit); err != nil {
			t.Fatal(err)
		}
		if got := collections() - before; got != want {
			t.Errorf("%d bytes in memory, limit %d: trimmed %d times, want %d", resident(t), limit, got, want)
		}
	}
}

// The kernel says the same of each mapping, in proc_pid_smaps(5).
func TestResidentBytes(t *testing.T) {
	kB := 0
	for line := range strings.Lines(files.Read(t, "/proc/self/smaps")) {
		if rss, found := strings.CutPrefix(line, "Rss:"); found {
			size, err := strconv.Atoi(strings.Fields(rss)[0])
			if err != nil {
				t.Fatal(err)
			}
			kB += size
		}
	}
	if got := resident(t); got < kB<<10*9/10 || got > kB<<10*11/10 {
		t.Errorf("%d bytes, the mappings have %d kB", got, kB)
	}
}

func resident(t *testing.T) int {
	t.Helper()
	bytes, err := residentBytes()
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// programPages is how much of its code and constants a process has in memory, in kB.
func programPages(t *testing.T) (kB int) {
	t.Helper()
	smaps := files.Read(t, "/proc/self/smaps")
	for _, program := range programSpans(smaps) {
		_, mapping, _ := strings.Cut(smaps, fmt.Sprintf("%08x-%08x ", program.start, program.end))
		_, rss, _ := strings.Cut(mapping, "\nRss:")
		size, err := strconv.Atoi(strings.Fields(rss)[0])
		if err != nil {
			t.Fatal(err)
		}
		kB += size
	}
	return kB
}
