package proc

import (
	"io/fs"
	"testing"
	"testing/fstest"
	"time"
)

func TestUsageOfAProcess(t *testing.T) {
	proc := fstest.MapFS{
		"7/stat":   {Data: []byte("7 (kube scheduler) S 1 7 7 0 -1 4194304 1 0 0 0 250 5 0 0 20 0 8 0 999\n")},
		"7/status": {Data: []byte("Name:\tkube\nVmPeak:\t 99 kB\nVmRSS:\t    3 kB\n")},
	}
	if got, err := CPUTime(proc, 7); got != 2550*time.Millisecond || err != nil {
		t.Errorf("CPU time %s, %v", got, err)
	}
	if got, err := Memory(proc, 7); got != 3<<10 || err != nil {
		t.Errorf("%d bytes, %v", got, err)
	}
	short := fstest.MapFS{"7/stat": {Data: []byte("7 (a) S 1\n")}, "7/status": {Data: []byte("Name:\ta\n")}}
	for _, proc := range []fs.FS{short, fstest.MapFS{}} {
		if got, err := CPUTime(proc, 7); err == nil {
			t.Errorf("CPU time %s of nothing", got)
		}
		if got, err := Memory(proc, 7); err == nil {
			t.Errorf("%d bytes of nothing", got)
		}
	}
}
