package main

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestProgramSpans(t *testing.T) {
	const maps = `00400000-01340000 r-xp 00000000 fe:00 1301    /dra-numa
01340000-0237a000 r--p 00f40000 fe:00 1301    /dra-numa (deleted)
0237a000-02405000 rw-p 01f7a000 fe:00 1301    /dra-numa
02405000-04400000 rw-p 00000000 00:00 0
7fff1000-7fff5000 r--p 00000000 00:00 0       [vvar]
7fff5000-7fff7000 r-xp 00000000 00:00 0       [vdso]
`
	want := []span{{0x400000, 0x1340000}, {0x1340000, 0x237a000}}
	if got := programSpans(maps); !slices.Equal(got, want) {
		t.Errorf("spans %x, want %x", got, want)
	}
}

func TestTrim(t *testing.T) {
	before := programPages(t)
	if err := trim(); err != nil {
		t.Fatal(err)
	}
	if after := programPages(t); after > before/2 {
		t.Errorf("%d kB of the program in memory before, %d kB after", before, after)
	}
}

// programPages is how much of its code and constants a process has in memory, in kB.
func programPages(t *testing.T) (kB int) {
	t.Helper()
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	program := false
	for line := range strings.Lines(string(smaps)) {
		fields := strings.Fields(line)
		switch {
		case strings.Contains(fields[0], "-"):
			program = len(programSpans(line)) == 1
		case fields[0] == "Rss:" && program:
			size, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatal(err)
			}
			kB += size
		}
	}
	return kB
}
